import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { type Client, type Listed, path } from "./client.ts";
import type { DagRun } from "./resources.ts";

/** The DAG, run and task that a list is restricted to. */
export interface NamedFilter {
  readonly dag?: string | undefined;
  readonly run?: string | undefined;
  readonly task?: string | undefined;
}

/**
 * @throws If the list is empty because the filter names an object that does not exist; an empty list would hide the typo.
 * A task without a DAG is not checked: no endpoint lists the tasks of all DAGs.
 */
export async function requireNamed(
  client: Client,
  what: string,
  { items }: Pick<Listed<unknown>, "items">,
  { dag, run, task }: NamedFilter,
): Promise<void> {
  if (items.length > 0) return;
  if (dag === undefined) {
    if (run !== undefined) await requireRunOfAnyDag(client, what, run);
    return;
  }
  const ofDag = path`/dags/${dag}`;
  await client.get(ofDag, { what });
  const ofRun = run === undefined ? null : `${ofDag}${path`/dagRuns/${run}`}`;
  if (ofRun !== null) await client.get(ofRun, { what });
  if (task === undefined) return;
  if (ofRun === null) await client.get(`${ofDag}${path`/tasks/${task}`}`, { what });
  // The version of a run may have tasks that the current one does not have.
  else await client.get(`${ofRun}${path`/taskInstances/${task}/why`}`, { what });
}

async function requireRunOfAnyDag(client: Client, what: string, run: string): Promise<void> {
  const { items } = await client.list<DagRun>({
    path: "/dags/~/dagRuns",
    key: "dag_runs",
    what,
    query: { run_id_prefix_pattern: run, order_by: "run_id" },
    limit: 1,
  });
  if (items[0]?.dag_run_id === run) return;
  throw new CliError("NOT_FOUND", `${what}: no DAG has a run "${run}".`, {
    exit: EXIT.notFound,
    remedy: "`tradewind runs list` shows the runs of all DAGs",
  });
}
