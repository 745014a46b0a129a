/**
 * The signal log, read once for all runs of a job that something drives. It looks when there is a reason to: a wake-up,
 * a run that was just loaded, something stored that an older open transaction holds back, and the heartbeat in case a
 * wake-up got lost. While no run is driven it asks nothing.
 *
 * What is read is put to the runs in the turn that stores their positions: read again after a failed batch, it counts
 * once.
 */
import type { WakeUps } from "../signal/wake-up.ts";
import type { Database } from "../store/database.ts";
import { comparePositions } from "../store/signals-position.ts";
import { type LogEnd, readLog, type SignalRow } from "../store/signals-read.ts";
import type { RunActor } from "./run-actor.ts";
import { RunNames } from "./run-names.ts";

export interface SignalFeedOptions {
  readonly database: Database;
  readonly wakeUps: Pick<WakeUps, "wantStates">;
  readonly wake: () => void;
}

const PAGE = 2_000;
const HELD_MAX_MS = 64;
const LATE_LOOK_MS = 10_000;

interface Reading extends LogEnd {
  readonly actors: readonly RunActor[];
}

export class SignalFeed {
  readonly #options: SignalFeedOptions;
  readonly #actors = new Map<number, RunActor>();
  readonly #names = new RunNames();
  /** Runs that have been passed over because they had too much to do. */
  readonly #full = new Set<RunActor>();
  /** Runs that listen to what the engine itself tells. */
  readonly #wantStates = new Set<RunActor>();
  #isDue = false;
  #heldMs = 1;
  #lookedAt = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: SignalFeedOptions) {
    this.#options = options;
  }

  add(actor: RunActor): void {
    if (!actor.ears) return;
    this.#actors.set(actor.id, actor);
    this.#names.add(actor, actor.ears.names);
    if (actor.ears.wantsStates) this.#wantStates.add(actor);
    this.#askForStates();
    this.#isDue = true;
  }

  drop(actor: RunActor): void {
    if (this.#actors.get(actor.id) !== actor) return;
    this.#actors.delete(actor.id);
    this.#full.delete(actor);
    this.#wantStates.delete(actor);
    this.#askForStates();
    this.#names.drop(actor, actor.ears!.names);
  }

  /** Something may have been sent; "states": by the engine itself. */
  ask(topic: "signals" | "states" = "signals"): void {
    if ((topic === "states" ? this.#wantStates : this.#actors).size === 0) return;
    this.#isDue = true;
    this.#options.wake();
  }

  /** A run that had too much to do may take more. */
  refill(actor: RunActor): void {
    if (this.#full.delete(actor)) this.ask();
  }

  stop(): void {
    this.#wantStates.clear();
    this.#askForStates();
    if (this.#timer) clearTimeout(this.#timer);
  }

  /** Runs whose stored position has lagged behind for long; looked for now and then. */
  *late(): Iterable<RunActor> {
    if (performance.now() - this.#lookedAt < LATE_LOOK_MS) return;
    this.#lookedAt = performance.now();
    for (const actor of this.#actors.values()) if (actor.ears?.isLate) yield actor;
  }

  /** What was sent since, handed to the runs it may concern: those to be heard. */
  async read(): Promise<ReadonlySet<RunActor>> {
    const concerned = new Set<RunActor>();
    if (!this.#isDue || this.#actors.size === 0) return concerned;
    this.#isDue = false;
    try {
      for (const group of this.#groups()) {
        const reading = await this.#readFor(group);
        for (const actor of this.#hand(reading)) concerned.add(actor);
        if (reading.isFull) this.ask();
        else if (reading.isHeld) this.#lookAgain();
        else this.#heldMs = 1;
      }
    } catch (error) {
      this.#isDue = true;
      throw error;
    }
    return concerned;
  }

  /** Runs at the end of the log, and apart from them those behind: they must not hold up the others. */
  #groups(): RunActor[][] {
    const willing: RunActor[] = [];
    for (const actor of this.#actors.values()) {
      if (actor.ears?.isWilling) willing.push(actor);
      else this.#full.add(actor);
    }
    if (willing.length === 0) return [];
    const at = (actor: RunActor) => actor.ears!.readTo;
    const head = willing.map(at).reduce((a, b) => (comparePositions(a, b) < 0 ? b : a));
    const behind = willing.filter((actor) => comparePositions(at(actor), head) < 0);
    const ahead = willing.filter((actor) => comparePositions(at(actor), head) === 0);
    return behind.length === 0 ? [ahead] : [ahead, behind];
  }

  async #readFor(actors: readonly RunActor[]): Promise<Reading> {
    const { database } = this.#options;
    // From the farthest behind on: the others leave out what they have read.
    const after = actors
      .map(({ ears }) => ears!.readTo)
      .reduce((a, b) => (comparePositions(a, b) < 0 ? a : b));
    const namespaces = new Set(actors.flatMap(({ ears }) => ears!.names.map(({ namespace }) => namespace)));
    const hasPattern = [...namespaces].some((namespace) => namespace.includes("*"));
    const end = await readLog(database, {
      after,
      namespaces: hasPattern ? null : [...namespaces],
      limit: PAGE,
    });
    return { ...end, actors };
  }

  #hand({ actors, position, rows }: Reading): RunActor[] {
    const portions = new Map<RunActor, SignalRow[]>(actors.map((actor) => [actor, []]));
    for (const row of rows) for (const actor of this.#names.concernedBy(row)) portions.get(actor)?.push(row);
    for (const [actor, portion] of portions) actor.ears!.take(portion, position);
    return actors.filter((actor) => !actor.ears!.isEmpty);
  }

  #askForStates(): void {
    this.#options.wakeUps.wantStates(this, this.#wantStates.size > 0);
  }

  #lookAgain(): void {
    this.#heldMs = Math.min(this.#heldMs * 2, HELD_MAX_MS);
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.ask(), this.#heldMs);
  }
}
