/**
 * A listener at work: claims its name, reads from its place, hands signals to its watcher and stores how far it has
 * come, in the transaction of the effect where there are transactions.
 *
 * One loop, one thing at a time, so the position in memory is always that of everything before: dealt with, parked
 * (its key waits for another try) or a dead letter. A batch that fails is halved until the guilty signal stands alone;
 * its key is parked and the position goes on past it. What a parked key holds back is not kept anywhere: the signals
 * of one key can be read again by version.
 *
 * Dies before the commit: nothing happened, the signals come again to whoever takes over. Dies after it: all of it is
 * stored. The answer is lost, or the lease: everything in memory is thrown away and claimed again. Refused for good
 * (refusal.ts): it ends with that error, and whoever asked for it is told.
 */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError, messageOf } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import { CommitUnknownError, isTransient } from "../store/database/connection-error.ts";
import type { ListenerChange, RetryEntry } from "../store/signal/signals-listener.ts";
import { Parked } from "./parked.ts";
import { isFinal } from "./refusal.ts";
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
import type { Turns } from "./turns.ts";

export interface ListenerParts {
  readonly name: string;
  readonly filter: SignalFilter;
  readonly watcher: SignalWatcher;
  readonly options: ListenOptions;
  readonly service: Pick<SignalService, "subscribe" | "readKey">;
  readonly records: ListenerRecords;
  /** Where many listeners share a machine. */
  readonly turns?: Turns;
  readonly logger: Logger;
}

const LEASE_MS = 6_000;
const BATCH = 1_000;
const ATTEMPTS = 5;
const BACKOFF_MS = 1_000;
const BACKOFF_MAX_MS = 60_000;
const AWAY_MAX_MS = 2_000;
/** With so many keys to be tried again a listener takes on no new signals: something is wrong with all of them. */
const MAX_PARKED = 1_000;

const MAX_ERROR = 4_000;

/** Thrown by the watcher; anything else that goes wrong is not the signal's fault. */
class Refusal extends Error {}

export class Listener implements Listening {
  readonly #parts: ListenerParts;
  readonly #leaseMs: number;
  readonly #stop = new AbortController();
  readonly #run: Promise<void>;
  readonly #claimed = Promise.withResolvers<void>();
  /** Whether `claimed` has resolved. */
  #isKnown = false;
  #held: HeldListener | null = null;
  #position: string | null = null;
  #bounds: { afterVersion: number | null; since: Date | null } = { afterVersion: null, since: null };
  #parked = new Parked();
  #hasRedeliveries = false;
  #renewAt = 0;

  constructor(parts: ListenerParts) {
    this.#parts = parts;
    this.#leaseMs = parts.options.leaseMs ?? LEASE_MS;
    this.#run = this.#loop();
    // Told otherwise: by `onError`, or to who waits for the claim. An end that nobody is told of, and nobody looks at
    // with `done`, stays a rejection that nobody has handled.
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
   * Resolves when it is known whether the name is free: from then on nothing that is sent is missed. Rejects when that
   * can never be.
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
        if (isFinal(error)) this.#giveUp(error as EngineError);
        // The database, or the other end, is away; or another process has the name. Either way: look again.
        this.#parts.logger.warn("a listener of signals starts again", {
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

  #giveUp(error: EngineError): never {
    const { logger, name, options } = this.#parts;
    logger.error("a listener of signals has ended", { listener: name, error: error.message });
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
      this.#parked = new Parked(claimed.retries);
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
        for (const entry of this.#parked.due()) await this.#resume(entry, limit);
        const waitMs = Math.max(0, Math.min(this.#parked.nextInMs(), this.#renewAt - performance.now()));
        if (this.#parked.size < MAX_PARKED) {
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
    const done = await this.#parts.turns?.take();
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

  /** Signals in the order of the log; the position goes on past each. */
  async #deliver(signals: readonly Signal[]): Promise<void> {
    const open = signals.filter((signal) => !this.#parked.has(signal));
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

  /** A parked key whose time has come: its first signal alone, then the rest together. */
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

  /** What to store with the success of a parked key's signal: the key waits no more, or from the next one on. */
  #passing({ key, namespace, version }: Signal, isLast: boolean): ListenerChange {
    if (isLast) return { unpark: [{ namespace, key }] };
    return { park: [{ namespace, key, version: version + 1, attempts: 0, error: null, inMs: 0 }] };
  }

  #passed({ key, namespace, version }: Signal, isLast: boolean): void {
    if (isLast) this.#parked.delete({ namespace, key });
    else this.#parked.set({ namespace, key, version: version + 1, attempts: 0, error: null, inMs: 0 });
  }

  async #unpark({ key, namespace }: RetryEntry): Promise<void> {
    await this.#commit({ unpark: [{ namespace, key }] });
    this.#parked.delete({ namespace, key });
  }

  /** One attempt more has failed: again later, or never. */
  async #refuse(
    signal: Signal,
    failure: { readonly attempts: number; readonly error: string; readonly change: ListenerChange },
  ): Promise<void> {
    const { logger, name, options } = this.#parts;
    const { key, namespace, version } = signal;
    const attempts = failure.attempts + 1;
    const isOver = attempts >= (options.attempts ?? ATTEMPTS);
    const delay = Math.min((options.backoffMs ?? BACKOFF_MS) * 2 ** (attempts - 1), BACKOFF_MAX_MS);
    // A dead letter's key goes on with the next signal, at once.
    const entry: RetryEntry = isOver
      ? { namespace, key, version: version + 1, attempts: 0, error: null, inMs: 0 }
      : { namespace, key, version, attempts, error: failure.error, inMs: delay };
    const deadLetters = isOver ? [{ version, attempts, error: failure.error }] : [];
    await this.#commit({ ...failure.change, park: [entry], deadLetters });
    this.#parked.set(entry);
    const told = { listener: name, namespace, key, version, attempts, error: failure.error };
    if (isOver) logger.error("a signal was given up", told);
    else logger.warn("a signal could not be dealt with", { ...told, again_in_ms: delay });
  }

  async #redeliver(): Promise<void> {
    for (const { id, signal } of await this.#parts.records.redeliveries(this.#parts.name)) {
      const error = await this.#attempt([signal], { redelivered: { id, error: null } });
      if (error !== null) await this.#commit({ redelivered: { id, error } });
    }
  }

  /** null: dealt with, and stored. Else what the watcher said. Throws where the signals are not to blame. */
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
      // As the database can keep it.
      if (error instanceof Refusal) return error.message.replaceAll("\0", "").slice(0, MAX_ERROR);
      throw error;
    }
  }

  async #commit(change: ListenerChange, effect?: Parameters<ListenerRecords["commit"]>[2]): Promise<void> {
    const held = this.#held;
    if (held === null) throw new EngineError("SIGNAL_LISTENER_LOST", "The listener is not held.");
    const started = performance.now();
    // The position goes along with everything: a key that waits no more has dealt with signals up to it, and they would
    // come again to whoever begins at an earlier one.
    const { position = readPosition(this.#position!) } = change;
    const { hasRedeliveries } = await this.#parts.records.commit(held, { ...change, position }, effect);
    this.#hasRedeliveries = hasRedeliveries;
    this.#renewAt = started + this.#leaseMs / 3;
  }

  async #release(): Promise<void> {
    const held = this.#held;
    this.#held = null;
    // Not let go of, it is free again when its lease is over.
    if (held !== null) await this.#parts.records.release(held).catch(() => {});
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => {});
  }
}
