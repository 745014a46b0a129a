/** What several pages show about the runs of a DAG: its latest runs as bars, and whether it fails or is late. */
import { z } from "zod";
import type { FailingDag, LateDag } from "../../store/ui/dag-problems.ts";
import type { RunBars } from "../../store/ui/run-bars.ts";
import { date, iso } from "../server/fields.ts";
import { bytes, runStateBytes, times } from "./columns.ts";

export const barsDocument = z
  .object({
    run_ids: z.array(z.string()),
    states: bytes,
    run_after: times,
    logical_dates: times,
    started: times,
    ended: times,
  })
  .meta({ id: "UiRunBars", description: "Columns of equal length, the oldest run first." });

export const problemDocuments = {
  failing: z
    .object({ run_id: z.string(), failed_at: date })
    .nullable()
    .describe("Set: the latest run that has ended has failed."),
  late: z
    .object({
      since: date,
      run_id: z.string().nullable(),
      because: z.enum(["not_created", "not_started", "deadline"]),
    })
    .nullable()
    .describe("Set: a run is due and not created, has not started, or has missed a deadline."),
};

export function showProblems(failing: FailingDag | undefined, late: LateDag | undefined) {
  return {
    failing: failing === undefined ? null : { run_id: failing.run_id, failed_at: iso(failing.failed_at) },
    late: late === undefined ? null : { since: iso(late.since), run_id: late.run_id, because: late.because },
  };
}

export function showBars(bars: RunBars | undefined): z.output<typeof barsDocument> {
  return {
    run_ids: [...(bars?.run_ids ?? [])],
    states: runStateBytes(bars?.states ?? []),
    run_after: [...(bars?.run_after ?? [])],
    logical_dates: [...(bars?.logical_dates ?? [])],
    started: [...(bars?.started ?? [])],
    ended: [...(bars?.ended ?? [])],
  };
}
