/** The facts of a run that its tasks can read. */
import type { Json } from "@tradewind/sdk/manifest";

export interface RunRow {
  readonly dag_id: string;
  readonly run_id: string;
  readonly run_type: string;
  readonly logical_date: Date | null;
  readonly interval_start: Date | null;
  readonly interval_end: Date | null;
  readonly run_after: Date;
  readonly started_at: Date | null;
  readonly conf: Json;
  readonly version_number: number;
}

/** For a query with the run as `r` and its version as `v`. */
export const RUN_COLUMNS = `r.dag_id, r.run_id, r.run_type, r.logical_date, r.interval_start, r.interval_end, r.run_after,
  r.started_at, r.conf, v.number AS version_number`;
