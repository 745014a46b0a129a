/**
 * A running listener: claims its name, reads from its position, passes signals to its watcher and stores its position,
 * in the transaction of the effect where there are transactions.
 *
 * One sequential loop, so the position in memory covers everything before it: processed, parked (its key waits for a
 * retry) or a dead letter. A batch that fails is halved until the failing signal is alone; its key is parked and the
 * position moves past it. Signals of a parked key are not kept in memory: the signals of one key can be read again by
 * version.
 *
 * If the process dies before the commit, nothing happened and the next holder receives the signals again. If it dies
 * after, everything is stored. If the answer or the lease is lost, the state in memory is dropped and claimed again. After
 * a permanent error (refusal.ts) the listener ends with that error and reports it to its caller.
 */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError, messageOf } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import { CommitUnknownError, isTransient } from "../store/database/connection-error.ts";
import type { ListenerChange, RetryEntry } from "../store/signal/signals-listener.ts";
import { DeadLetters } from "./dead-letters.ts";
import { isFinal } from "./refusal.ts";
import type { Semaphore } from "./semaphore.ts";
import { readPosition, type Signal, type SignalFilter, type SignalStart, showPosition } from "./signal.ts";
import type {
  HeldListener,
  ListenerRecords,
  Listening,
  ListenOptions,
  SignalService,
  SignalWatcher,
  Subscription,
} from "./signal-service.ts";

export interface ListenerParts {
  readonly name: string;
  readonly filter: SignalFilter;
  readonly watcher: SignalWatcher;
  readonly options: ListenOptions;
  readonly service: Pick<SignalService, "subscribe" | "readKey">;
  readonly records: ListenerRecords;
  /** Shared by the listeners of a machine. */
  readonly turns?: Semaphore;
  readonly logger: Logger;
}

const LEASE_MS = 6_000;
const BATCH = 1_000;
const ATTEMPTS = 5;
const BACKOFF_MS = 1_000;
const BACKOFF_MAX_MS = 60_000;
const AWAY_MAX_MS = 2_000;
/** With this many parked keys a listener reads no new signals: the failure is not specific to a signal. */
const MAX_PARKED = 1_000;

const MAX_ERROR = 4_000;

/** An error of the watcher; any other error is not caused by the signal. */
class Refusal extends Error {}

export class Listener implements Listening {
  readonly #parts: ListenerParts;
  readonly #leaseMs: number;
  readonly #stop = new AbortController();
  readonly #run: Promise<void>;
  readonly #claimed = Promise.withResolvers<void>();
  /** True once `claimed` has resolved. */
  #isKnown = false;
  #held: HeldListener | null = null;
  #position: string | null = null;
  #bounds: { afterVersion: number | null; since: Date | null } = { afterVersion: null, since: null };
  #deadLetters = new DeadLetters();
  #hasRedeliveries = false;
  #renewAt = 0;

  constructor(parts: ListenerParts) {
    this.#parts = parts;
    this.#leaseMs = parts.options.leaseMs ?? LEASE_MS;
    this.#run = this.#loop();
    // Reported otherwise: by `onError`, or to the caller that awaits the claim. An end that neither `onError` nor a reader of
    // `done` receives stays an unhandled rejection.
    if (parts.options.onError !== undefined) this.#run.catch(() => {});
    this.#claimed.promise.catch(() => this.#run.catch(() => {}));
  }

  get isActive(): boolean {
    return this.#held !== null;
  }

  get position(): string | null {
    return this.#position;
  }

  get done(): Promise<void> {
    return this.#run;
  }

  /**
   * Resolves when the claim is decided: from then on no signal is missed. Rejects after a permanent error.
   */
  get claimed(): Promise<void> {
    return this.#claimed.promise;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#run.catch(() => {});
  }

