import type { Json } from "@tradewind/sdk";
import { usageError } from "../errors.ts";

/** The parts of a connection with the field names of the REST API. */
export interface ConnectionParts {
  readonly conn_type?: string;
  readonly host?: string;
  readonly port?: number;
  readonly schema?: string;
  readonly login?: string;
  readonly password?: string;
  readonly extra?: string;
}

/** `type://login:password@host:port/schema?name=value`; parts may be percent-encoded, the query becomes `extra`. */
export function parseConnectionUri(uri: string, name = "--uri"): ConnectionParts {
  const match =
    /^([a-z][a-z0-9+.-]*):\/\/(?:([^@/?#]*)@)?(\[[^\]]*\]|[^:/?#]*)(?::(\d+))?(?:\/([^?#]*))?(?:\?([^#]*))?$/i.exec(
      uri,
    );
  if (!match) {
    // Do not repeat the URI: it may contain a password.
    throw usageError(
      `${name} is not a connection URI.`,
      "example: --uri 'postgres://user:secret@db.example:5432/sales'",
    );
  }
  const [, type, user, , port, schema, query] = match;
  const host = decode(match[3]!.replace(/^\[(.*)\]$/, "$1"), name);
  if (host !== "") checkHost(host, name);
  else if (user !== undefined || port !== undefined) {
    throw usageError(
      `${name} has no host.`,
      "put the host before the port or path; for a connection without a host, use --type, --login and --password",
    );
  }
  const [login, password] = splitUser(user);
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65535))
    throw usageError(`${name} has the invalid port ${port}; use 1 to 65535.`);
  return {
    conn_type: type!.toLowerCase(),
    ...(host ? { host } : {}),
    ...(port === undefined ? {} : { port: Number(port) }),
    ...(schema ? { schema: decode(schema, name) } : {}),
    ...(login ? { login: decode(login, name) } : {}),
    ...(password === undefined ? {} : { password: decode(password, name) }),
    ...(query ? { extra: JSON.stringify(Object.fromEntries(new URLSearchParams(query))) } : {}),
  };
}

/** Rejects text that cannot be a host name, an address or a socket path. */
export function checkHost(host: string, option: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are rejected
  const wrong = /[\s\u0000-\u001f\u007f"<>\\^`{|}]/.exec(host);
  if (host === "") throw usageError(`${option} is empty.`, "give a host name or an address");
  if (wrong)
    throw usageError(
      `${option} has a host with ${JSON.stringify(wrong[0])} in it.`,
      "give a host name or an address, such as db.example.com",
    );
  return host;
}

/** Connections by id, in the form that tasks receive. */
export function parseTestConnections(uris: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    Object.entries(uris).map(([id, uri]) => {
      const { conn_type: type, extra, ...parts } = parseConnectionUri(uri);
      return [
        id,
        { type: type!, ...parts, ...(extra === undefined ? {} : { extra: JSON.parse(extra) as Json }) },
      ];
    }),
  );
}

function splitUser(user: string | undefined): [string | undefined, string | undefined] {
  if (user === undefined) return [undefined, undefined];
  const colon = user.indexOf(":");
  return colon < 0 ? [user, undefined] : [user.slice(0, colon), user.slice(colon + 1)];
}

function decode(text: string, name: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw usageError(
      `${name} contains a % that is not followed by two hexadecimal digits.`,
      "write a % itself as %25",
    );
  }
}
