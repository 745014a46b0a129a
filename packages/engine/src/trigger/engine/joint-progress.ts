/**
 * Which members of the waits for all have fired, for people to see. The events themselves are kept by whatever observes the
 * members; they are not stored before the last one has come. If this process dies, the triggerer that takes over observes
 * every member again, and reports the progress as its own.
 */
import { ALL_KIND, membersOf } from "../../model/index.ts";
import type { ClaimedTrigger } from "../../store/trigger/trigger-claim.ts";
import type { FiredMembers } from "../../store/trigger/triggers.ts";

/** Waits that a triggerer reports on: its row is read by others all the time, and must stay short. */
const MAX_REPORTED = 1_000;

interface Progress {
  readonly names: readonly string[];
  /** Observed by the engine. */
  readonly observed: Set<string>;
  /** As the process of triggers has reported last: after its restart, none. */
  running: readonly string[];
}

export class JointProgress {
  readonly #waits = new Map<number, Progress>();
  #hasChanged = false;

  add(trigger: ClaimedTrigger): void {
    if (trigger.kind !== ALL_KIND) return;
    this.#waits.set(trigger.id, { names: Object.keys(membersOf(trigger)), observed: new Set(), running: [] });
  }

  remove(id: number): void {
    this.#waits.delete(id);
  }

  observed(id: number, name: string): void {
    this.#waits.get(id)?.observed.add(name);
    this.#hasChanged = true;
  }

  running(id: number, names: readonly string[]): void {
    const wait = this.#waits.get(id);
    if (wait === undefined || wait.running.length === names.length) return;
    wait.running = names;
    this.#hasChanged = true;
  }

  /** Whether there is something new since it was last asked. */
  takeChange(): boolean {
    const hadChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hadChanged;
  }

  /** By the position of each member: names are the author's, and may hold what no operator of JSON takes. */
  report(): FiredMembers {
    const fired: Record<string, number[]> = {};
    let left = MAX_REPORTED;
    for (const [id, { names, observed, running }] of this.#waits) {
      if (observed.size + running.length === 0) continue;
      if (left-- === 0) break;
      fired[id] = names.flatMap((name, at) => (observed.has(name) || running.includes(name) ? [at] : []));
    }
    return fired;
  }
}
