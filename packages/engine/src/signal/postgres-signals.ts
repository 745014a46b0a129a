/** The signal service on PostgreSQL: rows are authoritative, wake-ups only trigger polls. */

import type { WakeUps } from "../job/wake-up.ts";
import { likePattern } from "../model/signal/signal-names.ts";
import { EngineError } from "../service/errors.ts";
import { type Logger, silentLogger } from "../service/logger.ts";
import {
  CommitUnknownError,
  type Connection,
  type Database,
  isTransient,
  sqlState,
} from "../store/database/database.ts";
import { type SignalDraft, sendSignals } from "../store/signal/signals.ts";
import { listSignals } from "../store/signal/signals-list.ts";
import {
  LOG_BEGIN,
  type LogStart,
  startAfterVersion,
  startNow,
  startSince,
} from "../store/signal/signals-position.ts";
import { readKey } from "../store/signal/signals-read.ts";
import { listDeadLetters } from "../store/signal/signals-watch.ts";
import type { Listener } from "./listener.ts";
import { LogTail } from "./log-tail.ts";
import { deadLetterOf, postgresRecords } from "./postgres-records.ts";
import { type ListenArguments, RunningListeners } from "./running-listeners.ts";
import { Semaphore } from "./semaphore.ts";
import { Sender, showSent } from "./sender.ts";
import {
  DEFAULT_NAMESPACE,
  keysOf,
  readPosition,
  requireList,
  requireSendable,
  type SentSignal,
  type Signal,
  type SignalFilter,
  type SignalStart,
  type SignalToSend,
  showPosition,
  signalOf,
} from "./signal.ts";
import type {
  DeadLetter,
  KeyQuery,
  ListenerRecords,
  SignalListQuery,
  SignalPage,
  SignalPlace,
  SignalService,
  Subscription,
} from "./signal-service.ts";
import { LogSubscription } from "./subscription.ts";

export interface PostgresSignalsOptions {
  readonly database: Database;
  readonly wakeUps: Pick<WakeUps, "listen" | "onLocal" | "send" | "wantStates">;
  readonly logger?: Logger;
  /** The default sender of signals. */
  readonly sender?: string;
  /** Poll interval of the log without a wake-up: while NOTIFY works, and while it does not. */
  readonly idleMs?: number;
  readonly deafMs?: number;
}

const TURNS = 2;
const TURN_PATIENCE_MS = 100;
const PAGE = 100;
const MAX_PAGE = 1_000;
const MAX_LETTERS = 1_000;

export class PostgresSignals implements SignalService {
  readonly hasTransactions = true;
  readonly records: ListenerRecords;
  readonly #database: Database;
  readonly #wakeUps: PostgresSignalsOptions["wakeUps"];
  readonly #defaultSender: string;
  readonly #tail: LogTail;
  readonly #sender: Sender;
  readonly #listeners: RunningListeners;

