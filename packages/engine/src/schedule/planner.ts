/** What the schedule asks for next, in the store's terms. */
import { nextRun } from "../model/index.ts";
import type { PlannedRun, Planner } from "../store/due-runs.ts";

export const planNext: Planner = (dag, last, now): PlannedRun | null => {
  // The next run of a continuous DAG is planned when the last one has ended, not when it was created.
  if (dag.schedule.kind === "continuous" && last !== null) return null;
  const window = { start: instant(dag.start), end: instant(dag.end), catchup: dag.catchup };
  const logicalDate = last?.logicalDate ?? null;
  const before =
    last === null || logicalDate === null
      ? null
      : { logicalDate, intervalEnd: last.intervalEnd ?? logicalDate };
  return nextRun(dag.schedule, window, { last: before, now });
};

function instant(iso: string | null): number | null {
  return iso === null ? null : Date.parse(iso);
}
