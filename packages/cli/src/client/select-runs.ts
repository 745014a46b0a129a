/** The runs of a DAG that a command changes: named runs, or all runs in a range of dates and states. */
import { usageError } from "../errors.ts";
import { type Bound, sinceInstant, untilInstant } from "../input/dates.ts";
import { type Client, path } from "./client.ts";
import { findRunIds, zoneOf } from "./find-run.ts";
import type { DagRun } from "./resources.ts";

export interface DateRange {
  readonly since?: Bound | undefined;
  readonly until?: Bound | undefined;
}

export const SINCE =
  "only runs of this date or later: 2026-11-15, 2026-11-15T02:00 (logical date, in the DAG's time zone; UTC without a DAG); or runs active within this time: 3h, 2d";
export const UNTIL =
  "only runs of this date or earlier (a day is included as a whole), or not active for this time: 3h, 2d";

/**
 * A date is compared with the logical date or, if a run has none, with the time it was due, in the time zone of the DAG (UTC
 * without a DAG). An age is compared with the latest of queued, started and ended.
 */
export async function rangeQuery(client: Client, dagId: string | undefined, { since, until }: DateRange) {
  const isLocal = [since, until].some((bound) => bound && !isAge(bound) && bound.offset === null);
  const zone = isLocal && dagId !== undefined ? await zoneOf(client, dagId) : "UTC";
  const from = since && sinceInstant(since, zone);
  const to = until && untilInstant(until, zone);
  if (from && to && isAge(since) === isAge(until) && from >= to)
    throw usageError("--since is later than --until.", "swap the two dates");
  return {
    ...(from && { [`${isAge(since) ? "updated_at" : "run_date"}_gte`]: from.toISOString() }),
    ...(to && { [`${isAge(until) ? "updated_at" : "run_date"}_lt`]: to.toISOString() }),
  };
}

function isAge(bound: Bound): bound is Extract<Bound, { agoMs: number }> {
  return "agoMs" in bound;
}

export interface RunSelection extends DateRange {
  readonly names: readonly string[];
  readonly state?: readonly string[] | undefined;
  /** Default states for a range. */
  readonly usualStates: readonly string[];
}

/** Oldest first. @throws If a named run does not exist. */
export async function selectRuns(
  client: Client,
  dagId: string,
  { names, since, state, until, usualStates }: RunSelection,
): Promise<DagRun[]> {
  const isRange = since !== undefined || until !== undefined || state !== undefined;
  if (names.length > 0 && isRange)
    throw usageError(
      "run names and a range cannot be combined.",
      "give either run names, or --since, --until and --state",
    );
  if (names.length === 0 && !isRange)
    throw usageError("no runs selected.", "name runs, or give a range: --since, --until or --state");
  const what = `cannot read the runs of ${dagId}`;
  const ofDag = path`/dags/${dagId}/dagRuns`;
  if (isRange) {
    const range = await rangeQuery(client, dagId, { since, until });
    const query = { ...range, state: state ?? usualStates, order_by: ["run_after", "id"] };
    return (await client.list<DagRun>({ path: ofDag, key: "dag_runs", what, query, limit: 0 })).items;
  }
  const runs: DagRun[] = [];
  for (const runId of await findRunIds(client, dagId, names))
    runs.push(await client.get<DagRun>(`${ofDag}${path`/${runId}`}`, { what }));
  return runs;
}
