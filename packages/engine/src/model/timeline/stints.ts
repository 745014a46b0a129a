/**
 * The stints of a task instance: from its first readiness to its end, with all retries in between. It has another stint each
 * time it starts over: after a clear, with its group or with its run.
 */
import { isFinished, type TaskState } from "../run/states.ts";
import type { Interval } from "./intervals.ts";

/** A task instance with what it did. */
export interface PastInstance {
  readonly taskId: string;
  readonly mapIndex: number;
  readonly state: TaskState;
  readonly attempt: string | null;
  readonly endedAt: number | null;
  readonly intervals: readonly Interval[];
}

export interface Stint {
  readonly begin: number;
  /** null: it goes on. */
  readonly end: number | null;
  readonly intervals: readonly Interval[];
}

/** In the order of time. An end without an attempt (skipped, marked by a user) is a stint that took no time. */
export function stintsOf({ attempt, endedAt, intervals, state }: PastInstance): Stint[] {
  const parts: Interval[][] = [];
  for (const [place, interval] of intervals.entries()) {
    const before = intervals[place - 1];
    const isOver = before && before.tryNumber !== interval.tryNumber && before.kind !== "up_for_retry";
    if (before === undefined || isOver) parts.push([interval]);
    else parts.at(-1)!.push(interval);
  }
  const stints = parts.map((part) => ({
    begin: part[0]!.start,
    end: part.at(-1)!.end,
    intervals: part,
  }));
  const last = stints.at(-1);
  const end = isFinished(state) ? endedAt : null;
  if (end === null) return stints;
  if (!last || (attempt === null && end > (last.end ?? last.begin)))
    return [...stints, { begin: end, end, intervals: [] }];
  last.end = Math.max(last.begin, end);
  return stints;
}
