/**
 * The fired members of waits for all, for display. The observers of the members keep the events themselves; they are
 * stored only after the last member has fired. If this process dies, the triggerer that takes over observes every
 * member again and reports its own progress.
 */
import { ALL_KIND, membersOf } from "../../model/index.ts";
import type { ClaimedTrigger } from "../../store/trigger/trigger-claim.ts";
import type { FiredMembers } from "../../store/trigger/triggers.ts";

/** Limit of reported waits: other processes read this row all the time, so it must stay short. */
const MAX_REPORTED = 1_000;

interface Progress {
  readonly names: readonly string[];
  /** Observed by the engine. */
  readonly observed: Set<string>;
  /** The last report of the trigger process: empty after its restart. */
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

  /** True if something has changed since the last call. */
  drainChange(): boolean {
    const hadChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hadChanged;
  }

  /** By position: authors choose the names, and a name may contain characters that JSON operators do not accept. */
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
