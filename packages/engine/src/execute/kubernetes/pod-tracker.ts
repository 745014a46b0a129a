/**
 * Follows the pods of an executor until their end: reads the verdict of each status, limits how long a pod may be in
 * trouble, and reports each end once. Times are those of this process, from the first status that it saw.
 */
import type { V1Pod } from "@kubernetes/client-node";
import { durationText } from "@tradewind/sdk/wording";
import { assignmentOf } from "./pod-labels.ts";
import { notStarted, type PodEnd, type PodVerdict, podVerdict } from "./pod-verdict.ts";

export interface EndedPod {
  readonly assignment: string;
  readonly pod: V1Pod;
  /** The worker in it has reported everything. */
  readonly isSuccess: boolean;
  /** Counts only if the worker has not reported the end. */
  readonly end: PodEnd;
}

export interface PodTrackerOptions {
  /** How long a pod may take until its task container runs. */
  readonly pendingMs: number;
  readonly onEnded: (ended: EndedPod) => void;
  /**
   * Several schedulers see the same pods, and the one that created a pod goes first: the others wait this long before they
   * report its end.
   */
  readonly delayMs: (assignment: string) => number;
}

export interface TrackedPod {
  readonly assignment: string;
  readonly pod: V1Pod;
}

interface Tracked {
  readonly assignment: string;
  /** When it was first seen. */
  readonly since: number;
  pod: V1Pod;
  verdict: PodVerdict;
  troubleSince: number | null;
  endedSince: number | null;
  timer: NodeJS.Timeout | null;
  /** When its end was reported, or the pod was given up. */
  overSince: number | null;
}

interface Due extends Pick<EndedPod, "end" | "isSuccess"> {
  readonly at: number;
}

export class PodTracker {
  readonly #options: PodTrackerOptions;
  /** By uid. */
  readonly #pods = new Map<string, Tracked>();
  readonly #byAssignment = new Map<string, Tracked>();

  constructor(options: PodTrackerOptions) {
    this.#options = options;
  }

  podOf(assignment: string): V1Pod | undefined {
    return this.#byAssignment.get(assignment)?.pod;
  }

  seen(pod: V1Pod): void {
    const assignment = assignmentOf(pod.metadata?.labels);
    if (assignment === null) return;
    const uid = uidOf(pod);
    const now = performance.now();
    const verdict = podVerdict(pod);
    let tracked = this.#pods.get(uid);
    if (tracked === undefined) {
      const fresh = { troubleSince: null, endedSince: null, timer: null, overSince: null };
      tracked = { assignment, since: now, pod, verdict, ...fresh };
      this.#pods.set(uid, tracked);
      this.#byAssignment.set(assignment, tracked);
    }
    // An old event: an end is final.
    if (tracked.endedSince !== null && verdict.kind !== "ended") return;
    tracked.pod = pod;
    tracked.verdict = verdict;
    if (verdict.kind === "ended") tracked.endedSince ??= now;
    else if (verdict.trouble === undefined) tracked.troubleSince = null;
    else tracked.troubleSince ??= now;
    this.#check(tracked);
  }

  gone(pod: V1Pod): void {
    const tracked = this.#pods.get(uidOf(pod));
    if (tracked === undefined) return;
    this.#pods.delete(uidOf(pod));
    if (this.#byAssignment.get(tracked.assignment) === tracked) this.#byAssignment.delete(tracked.assignment);
    if (tracked.timer !== null) clearTimeout(tracked.timer);
    const final = podVerdict(pod);
    // Another scheduler has reported its end, and removed it.
    if (tracked.overSince !== null || tracked.endedSince !== null) return;
    const { assignment } = tracked;
    const { end, isSuccess } =
      final.kind === "ended"
        ? final
        : { isSuccess: false, end: { kind: "lost", reason: "its pod was deleted" } as const };
    this.#options.onEnded({ assignment, pod, end, isSuccess });
  }

  /** Its assignment does not exist any more: its end means nothing. Returns the pod, if there is one. */
  giveUp(assignment: string): V1Pod | undefined {
    const tracked = this.#byAssignment.get(assignment);
    if (tracked === undefined) return undefined;
    tracked.overSince ??= performance.now();
    if (tracked.timer !== null) clearTimeout(tracked.timer);
    return tracked.pod;
  }

  /** Its end could not be reported: `recheck` reports it again. */
  reopen({ pod }: EndedPod): void {
    const tracked = this.#pods.get(uidOf(pod));
    if (tracked) tracked.overSince = null;
  }

  recheck(): void {
    for (const tracked of this.#pods.values()) this.#check(tracked);
  }

  /** The pods that were first seen more than `ms` ago and have not ended. */
  open(ms: number): TrackedPod[] {
    const latest = performance.now() - ms;
    return [...this.#pods.values()].filter(
      ({ endedSince, overSince, since }) => overSince === null && endedSince === null && since < latest,
    );
  }

  /** The pods that are still here although they were given up, or their end was reported, more than `ms` ago. */
  left(ms: number): (TrackedPod & { readonly isSuccess: boolean })[] {
    const latest = performance.now() - ms;
    return [...this.#pods.values()]
      .filter(({ overSince }) => overSince !== null && overSince < latest)
      .map(({ assignment, pod, verdict }) => {
        return { assignment, pod, isSuccess: verdict.kind === "ended" && verdict.isSuccess };
      });
  }

  stop(): void {
    for (const { timer } of this.#pods.values()) if (timer !== null) clearTimeout(timer);
    this.#pods.clear();
    this.#byAssignment.clear();
  }

  #check(tracked: Tracked): void {
    if (tracked.timer !== null) clearTimeout(tracked.timer);
    tracked.timer = null;
    if (tracked.overSince !== null) return;
    const due = this.#due(tracked);
    if (due === null) return;
    const now = performance.now();
    const left = due.at + this.#options.delayMs(tracked.assignment) - now;
    if (left > 0) {
      tracked.timer = setTimeout(() => this.#check(tracked), Math.ceil(left));
      return;
    }
    tracked.overSince = now;
    const { assignment, pod } = tracked;
    this.#options.onEnded({ assignment, pod, end: due.end, isSuccess: due.isSuccess });
  }

  #due({ endedSince, since, troubleSince, verdict }: Tracked): Due | null {
    if (verdict.kind === "ended")
      return { at: endedSince ?? since, end: verdict.end, isSuccess: verdict.isSuccess };
    const { pendingMs } = this.#options;
    const dues: Due[] = [];
    if (verdict.trouble !== undefined) {
      const { afterMs, end } = verdict.trouble;
      dues.push({ at: (troubleSince ?? since) + afterMs, end, isSuccess: false });
    }
    if (verdict.kind === "pending")
      dues.push({
        at: since + pendingMs,
        end: notStarted(verdict.why, durationText(pendingMs)),
        isSuccess: false,
      });
    return dues.toSorted((a, b) => a.at - b.at)[0] ?? null;
  }
}

function uidOf(pod: V1Pod): string {
  return pod.metadata?.uid ?? "";
}
