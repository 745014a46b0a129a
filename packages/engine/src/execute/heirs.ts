/**
 * Workloads that stand behind others of their lane. A pool of eight slots would be empty half of the time if each slot
 * had to wait for a commit between two short tasks; so the next ones are here already, and the slots of one that ends
 * pass to the first of its lane. That never makes more of them than the scheduler has stored: one has ended, one begins.
 */
import type { AttemptJob } from "./job.ts";
import { WaitingLine } from "./waiting-line.ts";

export class Heirs {
  readonly #lines = new Map<string, WaitingLine<AttemptJob>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(job: AttemptJob): void {
    const lane = laneOf(job);
    const line = this.#lines.get(lane) ?? new WaitingLine<AttemptJob>();
    if (line.length === 0) this.#lines.set(lane, line);
    line.push(job);
    this.#size++;
  }

  /** The first of this one's lane, which leaves it. */
  next(job: AttemptJob): AttemptJob | undefined {
    const heir = this.#size === 0 ? undefined : this.#lines.get(laneOf(job))?.peek();
    if (heir !== undefined) this.remove(heir);
    return heir;
  }

  /** False: it does not stand here. */
  remove(job: AttemptJob): boolean {
    if (job.hasSlots) return false;
    const lane = laneOf(job);
    const line = this.#lines.get(lane);
    if (!line?.remove(job)) return false;
    this.#size--;
    if (line.length === 0) this.#lines.delete(lane);
    return true;
  }
}

function laneOf({ workload }: AttemptJob): string {
  return workload.lane ?? "";
}
