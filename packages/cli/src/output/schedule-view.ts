/** A DAG's schedule for users: in words, its next dates, and the assets it waits for. */
import type { AssetExpression, DagDetails, QueuedAsset } from "../client/resources.ts";
import { dagStatus, scheduleText } from "./dag-status.ts";
import { dueTime, moment, relativeTime } from "./when.ts";

/** As written, then in words. */
export function scheduleWords(dag: DagDetails): string {
  const written = scheduleText(dag);
  if (written === null) return "none: runs are started manually or by other DAGs";
  return dag.timetable_description === null ? written : `${written}\n${dag.timetable_description}`;
}

/** The next dates, one per line: the logical date, and the due time if it differs. */
export function nextRunLines(dag: DagDetails): string | null {
  const isPaused = dagStatus(dag) === "paused";
  const lines = datesOf(dag).map(({ logical_date, run_after }) => {
    const isLater = Date.parse(logical_date) !== Date.parse(run_after);
    const due = isLater ? `  due ${moment(run_after)}` : "";
    return `${moment(logical_date)}${due}${isPaused ? "" : `  ${dueTime(run_after)}`}`;
  });
  if (lines.length === 0) return null;
  return (isPaused ? ["none while it is paused; the dates of its schedule:", ...lines] : lines).join("\n");
}

function datesOf({ next_dagrun_run_after: next, next_runs }: DagDetails): DagDetails["next_runs"] {
  if (next_runs.length > 0 || next === null) return next_runs;
  return [{ logical_date: next, run_after: next }];
}

/** The start of the dates, and the catchup setting; null: no dates. */
export function catchupText(dag: DagDetails): string | null {
  if (scheduleText(dag) === null || (dag.start_date === null && !dag.catchup)) return null;
  const from = dag.start_date === null ? "" : `from ${moment(dag.start_date)}`;
  const missed = dag.catchup ? "catchup: one run for each missed date" : "no catchup";
  return from === "" ? missed : `${from}, ${missed}`;
}

/** The asset condition as an indented list, each asset with its events since the last run. */
export function assetLines(
  { asset_expression: expression }: DagDetails,
  queued: readonly QueuedAsset[],
): string | null {
  return expression === null ? null : linesOf(expression, queued).join("\n");
}

function linesOf(expression: AssetExpression, queued: readonly QueuedAsset[]): string[] {
  if ("asset" in expression) {
    const { uri } = expression.asset;
    const arrived = queued.find((each) => each.uri === uri);
    if (arrived === undefined) return [`… ${uri}`];
    const events = arrived.events > 1 ? ` (${arrived.events} events)` : "";
    return [`✓ ${uri}  arrived ${relativeTime(arrived.created_at)}${events}`];
  }
  if ("alias" in expression) return [`… alias ${expression.alias.name}`];
  if ("time" in expression) return ["… its time"];
  if ("task" in expression) return [`… task ${expression.task}`];
  const [words, parts] = "all" in expression ? ["all of", expression.all] : ["any of", expression.any];
  if (parts.length === 1) return linesOf(parts[0]!, queued);
  return [words, ...parts.flatMap((part) => linesOf(part, queued)).map((line) => `  ${line}`)];
}
