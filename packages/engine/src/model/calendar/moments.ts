/**
 * Timers of a run: retries, reschedules and timeouts of waits. A timer outlives its purpose if the instance has changed
 * state in another way, so each timer is checked against the instance before it counts.
 */
import { Heap } from "../pool/heap.ts";
import type { Instance } from "../run/instance.ts";

interface Moment {
  readonly at: number;
  readonly instance: Instance;
}

export class Moments {
  readonly #retries = new Heap<Moment>((a, b) => a.at < b.at);
  readonly #deadlines = new Heap<Moment>((a, b) => a.at < b.at);

  /** Call when the instance becomes up for retry, up for reschedule or deferred. */
  add(instance: Instance): void {
    const retryAt = retryOf(instance);
    if (retryAt !== null) this.#retries.push({ at: retryAt, instance });
    const deadline = waitEndsAt(instance);
    if (deadline !== null) this.#deadlines.push({ at: deadline, instance });
  }

  nextRetryAt(): number | null {
    return next(this.#retries, retryOf);
  }

  nextDeadline(): number | null {
    return next(this.#deadlines, waitEndsAt);
  }

  nextRetry(now: number): Instance | undefined {
    const at = this.nextRetryAt();
    return at !== null && at <= now ? this.#retries.pop()?.instance : undefined;
  }

  nextOverdue(now: number): Instance[] {
    const overdue = new Set<Instance>();
    for (let at = this.nextDeadline(); at !== null && at <= now; at = this.nextDeadline())
      overdue.add(this.#deadlines.pop()!.instance);
    return [...overdue];
  }
}

function next(moments: Heap<Moment>, momentOf: (instance: Instance) => number | null): number | null {
  for (let first = moments.peek(); first; first = moments.peek()) {
    if (momentOf(first.instance) === first.at) return first.at;
    moments.pop();
  }
  return null;
}

function retryOf({ state, retryAt }: Instance): number | null {
  return state === "up_for_retry" || state === "up_for_reschedule" ? retryAt : null;
}

/** When a wait times out: by its own timeout, or by the timeout of the whole try. */
export function waitEndsAt({ state, wait, startedAt, node }: Instance): number | null {
  if (state !== "deferred") return null;
  const { timeoutMs } = node.manifest;
  const tryEnds = timeoutMs === null || startedAt === null ? Number.POSITIVE_INFINITY : startedAt + timeoutMs;
  const at = Math.min(wait?.timeoutAt ?? Number.POSITIVE_INFINITY, tryEnds);
  return at === Number.POSITIVE_INFINITY ? null : at;
}
