/**
 * Waits for an HTTP answer. A status that is not among the expected ones is an answer too: polling continues.
 * A failing server (429, 5xx) is polled with growing pauses; a server that rejects the credentials (401, 407) ends the
 * trigger.
 */
import { isDeepStrictEqual } from "node:util";
import type { HttpArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import type { TriggerHost } from "@tradewind/sdk/program";
import {
  anyText,
  json,
  list,
  Misfit,
  members,
  orNull,
  type Reader,
  text,
  texts,
  whole,
} from "./argument-readers.ts";
import { type OpenConnection, openConnection } from "./connection.ts";
import { polledKind } from "./poll-loop.ts";
import { badArguments, refused } from "./trigger-error.ts";
import type { Sight } from "./watches.ts";

const KIND = "tradewind.http";
/** Maximum number of bytes to read. */
const MAX_READ_BYTES = 4 * 1024 * 1024;
/** Maximum size of the body in the event. */
const MAX_EVENT_BYTES = 256 * 1024;
const MAX_REDIRECTS = 5;
const LOOKS_PER_HOST = 8;

const step: Reader<string | number> = (value) => {
  if (typeof value === "string" || typeof value === "number") return value;
  throw new Misfit(["has to be a list of names and indexes"]);
};

export const httpKind = polledKind(KIND, {
  args: members<HttpArgs>({
    url: text,
    method: text,
    headers: texts,
    connection: orNull(text),
    status: orNull(list(whole(100))),
    json: orNull(members({ path: list(step), equals: json })),
    body: orNull(anyText),
    intervalMs: whole(1),
  }),
  intervalMs: ({ intervalMs }) => intervalMs,
  // Bodies often contain the current time: a changed body is not a new event.
  again: "again",
  open: async (args, host, hide) => {
    const connection = args.connection === null ? null : await openConnection(host, args.connection, hide);
    const target = targetOf(args, connection);
    if (target.authorization !== null) hide(target.authorization);
    return {
      place: `http ${target.url.host}`,
      limit: LOOKS_PER_HOST,
      poll: async (signal) => sightOf(args, target, await request(args, target, signal), host),
    };
  },
});

interface Target {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent to the target's own origin only, like the settings of the connection. */
  readonly authorization: string | null;
}

function targetOf(args: HttpArgs, connection: OpenConnection | null): Target {
  const base = connection === null ? null : addressOf(connection);
  let url: URL;
  try {
    url = new URL(args.url, base ?? undefined);
  } catch {
    throw badArguments(KIND, "url: it is not absolute, and no connection has its address");
  }
  if (!/^https?:$/.test(url.protocol)) throw badArguments(KIND, "url: it has to be http or https");
  if (url.username !== "" || url.password !== "") {
    throw badArguments(KIND, "url: keep login and password in a connection");
  }
  if (args.body !== null && isBodiless(args.method)) {
    throw badArguments(KIND, `body: ${args.method} has none`);
  }
  if (base !== null && base.origin !== url.origin) {
    throw badArguments(KIND, `url: it is not at ${base.origin}, the address of its connection`);
  }
  return {
    url,
    headers: { ...lowerCase(connection?.options("headers") ?? {}), ...args.headers },
    authorization: connection === null ? null : authorizationOf(connection),
  };
}

export function authorizationOf({ facts }: OpenConnection): string | null {
  const { login, password } = facts;
  if (login === null && password === null) return null;
  return `Basic ${Buffer.from(`${login ?? ""}:${password ?? ""}`).toString("base64")}`;
}

/** Null if the connection has no host; then its credentials apply to the URL of the trigger. */
export function addressOf(connection: OpenConnection): URL | null {
  const { host, port, schema, type } = connection.facts;
  if (host === null || host === "") return null;
  const scheme = schema === "http" || schema === "https" ? schema : type === "https" ? "https" : "http";
  let url: URL;
  try {
    url = new URL(host.includes("://") ? host : `${scheme}://${host}`);
  } catch {
    throw connection.unusable("its host is not an address");
  }
  if (port !== null) url.port = String(port);
  return url;
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

interface Answer {
  readonly status: number;
  readonly isJson: boolean;
  readonly text: string;
  readonly isWhole: boolean;
}

/** Follows redirects itself: headers and credentials must not be sent to another origin. */
async function request(args: HttpArgs, target: Target, signal: AbortSignal): Promise<Answer> {
  let url = target.url;
  let method = args.method;
  for (let hop = 0; ; hop++) {
    const isHome = url.origin === target.url.origin;
    const headers = new Headers(isHome ? target.headers : {});
    if (isHome && target.authorization !== null && !headers.has("authorization")) {
      headers.set("authorization", target.authorization);
    }
    const body = isBodiless(method) ? null : args.body;
    const answer = await fetch(url, { method, headers, body, signal, redirect: "manual" });
    const location = answer.headers.get("location");
    if (answer.status < 300 || answer.status > 399 || location === null || isWaitedFor(args, answer.status)) {
      return await read(answer);
    }
    await answer.body?.cancel();
    if (hop === MAX_REDIRECTS)
      throw new Error(`${shown(target.url)} redirects more than ${MAX_REDIRECTS} times`);
    url = new URL(location, url);
    if (answer.status === 303 || (method === "POST" && answer.status < 303)) method = "GET";
  }
}

function isBodiless(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

async function read(answer: Response): Promise<Answer> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = "";
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.byteLength;
    text += decoder.decode(chunk, { stream: true });
    // Leaving the loop cancels the rest.
    if (bytes > MAX_READ_BYTES) break;
  }
  return {
    status: answer.status,
    isJson: /^application\/(?:[^;\s]+\+)?json\b/i.test(answer.headers.get("content-type") ?? ""),
    text: text + decoder.decode(),
    isWhole: bytes <= MAX_READ_BYTES,
  };
}

function sightOf(args: HttpArgs, { url }: Target, answer: Answer, host: TriggerHost): Sight {
  const { status } = answer;
  if (!isWaitedFor(args, status)) {
    if (status === 401 || status === 407)
      throw refused(`${shown(url)} rejected the credentials with ${status}`);
    if (status === 429 || status >= 500) throw new Error(`${shown(url)} answered ${status}`);
    return { note: `${shown(url)} answered ${status}` };
  }
  const parsed = answer.isJson || args.json !== null ? parse(answer) : undefined;
  if (args.json !== null) {
    if (parsed === undefined) return { note: `${shown(url)} answered ${status}, but not with JSON` };
    const { path, equals } = args.json;
    if (!isDeepStrictEqual(valueAt(parsed, path), equals)) {
      return { note: `${shown(url)} answered ${status}; ${path.join(".")} does not match yet` };
    }
  }
  if (Buffer.byteLength(answer.text) > MAX_EVENT_BYTES) {
    host.log(
      "warn",
      `the answer is longer than ${MAX_EVENT_BYTES} bytes: the event has its beginning, as text`,
    );
    return { event: { status, body: clipped(answer.text) } };
  }
  const body = answer.text === "" ? null : answer.isJson ? (parsed ?? answer.text) : answer.text;
  return { event: { status, body } };
}

function isWaitedFor({ status }: HttpArgs, found: number): boolean {
  return status === null ? found >= 200 && found <= 299 : status.includes(found);
}

function parse({ text, isWhole }: Answer): Json | undefined {
  if (!isWhole) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** Own members only, so that `constructor` is not found. */
function valueAt(value: Json, path: readonly (string | number)[]): Json | undefined {
  let at: Json | undefined = value;
  for (const name of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Readonly<Record<string | number, Json>>)[name];
  }
  return at;
}

/** Truncated between characters. */
function clipped(text: string): string {
  return new TextDecoder().decode(Buffer.from(text).subarray(0, MAX_EVENT_BYTES)).replace(/\uFFFD+$/, "");
}

/** Without its query, which may contain a token. */
function shown(url: URL): string {
  return `${url.origin}${url.pathname}`;
}
