/** A DAG in a word, and its schedule in a few. */
import type { Dag } from "../client/resources.ts";

export function dagStatus(dag: Dag): string {
  if (dag.is_stale) return "removed";
  if (dag.is_paused) return "paused";
  return dag.schedule_error ? "schedule error" : "active";
}

/** With its zone, where its times are not in UTC; null: it has none. */
export function scheduleText({ timetable_summary: summary, timezone }: Dag): string | null {
  if (!summary) return null;
  return timezone && timezone !== "UTC" ? `${summary} (${timezone})` : summary;
}
