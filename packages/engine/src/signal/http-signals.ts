/** A client of the signal service over HTTP: the REST API and its token, long polls for listeners. Needs only fetch. */
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError, messageOf } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import {
  changeDocumentOf,
  type DeadLetterDocument,
  type PlaceDocument,
  type RetryDocument,
  readDeadLetter,
  readPlace,
  readRetry,
  readSignal,
  type SignalDocument,
  startQuery,
} from "./http-documents.ts";
import { accessError, failedError } from "./refusal.ts";
import { awayError, isAway, RemoteSignals, type SignalTransport } from "./remote-signals.ts";
import { keysOf, readPosition, type SignalFilter, type SignalToSend } from "./signal.ts";
import type {
  ListenerRecords,
  NextOptions,
  SignalBatch,
  SignalPlace,
  Subscription,
} from "./signal-service.ts";

export interface HttpSignalsOptions {
  readonly token: string;
  readonly sender?: string;
  readonly logger?: Logger;
}

const TIMEOUT_MS = 10_000;
/** The longest wait that the server allows. */
const POLL_MS = 30_000;

export class HttpSignals extends RemoteSignals {
  /** `http://host:8080`, without a path. */
  static connect(url: string, options: HttpSignalsOptions): HttpSignals {
    return new HttpSignals(new HttpTransport(url, options.token), options);
  }
}

type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

interface Call {
  readonly query?: Query;
  readonly body?: unknown;
  readonly timeoutMs?: number;
  readonly abort?: AbortSignal | undefined;
}

class HttpTransport implements SignalTransport {
  readonly records: ListenerRecords;
  readonly #url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      throw new EngineError(
        "SIGNAL_SERVICE_ADDRESS",
        `Invalid signal service address "${url.slice(0, 100)}": write it like http://host:8080.`,
      );
    }
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.records = this.#recordsOf();
  }

  async send(signals: readonly SignalToSend[]) {
    const answer = await this.call<{ signals: (SignalDocument & { is_duplicate: boolean })[] }>("POST", "", {
      body: { signals },
    });
    return answer.signals.map((document) => ({
      ...readSignal(document),
      isDuplicate: document.is_duplicate,
    }));
  }

  async list(query: Parameters<SignalTransport["list"]>[0]) {
    const { cursor, descending, limit, time, version } = query;
    const answer = await this.call<{ signals: SignalDocument[]; next_cursor: string | null }>("GET", "", {
      query: {
        ...filterQuery(query),
        version_gt: version?.gt,
        version_gte: version?.gte,
        version_lt: version?.lt,
        version_lte: version?.lte,
        time_gt: time?.gt?.toISOString(),
        time_gte: time?.gte?.toISOString(),
        time_lt: time?.lt?.toISOString(),
        time_lte: time?.lte?.toISOString(),
        order_by: descending ? "-version" : "version",
        limit,
        cursor,
      },
    });
    return { signals: answer.signals.map(readSignal), next: answer.next_cursor };
  }

  async position(start: Parameters<SignalTransport["position"]>[0]): Promise<SignalPlace> {
    return readPlace(await this.call<PlaceDocument>("GET", "/position", { query: startQuery(start) }));
  }

  subscribe(filter: SignalFilter, place: SignalPlace): Subscription {
    return new LongPoll(this, filter, place);
  }

  async readKey({ from, key, limit, namespace, sender, upTo }: Parameters<SignalTransport["readKey"]>[0]) {
    const query = { namespace, key, sender, version_gte: from, up_to: upTo, limit };
    return (await this.call<{ signals: SignalDocument[] }>("GET", "/ofKey", { query })).signals.map(
      readSignal,
    );
  }

  async deadLetters(listener?: string, onlyRetried = false) {
    const query = { listener, only_retried: onlyRetried || undefined, limit: 1_000 };
    const answer = await this.call<{ dead_letters: DeadLetterDocument[] }>("GET", "/deadLetters", { query });
    return answer.dead_letters.map(readDeadLetter);
  }

  async close(): Promise<void> {}

  async call<T>(method: string, path: string, { abort, body, query = {}, timeoutMs }: Call = {}): Promise<T> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value === null || value === undefined) continue;
      for (const each of Array.isArray(value) ? value : [value]) search.append(name, String(each));
    }
    const deadline = AbortSignal.timeout(timeoutMs ?? TIMEOUT_MS);
    const headers: Record<string, string> = { authorization: `Bearer ${this.#token}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${this.#url}/api/v2/signals${path}${search.size > 0 ? `?${search}` : ""}`, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        signal: abort === undefined ? deadline : AbortSignal.any([abort, deadline]),
      });
      text = await response.text();
    } catch (error) {
      throw awayError(this.#url, messageOf(error), error);
    }
    if (response.ok) return (text === "" ? undefined : JSON.parse(text)) as T;
    throw this.#refusal(response.status, text);
  }

  #refusal(status: number, text: string): EngineError {
    if (status >= 500 || status === 408 || status === 429)
      return awayError(this.#url, `it answered ${status}`);
    const { code, detail } = parseProblem(text);
    const message = typeof detail === "string" ? detail : JSON.stringify(detail ?? text.slice(0, 200));
    if (code?.startsWith("SIGNAL_")) return new EngineError(code, message);
    if (status === 401 || status === 403) return accessError(this.#url, message, status === 403);
    return failedError(this.#url, `${status}: ${message}`, true);
  }

  #recordsOf(): ListenerRecords {
    const path = (name: string, deed: string) => `/listeners/${encodeURIComponent(name)}/${deed}`;
    return {
      claim: async ({ filter, from, holder, host, name, ttlMs }) => {
        const answer = await this.call<{
          claimed: boolean;
          place: PlaceDocument | null;
          retries: RetryDocument[];
          has_redeliveries: boolean;
        }>("POST", path(name, "claim"), {
          body: { holder, lease_ms: ttlMs, host, filter: filterDocument(filter), start: startQuery(from) },
        });
        if (answer.place === null) return null;
        const { afterVersion = null, position, since = null } = readPlace(answer.place);
        return {
          start: { position: readPosition(position), afterVersion, since },
          retries: answer.retries.map(readRetry),
          hasRedeliveries: answer.has_redeliveries,
        };
      },
      commit: async ({ holder, name, ttlMs }, change) => {
        const body = { holder, lease_ms: ttlMs, ...changeDocumentOf(change) };
        const answer = await this.call<{ has_redeliveries: boolean }>("POST", path(name, "commit"), { body });
        return { hasRedeliveries: answer.has_redeliveries };
      },
      redeliveries: (name) => this.deadLetters(name, true),
      release: async ({ holder, name }) => {
        await this.call("POST", path(name, "release"), { body: { holder } });
      },
    };
  }
}

