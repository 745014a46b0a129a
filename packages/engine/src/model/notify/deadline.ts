/**
 * Deadlines: when one is due, by the facts of its run, and whether it was met. Instants and lengths are milliseconds.
 *
 * Met is what has succeeded in time. What failed may still be cleared and succeed in time; so only the moment itself
 * makes a miss. What succeeded has met it for good only when the moment has passed: it may be cleared, too.
 */
import type { DeadlineManifest } from "@tradewind/sdk/manifest";

/** What a deadline may count from. */
export interface DeadlineFacts {
  readonly queuedAt: number;
  /** null: a run without one, or one that has not started. */
  readonly logicalDate: number | null;
  /** It makes up for a date that is long past: nobody waits for it since then. */
  readonly isBackfill: boolean;
  readonly startedAt: number | null;
  /** How long the last successful runs took, or the task in them; the latest first. */
  readonly lastMs: readonly number[];
}

/** The moment, or null while nobody can tell, or when there is none. */
export function deadlineDue(
  deadline: Pick<DeadlineManifest, "after" | "withinMs">,
  facts: DeadlineFacts,
): number | null {
  const from = countsFrom(deadline.after, facts);
  if (from === null) return null;
  const due = Math.round(from + deadline.withinMs);
  return due <= LAST_MOMENT ? due : null;
}

/** The latest that JavaScript and the database both have a date for. */
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

/** null: fewer than `atLeast`, which say nothing yet. */
export function averageMs(lengths: readonly number[], atLeast: number): number | null {
  if (lengths.length === 0 || lengths.length < atLeast) return null;
  // By differences to the first: no sum that could lose what is small beside it.
  const [first = 0] = lengths;
  return first + lengths.reduce((sum, each) => sum + (each - first), 0) / lengths.length;
}

/** What a deadline is judged by: since when it has succeeded, null: it has not. */
export function deadlineVerdict(
  dueAt: number,
  judged: { readonly succeededAt: number | null; readonly now: number },
): "pending" | "met" | "missed" {
  if (judged.succeededAt !== null && judged.succeededAt <= dueAt) return "met";
  return judged.now < dueAt ? "pending" : "missed";
}

/** A delivery is tried that often before it is left to people. */
export const DELIVERY_ATTEMPTS = 8;
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 15 * 60_000;

/** How long a delivery rests after its nth attempt has failed; null: it was the last. */
export function deliveryPauseMs(attempt: number): number | null {
  if (attempt >= DELIVERY_ATTEMPTS) return null;
  return Math.min(FIRST_PAUSE_MS * 3 ** (Math.max(attempt, 1) - 1), LONGEST_PAUSE_MS);
}
