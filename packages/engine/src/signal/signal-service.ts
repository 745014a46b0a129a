/**
 * The signal service: send, list, listen. Small, so that it can be replaced: whatever implements it and passes the
 * conformance suite (conformance.ts) will do. Implementations here: on PostgreSQL (postgres-signals.ts, the default),
 * and clients of it over gRPC (grpc/client.ts) and HTTP (http-signals.ts).
 *
 * What every implementation promises:
 * - A signal is stored when `send` resolves. A signal sent twice under one client and sequence is stored once.
 * - A listener gets every signal that matches, from where it begins, at least once, and the signals of one key in the
 *   order of their versions, whoever sent them and whenever they committed.
 * - Under one name one listener is active at a time, in whatever process; another takes over when it is gone, from
 *   where it was. With transactions, the effect of a watcher and the position are stored together or not at all.
 * - A signal whose watcher throws comes again, later signals of its key wait for it, other keys go on; after a number
 *   of attempts it is a dead letter.
 */
import type { Connection } from "../store/database/database.ts";
import type { ClaimedListener, ListenerChange, ListenerClaim } from "../store/signal/signals-listener.ts";
import type { SentSignal, Signal, SignalFilter, SignalStart, SignalToSend } from "./signal.ts";

export interface SignalService {
  /** Whether watchers are given a transaction. */
  readonly hasTransactions: boolean;
  /** Where listeners keep how far they have come. */
  readonly records: ListenerRecords;
  /** Resolves when they are stored; answers one entry for each, in their order. */
  send(signals: readonly SignalToSend[]): Promise<SentSignal[]>;
  /** By version. */
  list(query: SignalListQuery): Promise<SignalPage>;
  /** A place in the log, for those who keep it themselves. */
  position(start: SignalStart): Promise<SignalPlace>;
  /** What comes after a place, batch after batch, for those who keep the place themselves. */
  subscribe(filter: SignalFilter, place: SignalPlace): Subscription;
  /** The signals of one key from a version on, up to a position in the log. */
  readKey(query: KeyQuery): Promise<Signal[]>;
  /** `name` null: nothing is stored about it; it ends with this process. */
  listen(
    name: string | null,
    filter: SignalFilter,
    watcher: SignalWatcher,
    options?: ListenOptions,
  ): Promise<Listening>;
  deadLetters(listener?: string): Promise<readonly DeadLetter[]>;
  /** Ends the listeners and whatever else is open. */
  close(): Promise<void>;
}

export interface SignalWatcher {
  /**
   * The signals of one key are in order. `tx`: the transaction that stores the listener's position, null where there
   * are none. Throw, and none of these counts as dealt with; they come again, then in smaller portions.
   */
  process(signals: readonly Signal[], tx: Connection | null): void | Promise<void>;
}

export interface ListenOptions {
  /** For a listener whose name is new, or that has none; "now" unless told. */
  readonly from?: SignalStart;
  /** How many signals at most in one call. */
  readonly batch?: number;
  /** How often a signal is tried before it is a dead letter. */
  readonly attempts?: number;
  /** How long it waits after the first failure; doubled at each. */
  readonly backoffMs?: number;
  readonly leaseMs?: number;
  /**
   * It has ended because of something that no other attempt can change, such as a token that was revoked. What is so
   * from the beginning rejects `listen` instead.
   */
  readonly onError?: (error: Error) => void;
}

export interface Listening {
  /** False while another process is active under its name. */
  readonly isActive: boolean;
  /** Everything up to here is dealt with, retries and dead letters aside; null before it was first active. */
  readonly position: string | null;
  /**
   * Resolves when it has been stopped. Rejects when it has ended by itself: see `onError`. Without that, and with nobody
   * looking here, the rejection is unhandled, as Node says, and ends the process: a dead listener is not to be overlooked.
   */
  readonly done: Promise<void>;
  stop(): Promise<void>;
}

/** Where to go on, and what to leave out all the same. */
export interface SignalPlace {
  readonly position: string;
  readonly afterVersion?: number | null;
  readonly since?: Date | null;
}

export interface SignalBatch {
  readonly signals: readonly Signal[];
  /** Everything up to here was looked at. */
  readonly position: string;
}

export interface Subscription {
  /** Waits for the first signal up to `waitMs`; then the batch is empty. One call at a time. */
  next(options: { limit: number; waitMs: number; abort?: AbortSignal | undefined }): Promise<SignalBatch>;
  close(): void;
}

export interface SignalListQuery extends SignalFilter {
  readonly version?: Bounds<number> | undefined;
  readonly time?: Bounds<Date> | undefined;
  readonly descending?: boolean | undefined;
  readonly limit?: number | undefined;
  /** `next` of the page before. */
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
  /** null: that was all. */
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

/** Where listeners keep what they know: with transactions in the database, or at the other end of a connection. */
export interface ListenerRecords {
  /** null: another is active under this name. */
  claim(request: ClaimRequest): Promise<ClaimedListener | null>;
  /** `effect` first, then the change, as one transaction where there are transactions. Also prolongs the lease. */
  commit(
    claim: HeldListener,
    change: ListenerChange,
    effect?: (tx: Connection | null) => Promise<void>,
  ): Promise<{ hasRedeliveries: boolean }>;
  /** Dead letters that are to be tried again. */
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
