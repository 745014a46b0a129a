/** The next scheduled run of a DAG. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { dueRun, jitterOf, nextRun } from "./timetable.ts";

/** The parts of a manifest that decide when a DAG runs. */
export type Scheduling = Pick<
  DagManifest,
  "dagId" | "schedule" | "start" | "end" | "catchup" | "jitterMs" | "pauseAfterFailures"
>;

/** A run that the schedule requires; instants in milliseconds. */
export interface PlannedRun {
  readonly logicalDate: number | null;
  readonly intervalStart: number | null;
  readonly intervalEnd: number | null;
  readonly runAfter: number;
}

/** Pure: the run after `last` as of `now`; null if there is none to plan. */
export type Planner = (dag: Scheduling, last: PlannedRun | null, now: number) => PlannedRun | null;

export interface DuePlanner {
  readonly next: Planner;
  /** Pure: the run to create when `planned` is due. It may be a later run that is due as well. */
  readonly due: (dag: Scheduling, planned: PlannedRun, now: number) => PlannedRun;
}

export const planNext: Planner = (dag, last, now): PlannedRun | null => {
  // The next run of a continuous DAG is planned when the last one has ended, not when it is created.
  if (dag.schedule.kind === "continuous" && last !== null) return null;
  const logicalDate = last?.logicalDate ?? null;
  const before =
    last === null || logicalDate === null
      ? null
      : { logicalDate, intervalEnd: last.intervalEnd ?? logicalDate };
  const slackMs = dag.jitterMs ?? 0;
  return spread(dag, nextRun(dag.schedule, windowOf(dag), { last: before, now, slackMs }));
};

const planDue: DuePlanner["due"] = (dag, planned, now) => {
  const { logicalDate, intervalStart, intervalEnd } = planned;
  if (logicalDate === null) return planned;
  const run = {
    ...planned,
    logicalDate,
    intervalStart: intervalStart ?? logicalDate,
    intervalEnd: intervalEnd ?? logicalDate,
  };
  const due = dueRun(dag.schedule, windowOf(dag), { planned: run, now, slackMs: dag.jitterMs ?? 0 });
  return due === run ? planned : spread(dag, due);
};

export const planner: DuePlanner = { next: planNext, due: planDue };

export function windowOf(dag: Pick<Scheduling, "start" | "end" | "catchup">) {
  return { start: instant(dag.start), end: instant(dag.end), catchup: dag.catchup };
}

/** Delays a run by the DAG's jitter. */
export function spread<Run extends PlannedRun & { logicalDate: number }>(
  { dagId, jitterMs }: Pick<Scheduling, "dagId" | "jitterMs">,
  run: Run,
): Run;
export function spread<Run extends PlannedRun & { logicalDate: number }>(
  dag: Pick<Scheduling, "dagId" | "jitterMs">,
  run: Run | null,
): Run | null;
export function spread<Run extends PlannedRun & { logicalDate: number }>(
  { dagId, jitterMs }: Pick<Scheduling, "dagId" | "jitterMs">,
  run: Run | null,
): Run | null {
  if (run === null || jitterMs === undefined) return run;
  return { ...run, runAfter: run.runAfter + jitterOf(dagId, run.logicalDate, jitterMs) };
}

function instant(iso: string | null): number | null {
  return iso === null ? null : Date.parse(iso);
}
