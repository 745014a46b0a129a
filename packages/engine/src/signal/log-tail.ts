/**
 * The end of the signal log, read once for all followers in this process. Each follower receives the matching signals.
 * Signals from before it joined, or from while its buffer was full, it reads on its own (subscription.ts).
 *
 * When to poll: at a wake-up; shortly after, while signals arrive, because NOTIFY is sent at most every 50 ms; soon, if
 * an older open transaction hides a stored signal, because its end sends no wake-up; and periodically, because wake-ups
 * get lost. With NOTIFY off, the periodic poll becomes more frequent.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fitsPattern, isPattern } from "@tradewind/sdk/signal-names";
import { publishesStates, type Topic, type WakeUps } from "../job/wake-up.ts";
import { isReserved } from "../model/signal/signal-names.ts";
import { messageOf } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import { WakeableSleep } from "../service/wakeable-sleep.ts";
import type { Database, Listening } from "../store/database/database.ts";
import { comparePositions, type LogPosition, startNow } from "../store/signal/signals-position.ts";
import { readLog } from "../store/signal/signals-read.ts";
import { DEFAULT_NAMESPACE, keysOf, type Signal, type SignalFilter, signalOf } from "./signal.ts";

export interface Follower {
  readonly filter: SignalFilter;
  /** Receives everything after `head` from now on. Never called during one of its own calls. */
  joined(head: LogPosition): void;
  hand(signals: readonly Signal[]): void;
}

export interface LogTailOptions {
  readonly database: Database;
  readonly wakeUps: Pick<WakeUps, "listen" | "onLocal" | "wantStates">;
  readonly logger: Logger;
  /** Poll interval without a wake-up: while NOTIFY works, and while it does not. */
  readonly idleMs?: number;
  readonly deafMs?: number;
  /** Interval between polls while signals arrive, so that they are read in batches. */
  readonly flowMs?: number;
}

const PAGE = 2_000;
const FLOW_MS = 4;
/** How long after the last signal it polls at that rate without a wake-up. */
const AFTERGLOW_MS = 60;
const HELD_MAX_MS = 64;
const AWAY_MAX_MS = 1_000;

export class LogTail {
  readonly #options: LogTailOptions;
  readonly #followers = new Set<Follower>();
  readonly #joining = new Set<Follower>();
  readonly #sleep = new WakeableSleep();
  #exact = new Map<string, Follower[]>();
  #wild: Follower[] = [];
  #namespaces: readonly string[] | null = [];
  /** True if a follower reads the engine's own signals, which are frequent; others are not woken for them. */
  #wantsStates = false;
  #head: LogPosition | null = null;
  #running: Promise<void> | null = null;
  #listening: Promise<Listening | null> | null = null;
  #offLocal: (() => void) | null = null;
  #isCalled = false;
  #isClosed = false;

  constructor(options: LogTailOptions) {
    this.#options = options;
  }

  /** Everything up to here was delivered; null without followers. */
  get head(): LogPosition | null {
    return this.#head;
  }

