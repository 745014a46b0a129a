/** Which tasks a run gains and loses when `--latest-version` moves it to the current version. */
import { type Client, path } from "./client.ts";
import type { VersionDiff } from "./dag-versions.ts";
import type { DagDetails, DagRun, TaskInstance } from "./resources.ts";

export interface VersionMove {
  readonly version: number;
  /** Tasks that are new to the run, and tasks that become `removed`. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/** Null: the run already has the current version. */
export async function findMove(client: Client, dagId: string, runId: string): Promise<VersionMove | null> {
  const what = `cannot compare the versions of ${dagId}`;
  const [run, dag] = await Promise.all([
    client.get<DagRun>(path`/dags/${dagId}/dagRuns/${runId}`, { what }),
    client.get<DagDetails>(path`/dags/${dagId}/details`, { what }),
  ]);
  const from = run.dag_versions.at(-1)?.version_number;
  const to = dag.latest_dag_version?.version_number;
  if (from === undefined || to === undefined || from === to) return null;
  const query = { from, to };
  const { tasks } = await client.get<VersionDiff>(path`/dags/${dagId}/dagVersions/diff`, { what, query });
  return { version: to, added: tasks.added, removed: tasks.removed };
}

/** The tasks that run again, and the text about the move around their names. */
export function describeMove(
  affected: readonly TaskInstance[],
  move: VersionMove | null,
): { readonly again: readonly TaskInstance[]; readonly where: string; readonly others: string } {
  if (move === null) return { again: affected, where: "", others: "" };
  const { added, removed, version } = move;
  const others = [
    ...(added.length === 0 ? [] : [`; new tasks: ${added.join(", ")}`]),
    ...(removed.length === 0 ? [] : [`; removed tasks: ${removed.join(", ")}`]),
  ];
  return {
    again: affected.filter((each) => !removed.includes(each.task_id)),
    where: ` on version ${version}`,
    others: others.join(""),
  };
}
