/**
 * The REST client of the commands. After a broken connection, reads are repeated once. A POST that creates something carries
 * an Idempotency-Key, so it is repeated too. Other writes are sent exactly once.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { HttpError, networkError, placeOf } from "./http-error.ts";
import type { Target } from "./target.ts";

export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

export interface Call {
  /** The beginning of an error message: `cannot list the DAGs`. */
  readonly what: string;
  readonly query?: Query;
  readonly body?: unknown;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
  /** Send an Idempotency-Key (this one, or a random one), so that the request is repeated after a broken connection. */
  readonly idempotent?: boolean | string;
  /** 0 = no timeout, for streams. */
  readonly timeoutMs?: number;
}

/** A list endpoint: its path, and the name of the array in the response. */
export interface ListCall {
  readonly path: string;
  readonly key: string;
  readonly what: string;
  readonly query?: Query;
  /** 0 = all. */
  readonly limit: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Listed<T> {
  readonly items: T[];
  readonly total: number;
}

const PAGE = 100;
const TIMEOUT_MS = 30_000;

export class Client {
  readonly target: Target;

  constructor(target: Target) {
    this.target = target;
  }

  async get<T>(path: string, call: Call): Promise<T> {
    return (await this.#json("GET", path, call)) as T;
  }

  async post<T>(path: string, call: Call): Promise<T> {
    return (await this.#json("POST", path, call)) as T;
  }

  async put<T>(path: string, call: Call): Promise<T> {
    return (await this.#json("PUT", path, call)) as T;
  }

  async patch<T>(path: string, call: Call): Promise<T> {
    return (await this.#json("PATCH", path, call)) as T;
  }

  async delete(path: string, call: Call): Promise<void> {
    await this.#json("DELETE", path, call);
  }

  /** Reads pages until the limit is reached or the list ends. */
  async list<T>(call: ListCall): Promise<Listed<T>> {
    const items: T[] = [];
    for (;;) {
      const wanted = call.limit === 0 ? PAGE : Math.min(PAGE, call.limit - items.length);
      const page = await this.get<Record<string, unknown>>(call.path, {
        what: call.what,
        query: { ...call.query, limit: wanted, offset: items.length },
        signal: call.signal,
      });
      const got = (page[call.key] ?? []) as T[];
      items.push(...got);
      const total = typeof page.total_entries === "number" ? page.total_entries : items.length;
      if (got.length === 0 || items.length >= total || (call.limit !== 0 && items.length >= call.limit)) {
        return { items, total };
      }
    }
  }

  /** The raw response, with errors already thrown. */
  async open(path: string, call: Call): Promise<Response> {
    return this.#send("GET", path, call);
  }

  async #json(method: string, path: string, call: Call): Promise<unknown> {
    const response = await this.#send(method, path, call);
    if (response.status === 204) return undefined;
    const text = await response
      .text()
      .catch((error) => Promise.reject(networkError(call.what, this.target, error)));
    if (text === "") return undefined;
    try {
      return JSON.parse(text);
    } catch {
      throw new HttpError(
        502,
        call.what,
        "the answer is not JSON: is this address really a Tradewind server?",
      );
    }
  }

  async #send(method: string, path: string, call: Call): Promise<Response> {
    const headers: Record<string, string> = { accept: call.accept ?? "application/json" };
    if (this.target.token) headers.authorization = `Bearer ${this.target.token}`;
    if (call.body !== undefined) headers["content-type"] = "application/json";
    if (call.idempotent)
      headers["idempotency-key"] = call.idempotent === true ? randomUUID() : call.idempotent;
    const request: RequestInit = { method, headers, redirect: "error" };
    if (call.body !== undefined) request.body = JSON.stringify(call.body);

    const repeatable = method === "GET" || Boolean(call.idempotent);
    const root = path.startsWith("/ui/") ? "" : "/api/v2";
    const url = `${this.target.url}${root}${path}${encodeQuery(call.query)}`;
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await fetch(url, { ...request, signal: deadline(call) });
        if (response.ok) return response;
        throw new HttpError(response.status, call.what, await readBody(response), placeOf(path, call.body));
      } catch (error) {
        if (error instanceof HttpError || call.signal?.aborted) throw error;
        // A refused connection is final: no server listens there, and a retry would fail too.
        if (!repeatable || attempt === 2 || isRefused(error))
          throw networkError(call.what, this.target, error);
        await sleep(200);
      }
    }
  }
}

/** `/dags/{}/dagRuns/{}` with each part URL-encoded: ids may contain any character. */
export function path(strings: TemplateStringsArray, ...parts: readonly (string | number)[]): string {
  return strings.reduce((all, text, index) => all + encodeURIComponent(String(parts[index - 1])) + text);
}

function encodeQuery(query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) search.append(name, String(item));
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

function deadline(call: Call): AbortSignal | null {
  const timeoutMs = call.timeoutMs ?? TIMEOUT_MS;
  const signals = [call.signal, timeoutMs === 0 ? undefined : AbortSignal.timeout(timeoutMs)].filter(
    (s) => s !== undefined,
  );
  return signals.length === 0 ? null : AbortSignal.any(signals);
}

async function readBody(response: Response): Promise<unknown> {
  const text = await response.text().catch(() => "");
  try {
    return JSON.parse(text);
  } catch {
    // An HTML page from a proxy is not a useful message.
    return text.trimStart().startsWith("<") ? undefined : text;
  }
}

function isRefused(error: unknown): boolean {
  const cause = (error as { cause?: { code?: string; errors?: { code?: string }[] } }).cause;
  return (cause?.code ?? cause?.errors?.[0]?.code) === "ECONNREFUSED";
}
