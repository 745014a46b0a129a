/** Clients of S3 and compatible stores, created from a stored connection or from the environment. */
import { S3Client, type S3ClientConfig } from "@aws-sdk/client-s3";
import type { TriggerHost } from "@tradewind/sdk/program";
import { type OpenConnection, openConnection } from "./connection.ts";
import { type Held, SharedClients } from "./shared-clients.ts";
import { refused } from "./trigger-error.ts";

const CONNECT_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 20_000;

const clients = new SharedClients<S3Client>((client) => client.destroy());

export async function holdS3(
  host: TriggerHost,
  id: string | null,
  hide: (secret: string) => void,
): Promise<Held<S3Client>> {
  if (id === null) return clients.hold("", () => new S3Client(PATIENCE));
  const connection = await openConnection(host, id, hide);
  const config = configOf(connection);
  return clients.hold(connection.fingerprint, () => new S3Client(config));
}

/** The trigger itself retries, and logs it. */
const PATIENCE: S3ClientConfig = {
  maxAttempts: 1,
  requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS },
};

function configOf(connection: OpenConnection): S3ClientConfig {
  if (connection.option("role_arn") !== null) {
    throw connection.unusable("role_arn is not supported: give keys, or let the environment assume the role");
  }
  const { login, password } = connection.facts;
  const accessKeyId = login ?? connection.option("aws_access_key_id");
  const secretAccessKey = password ?? connection.option("aws_secret_access_key");
  if ((accessKeyId === null) !== (secretAccessKey === null)) {
    throw connection.unusable("of access key (login) and secret key (password) one is missing");
  }
  const endpoint = endpointOf(connection);
  const sessionToken = connection.option("aws_session_token") ?? undefined;
  return {
    ...PATIENCE,
    region: connection.option("region_name", "region") ?? (endpoint === undefined ? undefined : "us-east-1"),
    endpoint,
    forcePathStyle: endpoint !== undefined && connection.option("addressing_style") !== "virtual",
    ...(accessKeyId !== null && secretAccessKey !== null
      ? { credentials: { accessKeyId, secretAccessKey, sessionToken } }
      : {}),
  };
}

function endpointOf(connection: OpenConnection): string | undefined {
  const { host, port, schema } = connection.facts;
  const given = connection.option("endpoint_url") ?? (host === "" ? null : host);
  if (given === null) return undefined;
  try {
    const url = new URL(given.includes("://") ? given : `${schema === "http" ? "http" : "https"}://${given}`);
    if (port !== null && connection.option("endpoint_url") === null) url.port = String(port);
    return url.href;
  } catch {
    throw connection.unusable("its endpoint_url is not an address");
  }
}

/** Turns an error that retrying would not solve into a refusal. */
export function s3Failure(error: unknown, what: string): unknown {
  const { name, message } = error as Error;
  const status = statusOf(error);
  if (status === undefined) {
    const isFinal = name === "CredentialsProviderError" || message === "Region is missing";
    return isFinal ? refused(`${what}: ${message}`) : error;
  }
  // The answer to HEAD has no body with a reason.
  const said = [status, ...[name, message].filter((text) => !/^Unknown/.test(text))].join(" ");
  const isPassing = status >= 500 || status === 429 || status === 408 || name === "RequestTimeTooSkewed";
  if (isPassing) return new Error(`${what}: ${said}`);
  const hint = status === 403 ? " (without s3:ListBucket a key that is not there is forbidden, too)" : "";
  return refused(`${what}: ${said}${hint}`);
}

export function statusOf(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode;
}
