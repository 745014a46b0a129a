/**
 * The cause of a run in Airflow's terms and in ours. Airflow's clients know a closed list of values and reject others, so runs
 * started by signals or triggers are shown as started by an asset, the closest value.
 */
import type { DagRunRow } from "../../store/list/dag-runs.ts";

/** Stored values. */
export const RUN_KINDS = [
  "backfill",
  "scheduled",
  "manual",
  "operator_triggered",
  "asset_triggered",
  "signal_triggered",
] as const;
export type RunKind = (typeof RUN_KINDS)[number];

/** Airflow's `DagRunType`. */
export const RUN_TYPES = [
  "backfill",
  "scheduled",
  "manual",
  "operator_triggered",
  "asset_triggered",
  "asset_materialization",
] as const;
type RunType = (typeof RUN_TYPES)[number];

/** Airflow's `DagRunTriggeredByType`. */
export const TRIGGERED_BY = [
  "cli",
  "operator",
  "rest_api",
  "ui",
  "test",
  "timetable",
  "asset",
  "backfill",
] as const;
type TriggeredBy = (typeof TRIGGERED_BY)[number];

export function runTypes({ run_type, triggered_by }: Pick<DagRunRow, "run_type" | "triggered_by">): {
  run_type: RunType;
  triggered_by: TriggeredBy;
  run_kind: RunKind;
} {
  return {
    run_type: run_type === "signal_triggered" ? "asset_triggered" : (run_type as RunType),
    triggered_by:
      triggered_by === "signal" || triggered_by === "trigger" ? "asset" : (triggered_by as TriggeredBy),
    run_kind: run_type as RunKind,
  };
}

/** The stored kinds that match a filter by Airflow's types; undefined: no filter. */
export function kindsOf(types: readonly RunType[] | undefined): readonly string[] | undefined {
  return types?.flatMap((type) => (type === "asset_triggered" ? [type, "signal_triggered"] : [type]));
}
