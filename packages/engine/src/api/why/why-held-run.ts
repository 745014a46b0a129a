/** Why an unfinished run does not continue: no scheduler, a paused DAG or, before its start, its date or a limit. */
import type { Connection } from "../../store/database/database.ts";
import type { DagRunRow } from "../../store/list/dag-runs.ts";
import { readManifests } from "../../store/list/dag-versions.ts";
import type { DagRow } from "../../store/list/dags.ts";
import { countRunningRuns } from "../../store/why/why-facts.ts";
import { iso } from "../server/fields.ts";
import type { Finding } from "./why-deferred.ts";
import { schedulerReasons } from "./why-scheduler.ts";

/** For a queued run all causes; for a running one, a missing scheduler or a paused DAG. */
export async function heldRunReasons(
  connection: Connection,
  run: DagRunRow,
  dag: DagRow,
): Promise<Finding[]> {
  if (run.state !== "queued" && run.state !== "running") return [];
  const general = await stoppedReasons(connection, run, dag);
  if (run.state === "running") return general;
  const manifest = (await readManifests(connection, [run.version_id])).get(run.version_id);
  const own = await queuedReasons(connection, run, manifest?.maxActiveRuns ?? Number.POSITIVE_INFINITY);
  // RUN_QUEUED is only correct if nothing else blocks the run.
  return general.length === 0 ? own : [...general, ...own.filter(({ code }) => code !== "RUN_QUEUED")];
}

/** While one of these applies, no task of the run starts. */
export async function stoppedReasons(
  connection: Connection,
  run: DagRunRow,
  dag: DagRow,
): Promise<Finding[]> {
  const scheduler = await schedulerReasons(connection, run);
  if (!dag.is_paused) return scheduler;
  const why = dag.pause_reason === null ? "" : ` (${dag.pause_reason})`;
  const effect = run.state === "queued" ? "its runs do not start" : "no task of it starts";
  return [
    ...scheduler,
    reason(
      "DAG_PAUSED",
      `DAG "${dag.dag_id}" is paused${why}: ${effect}. Unpause it with: tradewind dags unpause ${dag.dag_id}`,
    ),
  ];
}

export async function queuedReasons(
  connection: Connection,
  run: DagRunRow,
  maxActiveRuns: number,
): Promise<Finding[]> {
  if (run.run_after.getTime() > Date.now())
    return [reason("RUN_NOT_DUE", `The run starts at ${iso(run.run_after)}.`, run.run_after)];
  if (run.run_type === "backfill")
    return [
      reason(
        "RUN_QUEUED",
        `The run is queued: its backfill starts it when its limit allows. See: tradewind backfill list ${run.dag_id} --active`,
      ),
    ];
  const running = await countRunningRuns(connection, run.dag_id);
  return [
    running >= maxActiveRuns
      ? reason(
          "MAX_ACTIVE_RUNS",
          `The run is queued: ${running} of at most ${maxActiveRuns} runs of DAG "${run.dag_id}" are running.`,
        )
      : reason("RUN_QUEUED", "The run is queued and will be started by the scheduler."),
  ];
}

function reason(code: string, message: string, until: Date | null = null): Finding {
  return { code, message, until };
}
