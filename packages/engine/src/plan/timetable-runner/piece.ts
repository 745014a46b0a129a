/**
 * Lists a timetable's runs by repeated calls, each with the arguments that a scheduler would have used: with the previous
 * run, at the time when that run was due. So the dates are those that a scheduler would have found.
 *
 * A piece is limited by number and by time. A `next` that never answers is not, and its process is killed.
 */
import type { DueCall, DueFacts, Program } from "@tradewind/sdk/program";
import type { PieceOutcome, PieceQuery } from "../timetable-protocol.ts";

/** Interval of clock reads: reading the clock costs more than an answer. */
const LOOK_EVERY = 64;

export async function pieceOf(
  due: NonNullable<Program["due"]>,
  call: DueCall,
  { from, until, limit, forMs }: PieceQuery,
): Promise<PieceOutcome> {
  const runs: DueFacts[] = [];
  const endAt = performance.now() + forMs;
  let { last, now } = call;
  for (let asked = 1; ; asked++) {
    const outcome = await due({ ...call, last, now });
    if (!outcome.ok) return outcome;
    const run = outcome.due;
    // A scheduler would get to later runs only after this one has been due.
    if (run === null || run.runAfter > until) return { ok: true, piece: { runs, last: null } };
    if (run.logicalDate >= from) runs.push(run);
    last = run;
    now = Math.max(now, run.runAfter);
    const isLate = asked % LOOK_EVERY === 0 && performance.now() >= endAt;
    if (runs.length >= limit || isLate) return { ok: true, piece: { runs, last: run } };
  }
}
