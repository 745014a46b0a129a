/** The status of a DAG in one word, and its schedule in a few. */
import type { Dag } from "../client/resources.ts";
import { relativeTime } from "./when.ts";

export function dagStatus(dag: Dag): string {
  if (dag.is_stale) return "removed";
  if (dag.is_paused) return "paused";
  return dag.schedule_error ? "schedule error" : "active";
}

/** With the time zone unless it is UTC; null: no schedule. */
export function scheduleText({ timetable_summary: summary, timezone }: Dag): string | null {
  if (!summary) return null;
  return timezone && timezone !== "UTC" ? `${summary} (${timezone})` : summary;
}

/** The state of the latest run and its age: "success 2 h ago", "running 3 m"; null: no runs. */
export function lastRunText({ last_run: run }: Dag): string | null {
  if (run === null) return null;
  const since = relativeTime(run.end_date ?? run.start_date ?? run.queued_at);
  return `${run.state} ${run.state === "running" ? since.replace(/ ago$/, "") : since}`;
}
