/**
 * Deadlines: when a deadline is due, from the facts of its run, and whether it was met. All times are milliseconds.
 *
 * A deadline is met if its run or task has succeeded in time. A failed run or task may be cleared and still succeed in time,
 * so a deadline is missed only once it has passed. "met" also becomes final only then: until then a clear can undo it.
 */
import type { DeadlineManifest } from "@tradewind/sdk/manifest";

/** The facts from which a deadline may count. */
export interface DeadlineFacts {
  readonly queuedAt: number;
  /** null: the run has no logical date. */
  readonly logicalDate: number | null;
  /** The logical date of a backfill run is long past, so no deadline counts from it. */
  readonly isBackfill: boolean;
  readonly startedAt: number | null;
  /** The durations of the last successful runs, or of the task in them; newest first. */
  readonly lastMs: readonly number[];
}

/** When the deadline is due; null: not known yet, or the deadline does not apply to this run. */
export function deadlineDue(
  deadline: Pick<DeadlineManifest, "after" | "withinMs">,
  facts: DeadlineFacts,
): number | null {
  const from = countsFrom(deadline.after, facts);
  if (from === null) return null;
  const due = Math.round(from + deadline.withinMs);
  return due <= LAST_MOMENT ? due : null;
}

/** The last instant that both JavaScript and the database can represent. */
const LAST_MOMENT = 8_640_000_000_000_000;

function countsFrom(after: DeadlineManifest["after"], facts: DeadlineFacts): number | null {
  switch (after) {
    case "queued":
      return facts.queuedAt;
    case "logicalDate":
      return facts.isBackfill ? null : facts.logicalDate;
    case "start":
      return facts.startedAt;
    default: {
      const average = averageMs(facts.lastMs.slice(0, after.averageOf), after.atLeast);
      return facts.startedAt === null || average === null ? null : facts.startedAt + average;
    }
  }
}

/** null: fewer than `atLeast` durations, which are too few for an average. */
export function averageMs(lengths: readonly number[], atLeast: number): number | null {
  if (lengths.length === 0 || lengths.length < atLeast) return null;
  // Sums differences to the first value, because small values would be lost in a large sum.
  const [first = 0] = lengths;
  return first + lengths.reduce((sum, each) => sum + (each - first), 0) / lengths.length;
}

/** `succeededAt`: since when the run or task has been successful; null: it is not. */
export function deadlineVerdict(
  dueAt: number,
  judged: { readonly succeededAt: number | null; readonly now: number },
): "pending" | "met" | "missed" {
  if (judged.succeededAt !== null && judged.succeededAt <= dueAt) return "met";
  return judged.now < dueAt ? "pending" : "missed";
}

/** Attempts per delivery before it is left to the operators. */
export const DELIVERY_ATTEMPTS = 8;
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 15 * 60_000;

/** The pause after the nth failed attempt of a delivery; null: it was the last attempt. */
export function deliveryPauseMs(attempt: number): number | null {
  if (attempt >= DELIVERY_ATTEMPTS) return null;
  return Math.min(FIRST_PAUSE_MS * 3 ** (Math.max(attempt, 1) - 1), LONGEST_PAUSE_MS);
}
