/** `why` for a task that waits for a run: the state of that run and what blocks it. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../../store/database/database.ts";
import { findDagRun } from "../../store/list/dag-runs.ts";
import { countActiveRuns, findDag } from "../../store/list/dags.ts";
import { iso } from "../server/fields.ts";
import type { Finding } from "./why-deferred.ts";

export const RUN_KIND = "tradewind.dagrun";

/** Empty for a run awaited by its date: it may not exist yet. */
export async function awaitedRunReasons(connection: Connection, args: Json): Promise<Finding[]> {
  const { dagId, runId } = Object(args) as { readonly dagId?: unknown; readonly runId?: unknown };
  if (typeof dagId !== "string" || typeof runId !== "string") return [];
  const run = await findDagRun(connection, dagId, runId);
  const dag = await findDag(connection, dagId);
  const name = `It waits for run ${runId} of DAG ${dagId}`;
  if (run === undefined || dag === undefined)
    return [awaited("AWAITED_RUN", `${name}, which does not exist.`)];
  const paused = `DAG ${dagId} is paused. Unpause it with: tradewind dags unpause ${dagId}`;
  if (run.state !== "queued") {
    const since = run.state === "running" ? ` since ${iso(run.started_at)}` : "";
    const what = awaited("AWAITED_RUN", `${name}, which is ${run.state}${since}.`);
    const isHeld = run.state === "running" && dag.is_paused;
    return isHeld ? [what, awaited("AWAITED_DAG_PAUSED", `No other task of it starts: ${paused}`)] : [what];
  }
  if (dag.is_paused)
    return [awaited("AWAITED_DAG_PAUSED", `${name}, which is queued and cannot start: ${paused}`)];
  const active = await countActiveRuns(connection, dagId);
  const most = dag.manifest?.maxActiveRuns ?? Number.POSITIVE_INFINITY;
  return [
    active >= most
      ? awaited(
          "AWAITED_RUN",
          `${name}, which is queued: ${active} of at most ${most} runs of that DAG are active.`,
        )
      : awaited("AWAITED_RUN", `${name}, which is queued and due at ${iso(run.run_after)}.`),
  ];
}

function awaited(code: string, message: string): Finding {
  return { code, message, until: null };
}