  follow(follower: Follower): void {
    this.#joining.add(follower);
    this.#call();
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
      this.#head = null;
    });
  }

  leave(follower: Follower): void {
    this.#joining.delete(follower);
    if (this.#followers.delete(follower)) this.#index();
    if (this.#followers.size + this.#joining.size === 0) this.#call();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#options.wakeUps.wantStates(this, false);
    this.#offLocal?.();
    this.#call();
    await this.#running;
    await (await this.#listening)?.close();
  }

  async #run(): Promise<void> {
    this.#attend();
    let awayMs = 10;
    let heldMs = 1;
    let flowedAt = Number.NEGATIVE_INFINITY;
    while (!this.#isClosed && this.#followers.size + this.#joining.size > 0) {
      try {
        this.#head ??= (await startNow(this.#options.database)).position;
        // Between two reads, so that no read in progress misses the filter of a new follower.
        this.#admit();
        // A signal that was just stored may become readable at once, however long another one has been hidden.
        if (this.#isCalled) heldMs = 1;
        this.#isCalled = false;
        const { isFull, isHeld, position, rows } = await readLog(this.#options.database, {
          after: this.#head,
          namespaces: this.#namespaces,
          limit: PAGE,
        });
        awayMs = 10;
        this.#head = position;
        this.#hand(rows.map(signalOf));
        if (isFull) continue;
        const now = performance.now();
        if (rows.length > 0) flowedAt = now;
        heldMs = isHeld ? Math.min(heldMs * 2, HELD_MAX_MS) : 1;
        const isFlowing = now - flowedAt < AFTERGLOW_MS;
        if (isFlowing) await sleep(this.#options.flowMs ?? FLOW_MS);
        if (!isFlowing) await this.#rest(isHeld ? heldMs : this.#idleMs(await this.#listening));
      } catch (error) {
        this.#options.logger.warn("could not read signals", { error: messageOf(error) });
        await this.#rest(awayMs);
        awayMs = Math.min(awayMs * 2, AWAY_MAX_MS);
      }
    }
  }

  /** A LISTEN connection, from the first follower on; without one, polls are more frequent. */
  #attend(): void {
    const hear = (topic: Topic | "") => {
      if (topic === "signals" || topic === "" || (this.#wantsStates && publishesStates(topic))) this.#call();
    };
    this.#offLocal ??= this.#options.wakeUps.onLocal(hear);
    this.#listening ??= this.#options.wakeUps
      .listen(hear)
      .then((listening) => {
        // Catches up on wake-ups from before the connection.
        this.#call();
        return listening;
      })
      .catch(() => {
        this.#listening = null;
        return null;
      });
  }

  #idleMs(listening: Listening | null): number {
    if (listening === null) this.#attend();
    return listening?.isUp ? (this.#options.idleMs ?? 2_000) : (this.#options.deafMs ?? 100);
  }

  #call(): void {
    this.#isCalled = true;
    this.#sleep.wake();
  }

  async #rest(ms: number): Promise<void> {
    if (this.#isCalled || this.#isClosed) return;
    await this.#sleep.sleep(ms);
  }

  #admit(): void {
    if (this.#joining.size === 0) return;
    for (const follower of this.#joining) {
      this.#followers.add(follower);
      follower.joined(this.#head!);
    }
    this.#joining.clear();
    this.#index();
  }

  #hand(signals: readonly Signal[]): void {
    const portions = new Map<Follower, Signal[]>();
    const give = (follower: Follower, signal: Signal) => {
      const portion = portions.get(follower);
      if (portion === undefined) portions.set(follower, [signal]);
      else portion.push(signal);
    };
    for (const signal of signals) {
      for (const follower of this.#exact.get(nameOf(signal.namespace, signal.key)) ?? [])
        give(follower, signal);
      for (const follower of this.#wild) if (isWanted(follower.filter, signal)) give(follower, signal);
    }
    // All followers: an empty portion reports that the head has moved.
    for (const follower of this.#followers) follower.hand(portions.get(follower) ?? []);
  }

  #index(): void {
    this.#exact = new Map();
    this.#wild = [];
    const namespaces = new Set<string>();
    for (const follower of this.#followers) {
      const { namespace = DEFAULT_NAMESPACE } = follower.filter;
      namespaces.add(namespace);
      const keys = keysOf(follower.filter);
      if (isPattern(namespace) || keys.some(isPattern)) this.#wild.push(follower);
      else
        for (const key of new Set(keys)) {
          const name = nameOf(namespace, key);
          this.#exact.set(name, [...(this.#exact.get(name) ?? []), follower]);
        }
    }
    this.#namespaces = [...namespaces].some(isPattern) ? null : [...namespaces];
    this.#wantsStates = [...namespaces].some(isReserved);
    this.#options.wakeUps.wantStates(this, this.#wantsStates);
  }
}

export function isAfter(a: LogPosition, b: LogPosition): boolean {
  return comparePositions(a, b) > 0;
}

function isWanted(filter: SignalFilter, { key, namespace }: Signal): boolean {
  return (
    fitsPattern(filter.namespace ?? DEFAULT_NAMESPACE, namespace) &&
    keysOf(filter).some((pattern) => fitsPattern(pattern, key))
  );
}

function nameOf(namespace: string, key: string): string {
  return `${namespace}\n${key}`;
}