  constructor(options: PostgresSignalsOptions) {
    const { database, logger = silentLogger, wakeUps } = options;
    this.#database = database;
    this.#wakeUps = wakeUps;
    this.#defaultSender = options.sender ?? "engine";
    this.records = postgresRecords(database, (from) => this.start(from));
    this.#listeners = new RunningListeners({
      service: this,
      records: this.records,
      start: (from) => this.start(from),
      turns: new Semaphore(TURNS, TURN_PATIENCE_MS),
      logger,
    });
    this.#tail = new LogTail({ ...options, logger });
    this.#sender = new Sender({
      store: (drafts) => sendSignals(database, drafts),
      onSent: () => wakeUps.send("signals"),
      isPassing,
    });
  }

  async send(signals: readonly SignalToSend[]): Promise<SentSignal[]> {
    const drafts = requireList(signals).map((each) => this.#draft(each));
    return showSent(drafts, await this.#sender.send(drafts));
  }

  /** In a transaction of the caller, which calls `announce` after its commit, or leaves it to the next poll. */
  async sendWithin(tx: Connection, signals: readonly SignalToSend[]): Promise<SentSignal[]> {
    const drafts = requireList(signals).map((each) => this.#draft(each));
    return showSent(drafts, await sendSignals(tx, drafts));
  }

  announce(): void {
    this.#wakeUps.send("signals");
  }

  async list(query: SignalListQuery): Promise<SignalPage> {
    const limit = Math.min(query.limit ?? PAGE, MAX_PAGE);
    const { cursor, descending = false } = query;
    const bound = cursor === null || cursor === undefined ? null : readCursor(cursor);
    const version = bound === null ? query.version : { ...query.version, [descending ? "lt" : "gt"]: bound };
    const rows = await listSignals(this.#database, {
      namespace: likePattern(query.namespace ?? DEFAULT_NAMESPACE),
      keys: keysOf(query).map(likePattern),
      sender: query.sender,
      version: bounds(version),
      time: bounds(query.time),
      descending,
      // One more than requested shows whether there is another page.
      limit: limit + 1,
    });
    const signals = rows.slice(0, limit).map(signalOf);
    return { signals, next: rows.length > limit ? String(signals.at(-1)?.version ?? 0) : null };
  }

  async position(start: SignalStart): Promise<SignalPlace> {
    const { position, ...rest } = await this.start(start);
    return { ...rest, position: showPosition(position) };
  }

  subscribe(filter: SignalFilter, place: SignalPlace): Subscription {
    return new LogSubscription({ database: this.#database, tail: this.#tail, filter, place });
  }

  async readKey({ upTo, ...query }: KeyQuery): Promise<Signal[]> {
    const sender = query.sender ?? null;
    const rows = await readKey(this.#database, { ...query, sender, upTo: readPosition(upTo) });
    return rows.map(signalOf);
  }

  listen(...call: ListenArguments): Promise<Listener> {
    return this.#listeners.listen(...call);
  }

  async deadLetters(listener?: string): Promise<DeadLetter[]> {
    const page = { limit: MAX_LETTERS, offset: 0, orderBy: ["id"] };
    return (await listDeadLetters(this.#database, { listener }, page)).rows.map(deadLetterOf);
  }

  async close(): Promise<void> {
    await this.#listeners.stop();
    await this.#sender.close();
    await this.#tail.close();
  }

  start(from: SignalStart): Promise<LogStart> {
    if (from === "now") return startNow(this.#database);
    if (from === "start") return Promise.resolve({ position: LOG_BEGIN, afterVersion: null, since: null });
    if ("position" in from)
      return Promise.resolve({ position: readPosition(from.position), afterVersion: null, since: null });
    if ("since" in from) return startSince(this.#database, from.since);
    return startAfterVersion(this.#database, from.afterVersion);
  }

  #draft(signal: SignalToSend): SignalDraft {
    requireSendable(signal);
    const { client, key, namespace = DEFAULT_NAMESPACE, sender = this.#defaultSender, sequence } = signal;
    return { namespace, key, value: signal.value ?? null, sender, client, sequence };
  }
}

/** Every signal has a client and a sequence, so it can be sent again and is stored once. */
function isPassing(error: unknown): boolean {
  return error instanceof CommitUnknownError || isTransient(error) || CONTENDED.has(sqlState(error) ?? "");
}

/** Serialisation failure, deadlock, lock timeout. */
const CONTENDED: ReadonlySet<string> = new Set(["40001", "40P01", "55P03"]);

function bounds<T>(range: SignalListQuery["version"] | SignalListQuery["time"]) {
  if (range === undefined) return undefined;
  const { gt = null, gte = null, lt = null, lte = null } = range;
  return { gt, gte, lt, lte } as { gt: T | null; gte: T | null; lt: T | null; lte: T | null };
}

function readCursor(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new EngineError("SIGNAL_POSITION_INVALID", `Invalid signal cursor "${text.slice(0, 60)}".`);
}
