/**
 * Lists a timetable's runs by asking it on and on, each time as it would have been asked then: with the run before, at the
 * moment when that one was due. So the dates are those that a scheduler would have found.
 *
 * A piece has an end by number and by time; a `next` that never answers has not, and its process is killed.
 */
import type { DueCall, DueFacts, Program } from "@tradewind/sdk/program";
import type { PieceOutcome, PieceWish } from "../timetable-protocol.ts";

/** The clock is looked at so often: it costs more than an answer. */
const LOOK_EVERY = 64;

export async function pieceOf(
  due: NonNullable<Program["due"]>,
  call: DueCall,
  { from, until, limit, forMs }: PieceWish,
): Promise<PieceOutcome> {
  const runs: DueFacts[] = [];
  const endAt = performance.now() + forMs;
  let { last, now } = call;
  for (let asked = 1; ; asked++) {
    const outcome = await due({ ...call, last, now });
    if (!outcome.ok) return outcome;
    const run = outcome.due;
    // A scheduler comes to those after it when this one has been due.
    if (run === null || run.runAfter > until) return { ok: true, piece: { runs, last: null } };
    if (run.logicalDate >= from) runs.push(run);
    last = run;
    now = Math.max(now, run.runAfter);
    const isLate = asked % LOOK_EVERY === 0 && performance.now() >= endAt;
    if (runs.length >= limit || isLate) return { ok: true, piece: { runs, last: run } };
  }
}
