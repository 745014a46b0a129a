/**
 * Resolves and counts the dates of a backfill request, and rejects it with the invalid field. A schedule by time is computed.
 * A custom timetable runs in a child process; its dates are then fixed: the backfill stores them as a list, and its job runs no
 * user code to find them.
 */
import { setImmediate as otherWork } from "node:timers/promises";
import type { Json } from "@tradewind/sdk/manifest";
import {
  type BackfillRange,
  backfillDates,
  backfillRange,
  type DueRun,
  type ListedSchedule,
  listedRun,
  listedSchedule,
  MAX_BACKFILL_RUNS,
  ModelError,
  noBackfillDates,
  type RangeEnd,
  rangeInstants,
  type TimeSchedule,
  tooManyBackfillDates,
} from "../../model/index.ts";
import { MAX_LISTED_DATES } from "../../plan/timetable-dates.ts";
import { EngineError } from "../../service/errors.ts";
import { type DagVersion, loadVersion } from "../../store/dag/dag-catalogue.ts";
import { lastScheduledRun } from "../../store/plan/timetable-plans.ts";
import { requireDag } from "../dag/dags.ts";
import type { ParamsCheck } from "../dag/params-check.ts";
import type { ApiOptions } from "../server/context.ts";
import { conflict, invalid } from "../server/problem.ts";

/** Dates counted before yielding to other work of the process. */
const AT_ONCE = 200;

export interface BackfillRequest {
  readonly dag_id: string;
  readonly from_date: Date | { readonly day: string };
  readonly to_date: Date | { readonly day: string };
  readonly run_backwards: boolean;
  readonly dag_run_conf?: unknown;
}

export interface BackfillDates {
  /** The first and the last instant of the range. */
  readonly from: Date;
  readonly to: Date;
  readonly schedule: TimeSchedule | ListedSchedule;
  readonly anchor: Date | null;
  /** The time up to which dates are due. */
  readonly now: Date;
  readonly versionId: number;
  readonly total: number;
  /** The first date to run. */
  readonly first: DueRun;
  /** The earliest and the latest logical date. */
  readonly ends: readonly [number, number];
  /** In the order in which the runs are created, at most this many. */
  readonly dates: (most: number) => DueRun[];
}

export async function planBackfillDates(
  options: Pick<ApiOptions, "database" | "timetables">,
  wish: BackfillRequest,
  paramsCheck: ParamsCheck,
): Promise<BackfillDates> {
  const { database } = options;
  const dag = await requireDag(database, wish.dag_id);
  const version = dag.version_id === null ? undefined : await loadVersion(database, dag.version_id);
  if (dag.is_stale || dag.version_id === null || version === undefined)
    throw conflict(
      `DAG "${wish.dag_id}" is not loaded: no file exports it, or its file fails to load (see /importErrors)`,
    );
  const { manifest } = version;
  paramsCheck.check({ id: dag.version_id, schema: manifest.paramsSchema }, (wish.dag_run_conf ?? {}) as Json);
  try {
    const { from, to } = rangeInstants(manifest.schedule, {
      from: rangeEnd(wish.from_date),
      to: rangeEnd(wish.to_date),
    });
    const { schedule, range } = backfillRange(manifest, {
      from,
      to,
      now: Date.now(),
      isReverse: wish.run_backwards,
    });
    const plan =
      schedule.kind === "timetable"
        ? await requestedDates(options, version, range)
        : await counted(manifest.dagId, schedule, range);
    const anchor = range.anchor === null ? null : new Date(range.anchor);
    const ends = { from: new Date(from), to: new Date(to) };
    return { ...plan, ...ends, anchor, now: new Date(range.until), versionId: dag.version_id };
  } catch (error) {
    if (error instanceof ModelError)
      throw invalid(["body", FIELDS[error.code] ?? "dag_id"], error.message, error.code);
    throw error;
  }
}

function rangeEnd(given: Date | { readonly day: string }): RangeEnd {
  return given instanceof Date ? given.getTime() : given;
}

const FIELDS: Readonly<Record<string, string>> = {
  BACKFILL_EMPTY: "from_date",
  BACKFILL_RANGE: "from_date",
  BACKFILL_REVERSE: "run_backwards",
  BACKFILL_TOO_LONG: "to_date",
};

type Plan = Pick<BackfillDates, "schedule" | "total" | "first" | "ends" | "dates">;

async function counted(dagId: string, schedule: TimeSchedule, range: BackfillRange): Promise<Plan> {
  let total = 0;
  let earliest: DueRun | undefined;
  let latest = 0;
  for (const run of backfillDates(schedule, { ...range, isReverse: false })) {
    earliest ??= run;
    latest = run.logicalDate;
    if (++total > MAX_BACKFILL_RUNS) throw tooManyBackfillDates(dagId);
    if (total % AT_ONCE === 0) await otherWork();
  }
  if (earliest === undefined) throw noBackfillDates(dagId);
  const dates = (most: number) => [...backfillDates(schedule, range).take(most)];
  const [first = earliest] = range.isReverse ? dates(1) : [earliest];
  return { schedule, total, first, ends: [earliest.logicalDate, latest], dates };
}

async function requestedDates(
  { database, timetables }: Pick<ApiOptions, "database" | "timetables">,
  { dagId, bundleHash }: DagVersion,
  { from, to, until, anchor, isReverse }: BackfillRange,
): Promise<Plan> {
  if (timetables === undefined)
    throw conflict("This API server cannot evaluate custom timetables: use another one");
  const last = await lastScheduledRun(database, dagId, new Date(from));
  let runs: DueRun[];
  try {
    runs = await timetables.list({ dagId, bundleHash, from, to, until, start: anchor, last });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const told = `The timetable of DAG "${dagId}" cannot list its dates: ${error.message}`;
    throw invalid(["body", "dag_id"], told, error.code);
  }
  if (runs.length > MAX_LISTED_DATES) throw tooManyBackfillDates(dagId, MAX_LISTED_DATES);
  const schedule = listedSchedule(runs, isReverse);
  const dates = (most: number) => schedule.dues.slice(0, most).map(listedRun);
  const [first] = dates(1);
  if (first === undefined) throw noBackfillDates(dagId);
  const [one = first] = runs;
  const ends = [one.logicalDate, (runs.at(-1) ?? one).logicalDate] as const;
  return { schedule, total: runs.length, first, ends, dates };
}
