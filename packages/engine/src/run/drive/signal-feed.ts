/**
 * Reads the signal log once for all signal-driven runs of a job. It reads when there is a reason: a wake-up, a run that was
 * just loaded, a signal behind an older open transaction, and the heartbeat in case a wake-up was lost. Without
 * signal-driven runs it reads nothing.
 *
 * Signals are evaluated in the turn that stores the positions of their runs: signals that are read again after a failed
 * batch count once.
 */
import type { WakeUps } from "../../job/wake-up.ts";
import type { Database } from "../../store/database/database.ts";
import { comparePositions } from "../../store/signal/signals-position.ts";
import { type LogEnd, readLog, type SignalRow } from "../../store/signal/signals-read.ts";
import type { RunActor } from "../loaded/run-actor.ts";
import { InboxIndex, type SignalInbox } from "./signal-inbox.ts";

export interface SignalFeedOptions {
  readonly database: Database;
  readonly wakeUps: Pick<WakeUps, "wantStates">;
  readonly wake: () => void;
}

const PAGE = 2_000;
const HELD_MAX_MS = 64;
const LATE_LOOK_MS = 10_000;

interface Reading extends LogEnd {
  readonly inboxes: readonly SignalInbox[];
}

export class SignalFeed {
  readonly #options: SignalFeedOptions;
  readonly #actors = new Map<number, RunActor>();
  readonly #names = new InboxIndex();
  /** The inboxes of all runs, with their run. */
  readonly #inboxes = new Map<SignalInbox, RunActor>();
  /** Inboxes that were left out because they are full. */
  readonly #full = new Set<SignalInbox>();
  /** Runs that listen to signals of the engine. */
  readonly #wantStates = new Set<RunActor>();
  #isDue = false;
  #heldMs = 1;
  #readAt = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: SignalFeedOptions) {
    this.#options = options;
  }

  add(actor: RunActor): void {
    if (!actor.subscriptions) return;
    this.#actors.set(actor.id, actor);
    for (const inbox of actor.subscriptions.inboxes) {
      this.#inboxes.set(inbox, actor);
      this.#names.add(inbox);
    }
    if (actor.subscriptions.wantsStates) this.#wantStates.add(actor);
    this.#requestStates();
    this.#isDue = true;
  }

  drop(actor: RunActor): void {
    if (this.#actors.get(actor.id) !== actor) return;
    this.#actors.delete(actor.id);
    this.#wantStates.delete(actor);
    this.#requestStates();
    for (const inbox of actor.subscriptions!.inboxes) {
      this.#inboxes.delete(inbox);
      this.#full.delete(inbox);
      this.#names.drop(inbox);
    }
  }

  /** Signals may have been sent; "states": by the engine itself. */
  requestRead(topic: "signals" | "states" = "signals"): void {
    if ((topic === "states" ? this.#wantStates : this.#actors).size === 0) return;
    this.#isDue = true;
    this.#options.wake();
  }

  /** A full inbox of this run may have room again. */
  refill(actor: RunActor): void {
    for (const inbox of actor.subscriptions?.inboxes ?? [])
      if (inbox.isEmpty && this.#full.delete(inbox)) this.requestRead();
  }

  stop(): void {
    this.#wantStates.clear();
    this.#requestStates();
    if (this.#timer) clearTimeout(this.#timer);
  }

  /** Runs whose stored position is old; checked periodically. */
  *late(): Iterable<RunActor> {
    if (performance.now() - this.#readAt < LATE_LOOK_MS) return;
    this.#readAt = performance.now();
    for (const actor of this.#actors.values()) if (actor.subscriptions?.isLate) yield actor;
  }

  /** Reads new signals into the inboxes. Returns the runs that have signals. */
  async read(): Promise<ReadonlySet<RunActor>> {
    const concerned = new Set<RunActor>();
    if (!this.#isDue || this.#actors.size === 0) return concerned;
    this.#isDue = false;
    try {
      for (const group of this.#groups()) {
        const reading = await this.#readFor(group);
        for (const actor of this.#hand(reading)) concerned.add(actor);
        if (reading.isFull) this.requestRead();
        else if (reading.isHeld) this.#scheduleRead();
        else this.#heldMs = 1;
      }
    } catch (error) {
      this.#isDue = true;
      throw error;
    }
    return concerned;
  }

  /** The inboxes at the end of the log, and separately those behind, which must not delay the others. */
  #groups(): SignalInbox[][] {
    const willing: SignalInbox[] = [];
    for (const inbox of this.#inboxes.keys()) {
      if (inbox.isWilling) willing.push(inbox);
      else this.#full.add(inbox);
    }
    if (willing.length === 0) return [];
    const head = willing.map(({ readTo }) => readTo).reduce((a, b) => (comparePositions(a, b) < 0 ? b : a));
    const behind = willing.filter(({ readTo }) => comparePositions(readTo, head) < 0);
    const ahead = willing.filter(({ readTo }) => comparePositions(readTo, head) === 0);
    return behind.length === 0 ? [ahead] : [ahead, behind];
  }

  async #readFor(inboxes: readonly SignalInbox[]): Promise<Reading> {
    const { database } = this.#options;
    // From the earliest position on: the others skip what they have read.
    const after = inboxes.map(({ readTo }) => readTo).reduce((a, b) => (comparePositions(a, b) < 0 ? a : b));
    const namespaces = new Set(inboxes.flatMap(({ names }) => names.map(({ namespace }) => namespace)));
    const hasPattern = [...namespaces].some((namespace) => namespace.includes("*"));
    const end = await readLog(database, {
      after,
      namespaces: hasPattern ? null : [...namespaces],
      limit: PAGE,
    });
    return { ...end, inboxes };
  }

  #hand({ inboxes, position, rows }: Reading): RunActor[] {
    const portions = new Map<SignalInbox, SignalRow[]>(inboxes.map((inbox) => [inbox, []]));
    for (const row of rows) for (const inbox of this.#names.concernedBy(row)) portions.get(inbox)?.push(row);
    for (const [inbox, portion] of portions) inbox.add(portion, position);
    // A run may have been dropped while the log was read.
    return inboxes.filter(({ isEmpty }) => !isEmpty).flatMap((inbox) => this.#inboxes.get(inbox) ?? []);
  }

  #requestStates(): void {
    this.#options.wakeUps.wantStates(this, this.#wantStates.size > 0);
  }

  #scheduleRead(): void {
    this.#heldMs = Math.min(this.#heldMs * 2, HELD_MAX_MS);
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.requestRead(), this.#heldMs);
  }
}
