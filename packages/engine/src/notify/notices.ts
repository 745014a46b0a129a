/**
 * One attempt to deliver: a webhook or an e-mail, with the settings of its connection. An error names the receiver and
 * its answer, and no secret.
 */
import { createHmac } from "node:crypto";
import type { Json, NoticeAction } from "@tradewind/sdk/manifest";
import type { ConnectionFacts } from "@tradewind/sdk/program";
import { EngineError, messageOf } from "../service/errors.ts";
import type { TakenDelivery } from "../store/notify/deliveries.ts";
import { idempotencyKey, noticeDocument, noticeSubject, noticeText } from "./notice-text.ts";
import { type SmtpServer, sendMail } from "./smtp-client.ts";

export type FindConnection = (id: string) => Promise<ConnectionFacts | undefined>;

/** Resolves when the receiver has accepted it. */
export async function deliver(action: SentAction, delivery: TakenDelivery, means: Means): Promise<void> {
  if (action.kind === "webhook") await postWebhook(action, delivery, means);
  else await mail(action, delivery, means);
}

/** Actions that leave the installation. */
export type SentAction = Exclude<NoticeAction, { kind: "signal" }>;

export interface Means {
  readonly connection: FindConnection;
  readonly signal: AbortSignal;
  /** The external address of the API; undefined: messages have no link. */
  readonly publicUrl?: string | undefined;
}

function runUrl(
  { dag_id: dagId, run_id: runId }: TakenDelivery,
  publicUrl: string | undefined,
): string | null {
  if (publicUrl === undefined) return null;
  return `${publicUrl}/api/v2/dags/${encodeURIComponent(dagId)}/dagRuns/${encodeURIComponent(runId)}`;
}

async function postWebhook(
  { to }: Extract<NoticeAction, { kind: "webhook" }>,
  delivery: TakenDelivery,
  { connection, publicUrl, signal }: Means,
): Promise<void> {
  const isAddress = /^https?:\/\//i.test(to);
  const facts = isAddress ? null : await required(connection, to);
  const url = facts === null ? new URL(to) : addressOf(facts);
  const body = JSON.stringify(noticeDocument(delivery, runUrl(delivery, publicUrl)));
  const headers = new Headers({
    "content-type": "application/json",
    ...(facts === null ? {} : credentials(facts, body)),
    "idempotency-key": idempotencyKey(delivery),
  });
  let status: number;
  try {
    // Redirects are not followed: the credentials of a connection are for its own address.
    const answer = await fetch(url, { method: "POST", headers, body, signal, redirect: "manual" });
    await answer.body?.cancel();
    status = answer.status;
  } catch (error) {
    const cause = messageOf((error as { cause?: unknown }).cause ?? error);
    throw new EngineError("NOTICE_WEBHOOK", `The webhook at ${url.host} did not answer: ${cause}`);
  }
  if (status < 200 || status > 299)
    throw new EngineError(
      "NOTICE_WEBHOOK",
      `The webhook at ${url.host} answered ${status}; only 2xx counts as delivered`,
    );
}

/**
 * Login and password are sent as Basic, a password alone as Bearer; `extra.headers` are added. With `extra.secret` the
 * body is signed, so that the receiver can verify the sender.
 */
function credentials({ extra, login, password }: ConnectionFacts, body: string): Record<string, string> {
  const options = objectOf(extra);
  const basic = Buffer.from(`${login ?? ""}:${password ?? ""}`).toString("base64");
  const authorization =
    login !== null && login !== "" ? `Basic ${basic}` : password ? `Bearer ${password}` : null;
  const secret = options["secret"];
  return {
    ...(authorization !== null && { authorization }),
    ...(typeof secret === "string" && {
      "tradewind-signature": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    }),
    ...Object.fromEntries(
      Object.entries(objectOf(options["headers"] ?? null)).map(([name, value]) => [
        name.toLowerCase(),
        String(value),
      ]),
    ),
  };
}

/** A host that is an address itself, or the parts of one; `extra.path` is the path. */
function addressOf(facts: ConnectionFacts): URL {
  const { extra, host, id, port, schema, type } = facts;
  const scheme = schema === "http" || schema === "https" ? schema : type === "https" ? "https" : "http";
  const path = objectOf(extra)["path"];
  try {
    if (host === null || host === "") throw new Error("no host");
    const url = new URL(host.includes("://") ? host : `${scheme}://${host}`);
    if (port !== null) url.port = String(port);
    if (!/^https?:$/.test(url.protocol)) throw new Error("not http");
    return typeof path === "string" ? new URL(path, url) : url;
  } catch {
    throw unusable(id, "its host is not an http address");
  }
}

async function mail(
  { connection: id, to }: Extract<NoticeAction, { kind: "email" }>,
  delivery: TakenDelivery,
  { connection, publicUrl, signal }: Means,
): Promise<void> {
  const facts = await required(connection, id);
  const server = smtpServer(facts);
  const given = objectOf(facts.extra)["from"];
  const from = typeof given === "string" ? given : facts.login?.includes("@") ? facts.login : null;
  if (from === null || /\p{Cc}/u.test(from))
    throw unusable(id, 'its extra needs the sender, as {"from": "tradewind@example.com"}');
  const domain = /@([\w.-]+)/.exec(from)?.[1] ?? "tradewind";
  const message = {
    from,
    to,
    subject: noticeSubject(delivery),
    text: noticeText(delivery, runUrl(delivery, publicUrl)),
    date: delivery.occurred_at,
    messageId: `${delivery.event}-${idempotencyKey(delivery)}@${domain}`,
  };
  await sendMail(server, message, signal);
}

const TLS = ["implicit", "starttls", "opportunistic", "none"] as const;

/** Port 465 uses TLS from the start, every other port STARTTLS. */
function smtpServer(facts: ConnectionFacts): SmtpServer {
  const { extra, host, id, login, password } = facts;
  const options = objectOf(extra);
  if (host === null || host === "") throw unusable(id, "it has no host");
  const port = facts.port ?? 587;
  const tls = options["tls"] ?? (port === 465 ? "implicit" : "opportunistic");
  if (!TLS.includes(tls as (typeof TLS)[number]))
    throw unusable(id, `"tls" of its extra is one of ${TLS.join(", ")}`);
  const hasLogin = login !== null && login !== "" && password !== null;
  return {
    host,
    port,
    tls: tls as SmtpServer["tls"],
    credentials: hasLogin ? { user: login, password } : null,
    allowsAnyCertificate: options["verify"] === false,
  };
}

async function required(connection: FindConnection, id: string): Promise<ConnectionFacts> {
  const facts = await connection(id);
  if (facts !== undefined) return facts;
  throw new EngineError(
    "NOTICE_CONNECTION",
    `Connection "${id}" does not exist. Create it with \`tradewind connections set ${id}\`, then retry failed deliveries with \`tradewind deliveries retry\`.`,
  );
}

function unusable(id: string, why: string): EngineError {
  return new EngineError("NOTICE_CONNECTION", `The connection "${id}" cannot be used: ${why}.`);
}

function objectOf(value: Json): Readonly<Record<string, Json>> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, Json>>)
    : {};
}
