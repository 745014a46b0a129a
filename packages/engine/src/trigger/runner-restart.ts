/**
 * Whom to blame when the child dies and nobody was seen doing it (a crash in native code, a full heap), and how to
 * start again. Pure: it is told what happened and answers what to do.
 *
 * A trigger that had not yet run for a second is unproven. After two deaths in a row the unproven ones are started in
 * waves, each when the one before has proven itself: the wave in which the child dies holds a culprit, and is started
 * in smaller waves the next time, until it is one trigger. What has once proven itself is started first and runs on.
 */
import type { ErrorFacts } from "@tradewind/sdk/program";

export interface Verdict {
  /** To be failed and not started again. */
  readonly guilty: number | null;
  readonly delayMs: number;
}

/** The triggers that were in the child, by whether they had run in it for a second. */
export interface Casualties {
  readonly proven: ReadonlySet<number>;
  readonly unproven: ReadonlySet<number>;
}

/** Deaths further apart than this have nothing to do with each other. */
const IN_A_ROW_MS = 60_000;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
const WAVES = 8;
/** One death can be bad luck, and two a coincidence. */
const DEATHS_TO_BLAME = 3;
/** How often a trigger must have been seen at work when the child died, among the last deaths. */
const SIGHTS_TO_BLAME = 2;
const SIGHTS_KEPT = 3;

export class RunnerRestart {
  #deaths = 0;
  #lastAt = Number.NEGATIVE_INFINITY;
  readonly #cleared = new Set<number>();
  #suspects: ReadonlySet<number> = new Set();
  #sights: (number | null)[] = [];

  /** @param seen The trigger whose code stood in the way of all others when it happened; null: none was seen. */
  died(at: number, { proven, unproven }: Casualties, seen: number | null): Verdict {
    this.left(at);
    this.#lastAt = at;
    this.#deaths++;
    this.#sights = [...this.#sights, seen].slice(-SIGHTS_KEPT);
    for (const id of proven) this.#cleared.add(id);
    this.#suspects = new Set([...unproven].filter((id) => !this.#cleared.has(id)));
    if (this.#suspects.size === 0) {
      // One that had seemed harmless: back to the beginning.
      this.#cleared.clear();
      this.#suspects = unproven;
    }
    const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (this.#deaths - 1));
    return { guilty: this.#guilty(seen), delayMs };
  }

  /** The child has gone, for whatever reason: after a long peace everything may be started at once. */
  left(at: number): void {
    if (at - this.#lastAt <= IN_A_ROW_MS) return;
    this.#deaths = 0;
    this.#cleared.clear();
  }

  /** In which order to start these again; each wave when all of the one before are proven. */
  waves(ids: readonly number[]): readonly (readonly number[])[] {
    if (this.#deaths < 2) return [ids];
    const cleared = ids.filter((id) => this.#cleared.has(id));
    const suspects = ids.filter((id) => this.#suspects.has(id) && !this.#cleared.has(id));
    const others = ids.filter((id) => !this.#suspects.has(id) && !this.#cleared.has(id));
    return [cleared, ...split(suspects), ...split(others)].filter((wave) => wave.length > 0);
  }

  #guilty(seen: number | null): number | null {
    if (seen !== null && this.#sights.filter((id) => id === seen).length >= SIGHTS_TO_BLAME) return seen;
    const [only] = this.#suspects;
    return this.#deaths >= DEATHS_TO_BLAME && this.#suspects.size === 1 ? (only ?? null) : null;
  }
}

function split(ids: readonly number[]): number[][] {
  const size = Math.ceil(ids.length / WAVES);
  const waves: number[][] = [];
  for (let at = 0; at < ids.length; at += size) waves.push(ids.slice(at, at + size));
  return waves;
}

/** What is said of a trigger that ends its process again and again. */
export function crashed(reason: string): ErrorFacts {
  const message = `The process of all triggers died again and again while this one ran, or started: ${reason}`;
  return { name: "Error", message, stack: null, code: "TRIGGER_CRASHED" };
}
