/**
 * The signal service: send, list, listen. Small, so that it can be replaced by any implementation that passes the
 * conformance suite (conformance.ts). Implementations here: on PostgreSQL (postgres-signals.ts, the default), and clients
 * of it over gRPC (grpc/client.ts) and HTTP (http-signals.ts).
 *
 * What every implementation guarantees:
 * - A signal is stored when `send` resolves. A signal sent twice under one client and sequence is stored once.
 * - A listener receives every matching signal from its start on, at least once, and the signals of one key in the order
 *   of their versions, independent of sender and commit time.
 * - One listener is active per name, in any process; when it ends, another takes over at its position. With
 *   transactions, the effect of a watcher and the position are stored together or not at all.
 * - A signal whose watcher throws is retried, later signals of its key wait for it, other keys continue; after a number
 *   of attempts it becomes a dead letter.
 */
import type { Connection } from "../store/database/database.ts";
import type { ClaimedListener, ListenerChange, ListenerClaim } from "../store/signal/signals-listener.ts";
import type { SentSignal, Signal, SignalFilter, SignalStart, SignalToSend } from "./signal.ts";

export interface SignalService {
  /** True if watchers receive a transaction. */
  readonly hasTransactions: boolean;
  /** Where listeners store their positions. */
  readonly records: ListenerRecords;
  /** Resolves when the signals are stored, with one result each, in the same order. */
  send(signals: readonly SignalToSend[]): Promise<SentSignal[]>;
  /** By version. */
  list(query: SignalListQuery): Promise<SignalPage>;
  /** A position in the log, for callers that keep it themselves. */
  position(start: SignalStart): Promise<SignalPlace>;
  /** The signals after a position, batch by batch, for callers that keep the position themselves. */
  subscribe(filter: SignalFilter, place: SignalPlace): Subscription;
  /** The signals of one key from a version on, up to a position in the log. */
  readKey(query: KeyQuery): Promise<Signal[]>;
  /** `name` null: nothing is stored, and the listener ends with this process. */
  listen(
    name: string | null,
    filter: SignalFilter,
    watcher: SignalWatcher,
    options?: ListenOptions,
  ): Promise<Listening>;
  deadLetters(listener?: string): Promise<readonly DeadLetter[]>;
  /** Ends the listeners and all open subscriptions. */
  close(): Promise<void>;
}

export interface SignalWatcher {
  /**
   * The signals of one key are in order. `tx`: the transaction that stores the listener's position, null without
   * transactions. If it throws, none of the signals counts as processed; they come again, in smaller batches.
   */
  process(signals: readonly Signal[], tx: Connection | null): void | Promise<void>;
}

export interface ListenOptions {
  /** For a listener with a new name, or without one. Default: "now". */
  readonly from?: SignalStart;
  /** Maximum number of signals in one call. */
  readonly batch?: number;
  /** How often a signal is tried before it becomes a dead letter. */
  readonly attempts?: number;
  /** Delay after the first failure; doubled at each further one. */
  readonly backoffMs?: number;
  readonly leaseMs?: number;
  /**
   * The listener has ended because of a permanent error, such as a revoked token. An error at the start rejects
   * `listen` instead.
   */
  readonly onError?: (error: Error) => void;
}

export interface Listening {
  /** False while another process is active under its name. */
  readonly isActive: boolean;
  /** Everything up to here is processed, except for retries and dead letters; null before it was first active. */
  readonly position: string | null;
  /**
   * Resolves when the listener was stopped. Rejects when it has ended because of an error: see `onError`. Without
   * `onError` and without a handler here, the rejection is unhandled and ends the process: a dead listener must not go unnoticed.
   */
  readonly done: Promise<void>;
  stop(): Promise<void>;
}

/** Where to continue, and which signals to skip. */
export interface SignalPlace {
  readonly position: string;
  readonly afterVersion?: number | null;
  readonly since?: Date | null;
}

export interface SignalBatch {
  readonly signals: readonly Signal[];
  /** Everything up to here was read. */
  readonly position: string;
}

export interface Subscription {
  /** Waits for the first signal up to `waitMs`; then the batch is empty. One call at a time. */
  next(options: NextOptions): Promise<SignalBatch>;
  close(): void;
}

export interface NextOptions {
  readonly limit: number;
  readonly waitMs: number;
  readonly abort?: AbortSignal | undefined;
}

export interface SignalListQuery extends SignalFilter {
  readonly version?: Bounds<number> | undefined;
  readonly time?: Bounds<Date> | undefined;
  readonly descending?: boolean | undefined;
  readonly limit?: number | undefined;
  /** `next` of the previous page. */
  readonly cursor?: string | null | undefined;
}

interface Bounds<T> {
  readonly gte?: T | null | undefined;
  readonly gt?: T | null | undefined;
  readonly lte?: T | null | undefined;
  readonly lt?: T | null | undefined;
}

export interface SignalPage {
  readonly signals: readonly Signal[];
  /** Null on the last page. */
  readonly next: string | null;
}

export interface KeyQuery {
  readonly namespace: string;
  readonly key: string;
  readonly sender?: string | undefined;
  readonly from: number;
  readonly upTo: string;
  readonly limit: number;
}

export interface DeadLetter {
  readonly id: number;
  readonly listener: string;
  readonly signal: Signal;
  readonly error: string;
  readonly attempts: number;
  readonly time: Date;
  readonly isRetried: boolean;
}

/** Where listeners store their state: in the database with transactions, or at the other end of a connection. */
export interface ListenerRecords {
  /** Null if another listener is active under this name. */
  claim(request: ClaimRequest): Promise<ClaimedListener | null>;
  /** `effect` first, then the change, as one transaction where there are transactions. Also renews the lease. */
  commit(
    claim: HeldListener,
    change: ListenerChange,
    effect?: (tx: Connection | null) => Promise<void>,
  ): Promise<{ hasRedeliveries: boolean }>;
  /** Dead letters with a requested retry. */
  redeliveries(name: string): Promise<readonly DeadLetter[]>;
  release(claim: HeldListener): Promise<void>;
}

export interface ClaimRequest extends HeldListener {
  readonly host: string;
  readonly filter: SignalFilter;
  readonly from: SignalStart;
}

export interface HeldListener extends ListenerClaim {
  readonly ttlMs: number;
}
