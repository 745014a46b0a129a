import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { type Client, path } from "./client.ts";
import type { DagRun } from "./resources.ts";

const LATEST = "@latest";
/** How `<run>` arguments are explained in help texts. */
export const RUN_ARGUMENT = `the run's id, or ${LATEST}`;

/** The id that was given, or with `@latest` that of the DAG's newest run. */
export async function findRunId(client: Client, dagId: string, run: string): Promise<string> {
  if (run !== LATEST) return run;
  const { items } = await client.list<DagRun>({
    path: path`/dags/${dagId}/dagRuns`,
    key: "dag_runs",
    what: `cannot find the latest run of ${dagId}`,
    query: { order_by: "-run_after" },
    limit: 1,
  });
  const latest = items[0];
  if (latest) return latest.dag_run_id;
  throw new CliError("TW_CLI_NO_RUNS", `the DAG ${dagId} has no runs yet.`, {
    exit: EXIT.notFound,
    remedy: `start one with \`tradewind dags trigger ${dagId}\``,
  });
}
