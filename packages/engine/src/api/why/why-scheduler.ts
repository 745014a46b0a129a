/** `why`: whether the run has a live scheduler. */
import type { Connection } from "../../store/database/database.ts";
import { isRunServed } from "../../store/job/served-dags.ts";
import type { DagRunRow } from "../../store/list/dag-runs.ts";
import { componentHealth } from "../../store/list/jobs.ts";
import { iso } from "../server/fields.ts";
import type { Finding } from "./why-deferred.ts";

export async function schedulerReasons(connection: Connection, run: DagRunRow): Promise<Finding[]> {
  const scheduler = (await componentHealth(connection)).find((job) => job.kind === "scheduler");
  if (scheduler?.is_alive === true) return unservedReasons(connection, run);
  const last =
    scheduler === undefined
      ? "none was ever started"
      : `the last heartbeat was at ${iso(scheduler.heartbeat_at)}`;
  const message = `No scheduler is alive: ${last}. Start one with: tradewind scheduler`;
  return [{ code: "NO_SCHEDULER", message, until: null }];
}

/** Runs of backfills have their own jobs. */
async function unservedReasons(connection: Connection, run: DagRunRow): Promise<Finding[]> {
  if (run.run_type === "backfill" || (await isRunServed(connection, run.id))) return [];
  const message = `No live scheduler serves DAG "${run.dag_id}": each scheduler drains, or was started with --dags for other DAGs. Start one with: tradewind scheduler --dags ${run.dag_id}`;
  return [{ code: "DAG_UNSERVED", message, until: null }];
}