/** One request after the other, each of which waits for signals. */
class LongPoll implements Subscription {
  readonly #transport: HttpTransport;
  readonly #filter: SignalFilter;
  readonly #place: SignalPlace;
  readonly #closing = new AbortController();
  #position: string;
  #retryMs = 50;

  constructor(transport: HttpTransport, filter: SignalFilter, place: SignalPlace) {
    this.#transport = transport;
    this.#filter = filter;
    this.#place = place;
    this.#position = place.position;
  }

  async next(options: NextOptions): Promise<SignalBatch> {
    const deadline = performance.now() + options.waitMs;
    const abort = AbortSignal.any([this.#closing.signal, ...(options.abort ? [options.abort] : [])]);
    while (!abort.aborted) {
      const waitMs = Math.min(Math.max(0, deadline - performance.now()), POLL_MS);
      try {
        const signals = await this.#poll(options.limit, waitMs, abort);
        this.#retryMs = 50;
        if (signals.length > 0 || performance.now() >= deadline)
          return { signals: signals.map(readSignal), position: this.#position };
      } catch (error) {
        if (abort.aborted) break;
        if (!isAway(error)) throw error;
        await sleep(Math.min(this.#retryMs, Math.max(1, waitMs)), undefined, { signal: abort }).catch(
          () => {},
        );
        this.#retryMs = Math.min(this.#retryMs * 2, 2_000);
        if (performance.now() >= deadline) break;
      }
    }
    return { signals: [], position: this.#position };
  }

  close(): void {
    this.#closing.abort();
  }

  async #poll(limit: number, waitMs: number, abort: AbortSignal): Promise<SignalDocument[]> {
    const answer = await this.#transport.call<{ signals: SignalDocument[]; position: string }>(
      "GET",
      "/listen",
      {
        query: {
          ...filterQuery(this.#filter),
          position: this.#position,
          after_version: this.#place.afterVersion,
          since: this.#place.since?.toISOString(),
          limit: Math.min(limit, 1_000),
          timeout: waitMs / 1000,
        },
        timeoutMs: Math.ceil(waitMs) + TIMEOUT_MS,
        abort,
      },
    );
    this.#position = answer.position;
    return answer.signals;
  }
}

function filterQuery(filter: SignalFilter): Query {
  return { namespace: filter.namespace, key: keysOf(filter), sender: filter.sender };
}

function filterDocument(filter: SignalFilter) {
  return { namespace: filter.namespace, key: keysOf(filter), sender: filter.sender };
}

function parseProblem(text: string): { code?: string; detail?: unknown } {
  try {
    return JSON.parse(text) as { code?: string; detail?: unknown };
  } catch {
    return {};
  }
}
