/** A DAG's schedule for people: in words, its next dates, and what it still waits for. */
import type { AssetExpression, DagDetails, QueuedAsset } from "../client/resources.ts";
import { dagStatus, scheduleText } from "./dag-status.ts";
import { moment, relativeTime } from "./when.ts";

/** As it is written, then in words. */
export function scheduleWords(dag: DagDetails): string {
  const written = scheduleText(dag);
  if (written === null) return "none: runs are started by hand, or by other DAGs";
  return dag.timetable_description === null ? written : `${written}\n${dag.timetable_description}`;
}

/** The next dates, one a line. */
export function nextRunLines(dag: DagDetails): string | null {
  const dates =
    dag.next_runs.length > 0 ? dag.next_runs.map(({ run_after }) => run_after) : [dag.next_dagrun_run_after];
  const lines = dates.filter((date) => date !== null).map((date) => `${moment(date)}  ${relativeTime(date)}`);
  if (lines.length === 0) return null;
  const status = dagStatus(dag);
  return (status === "paused" ? [...lines, "(none while it is paused)"] : lines).join("\n");
}

/** The condition on assets as an indented list, each with what has arrived since the last run. */
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
