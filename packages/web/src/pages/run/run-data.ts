/** What the page of a run reads. */
import { useMemo } from "react";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { shortDate } from "../../time/format.ts";
import { readTimeline, type TimelineAnswer } from "../../timeline/timeline-data.ts";

export type Run = components["schemas"]["DAGRunResponse"];

export interface RunAddress {
  readonly dagId: string;
  readonly runId: string;
}

export const RUN = "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}";
export const TIMELINE = "/ui/dags/{dag_id}/runs/{dag_run_id}/timeline";

export function useRun({ dagId, runId }: RunAddress) {
  return $api.useQuery("get", RUN, { params: { path: { dag_id: dagId, dag_run_id: runId } } });
}

/** @param compares Also the run before it that has ended. */
export function useTimeline({ dagId, runId }: RunAddress, compares: boolean) {
  const query = $api.useQuery(
    "get",
    TIMELINE,
    {
      params: {
        path: { dag_id: dagId, dag_run_id: runId },
        query: compares ? { compare: "@previous" } : {},
      },
    },
    { placeholderData: (before) => before },
  );
  const { data } = query;
  const timeline = useMemo(
    () => (data === undefined ? undefined : readTimeline(data as TimelineAnswer)),
    [data],
  );
  return { ...query, data: timeline };
}

/** The logical date of runs that have one by their schedule; the id of others. */
export function runName(run: Pick<Run, "dag_run_id" | "logical_date" | "run_kind">, zone: string): string {
  const isDated = run.run_kind === "scheduled" || run.run_kind === "backfill";
  return isDated && run.logical_date !== null
    ? shortDate(Date.parse(run.logical_date), zone)
    : run.dag_run_id;
}

export const KIND_WORDS: Readonly<Record<Run["run_kind"], string>> = {
  scheduled: "Schedule",
  manual: "Manually",
  backfill: "Backfill",
  asset_triggered: "Asset",
  signal_triggered: "Signal",
  operator_triggered: "Another run",
};