  async #loop(): Promise<void> {
    let awayMs = 20;
    while (!this.#stop.signal.aborted) {
      try {
        if (await this.#claim()) {
          awayMs = 20;
          await this.#work();
        } else await this.#sleep(this.#leaseMs / 3);
      } catch (error) {
        if (isFinal(error)) this.#fail(error as EngineError);
        // The database or the service is unavailable, or another process holds the name. Retry in each case.
        this.#parts.logger.warn("restarting a signal listener", {
          listener: this.#parts.name,
          error: messageOf(error),
        });
        await this.#sleep(awayMs);
        awayMs = Math.min(awayMs * 2, AWAY_MAX_MS);
      } finally {
        await this.#release();
      }
    }
    this.#claimed.resolve();
  }

  #fail(error: EngineError): never {
    const { logger, name, options } = this.#parts;
    logger.error("a signal listener has ended", { listener: name, error: error.message });
    try {
      if (this.#isKnown) options.onError?.(error);
      else this.#claimed.reject(error);
    } catch (thrown) {
      logger.error("onError of a listener has failed", { listener: name, error: messageOf(thrown) });
    }
    throw error;
  }

  async #claim(): Promise<boolean> {
    const { filter, name, options, records } = this.#parts;
    const claim = { name, holder: randomUUID(), ttlMs: this.#leaseMs };
    const from: SignalStart = options.from ?? "now";
    const host = `${hostname()}:${process.pid}`;
    const claimed = await records.claim({ ...claim, host, filter, from });
    if (claimed !== null) {
      this.#held = claim;
      this.#renewAt = performance.now() + this.#leaseMs / 3;
      this.#position = showPosition(claimed.start.position);
      this.#deadLetters = new DeadLetters(claimed.retries);
      this.#hasRedeliveries = claimed.hasRedeliveries;
      this.#bounds = { afterVersion: claimed.start.afterVersion, since: claimed.start.since };
    }
    this.#isKnown = true;
    this.#claimed.resolve();
    return claimed !== null;
  }

  async #work(): Promise<void> {
    const { filter, options, service } = this.#parts;
    const limit = options.batch ?? BATCH;
    const subscription: Subscription = service.subscribe(filter, {
      ...this.#bounds,
      position: this.#position!,
    });
    try {
      while (!this.#stop.signal.aborted) {
        if (this.#hasRedeliveries) await this.#redeliver();
        for (const entry of this.#deadLetters.due()) await this.#resume(entry, limit);
        const waitMs = Math.max(0, Math.min(this.#deadLetters.nextInMs(), this.#renewAt - performance.now()));
        if (this.#deadLetters.size < MAX_PARKED) {
          await this.#deliverNext(subscription, { limit, waitMs });
        } else await this.#sleep(waitMs);
        if (performance.now() >= this.#renewAt) await this.#commit({});
      }
      await this.#commit({});
    } finally {
      subscription.close();
    }
  }

  async #deliverNext(subscription: Subscription, wish: { limit: number; waitMs: number }): Promise<void> {
    const first = await subscription.next({ ...wish, abort: this.#stop.signal });
    if (first.signals.length === 0) {
      this.#position = first.position;
      return;
    }
    const done = await this.#parts.turns?.acquire();
    try {
      const room = wish.limit - first.signals.length;
      const more =
        done !== undefined && room > 0 ? await subscription.next({ limit: room, waitMs: 0 }) : null;
      await this.#deliver(more === null ? first.signals : [...first.signals, ...more.signals]);
      this.#position = more?.position ?? first.position;
    } finally {
      done?.();
    }
  }

  /** Signals in the order of the log; the position moves past each. */
  async #deliver(signals: readonly Signal[]): Promise<void> {
    const open = signals.filter((signal) => !this.#deadLetters.has(signal));
    const last = signals.at(-1);
    if (open.length === 0 || last === undefined) return;
    const position = readPosition(last.position);
    const error = await this.#attempt(open, { position });
    if (error === null) {
      this.#position = last.position;
      return;
    }
    if (open.length > 1) {
      const half = Math.ceil(open.length / 2);
      await this.#deliver(open.slice(0, half));
      await this.#deliver(open.slice(half));
      return;
    }
    await this.#refuse(open[0]!, { attempts: 0, error, change: { position } });
    this.#position = last.position;
  }

  /** A parked key that is due: its first signal alone, then the rest together. */
  async #resume(entry: RetryEntry, limit: number): Promise<void> {
    const { namespace, key } = entry;
    const signals = await this.#parts.service.readKey({
      namespace,
      key,
      sender: this.#parts.filter.sender,
      from: entry.version,
      upTo: this.#position!,
      limit,
    });
    const [first, ...rest] = signals;
    const isAll = signals.length < limit;
    if (first === undefined) return this.#unpark(entry);
    const error = await this.#attempt([first], this.#passing(first, isAll && rest.length === 0));
    if (error !== null) return this.#refuse(first, { attempts: entry.attempts, error, change: {} });
    if (rest.length === 0) return this.#passed(first, isAll);
    const last = rest.at(-1)!;
    if ((await this.#attempt(rest, this.#passing(last, isAll))) === null) return this.#passed(last, isAll);
    for (const signal of rest) {
      const isLast = isAll && signal === last;
      const failure = await this.#attempt([signal], this.#passing(signal, isLast));
      if (failure !== null) return this.#refuse(signal, { attempts: 0, error: failure, change: {} });
      this.#passed(signal, isLast);
    }
  }

  /** The change to store with the success of a parked key's signal: the key is released, or waits from the next signal on. */
  #passing({ key, namespace, version }: Signal, isLast: boolean): ListenerChange {
    if (isLast) return { unpark: [{ namespace, key }] };
    return { park: [{ namespace, key, version: version + 1, attempts: 0, error: null, inMs: 0 }] };
  }

  #passed({ key, namespace, version }: Signal, isLast: boolean): void {
    if (isLast) this.#deadLetters.delete({ namespace, key });
    else this.#deadLetters.set({ namespace, key, version: version + 1, attempts: 0, error: null, inMs: 0 });
  }

  async #unpark({ key, namespace }: RetryEntry): Promise<void> {
    await this.#commit({ unpark: [{ namespace, key }] });
    this.#deadLetters.delete({ namespace, key });
  }

  /** Another attempt has failed: schedule a retry, or make it a dead letter. */
  async #refuse(
    signal: Signal,
    failure: { readonly attempts: number; readonly error: string; readonly change: ListenerChange },
  ): Promise<void> {
    const { logger, name, options } = this.#parts;
    const { key, namespace, version } = signal;
    const attempts = failure.attempts + 1;
    const isOver = attempts >= (options.attempts ?? ATTEMPTS);
    const delay = Math.min((options.backoffMs ?? BACKOFF_MS) * 2 ** (attempts - 1), BACKOFF_MAX_MS);
    // The key of a dead letter continues with the next signal at once.
    const entry: RetryEntry = isOver
      ? { namespace, key, version: version + 1, attempts: 0, error: null, inMs: 0 }
      : { namespace, key, version, attempts, error: failure.error, inMs: delay };
    const deadLetters = isOver ? [{ version, attempts, error: failure.error }] : [];
    await this.#commit({ ...failure.change, park: [entry], deadLetters });
    this.#deadLetters.set(entry);
    const told = { listener: name, namespace, key, version, attempts, error: failure.error };
    if (isOver) logger.error("a signal became a dead letter", told);
    else logger.warn("could not process a signal", { ...told, again_in_ms: delay });
  }

  async #redeliver(): Promise<void> {
    for (const { id, signal } of await this.#parts.records.redeliveries(this.#parts.name)) {
      const error = await this.#attempt([signal], { redelivered: { id, error: null } });
      if (error !== null) await this.#commit({ redelivered: { id, error } });
    }
  }

  /** Null: processed and stored. Otherwise the error of the watcher. Throws if the signals are not the cause. */
  async #attempt(signals: readonly Signal[], change: ListenerChange): Promise<string | null> {
    try {
      await this.#commit({ ...change, processed: signals.length }, async (tx) => {
        try {
          await this.#parts.watcher.process(signals, tx);
        } catch (error) {
          if (isTransient(error) || error instanceof CommitUnknownError) throw error;
          throw new Refusal(messageOf(error), { cause: error });
        }
      });
      return null;
    } catch (error) {
      // In a form that the database can store.
      if (error instanceof Refusal) return error.message.replaceAll("\0", "").slice(0, MAX_ERROR);
      throw error;
    }
  }

  async #commit(change: ListenerChange, effect?: Parameters<ListenerRecords["commit"]>[2]): Promise<void> {
    const held = this.#held;
    if (held === null) throw new EngineError("SIGNAL_LISTENER_LOST", "The listener is not held.");
    const started = performance.now();
    // The position is stored with every change: a released key has processed signals up to it, and a holder that starts at
    // an earlier position would receive them again.
    const { position = readPosition(this.#position!) } = change;
    const { hasRedeliveries } = await this.#parts.records.commit(held, { ...change, position }, effect);
    this.#hasRedeliveries = hasRedeliveries;
    this.#renewAt = started + this.#leaseMs / 3;
  }

  async #release(): Promise<void> {
    const held = this.#held;
    this.#held = null;
    // If the release fails, the name is free after its lease has expired.
    if (held !== null) await this.#parts.records.release(held).catch(() => {});
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => {});
  }
}
