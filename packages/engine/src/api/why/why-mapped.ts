/** Why an instance of a mapped task waits: its items decide which upstream instances count. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import {
  commonDepth,
  compileGraph,
  type Instance,
  isUnexpanded,
  RunModel,
  sourceTasks,
} from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import { instanceFacts, loadInstances } from "../../store/run/run-load.ts";
import { loadExpansions } from "../../store/task/map-expansions.ts";
import { groupRow, loadGroups } from "../../store/task/run-groups.ts";
import type { StateCount } from "../../store/why/why-facts.ts";

export interface MappedUpstream {
  /** The upstream instances that count for this one, per task and state. */
  readonly counts: StateCount[];
  /** For a placeholder of future instances: the tasks whose outputs its map uses, with their states. Null: no placeholder. */
  readonly sources: StateCount[] | null;
}

/** Null: the run has no such instance. */
export async function mappedUpstream(
  connection: Connection,
  { dagRunId, manifest }: { readonly dagRunId: number; readonly manifest: DagManifest },
  { mapIndex, taskId }: { readonly mapIndex: number; readonly taskId: string },
): Promise<MappedUpstream | null> {
  const model = await loadRun(connection, { dagRunId, manifest });
  const instance = model.get(taskId, mapIndex);
  if (!instance) return null;
  const upstream = new Set(instance.node.upstream.map((index) => model.graph.nodes[index]!.id));
  const map = isUnexpanded(instance) ? instance.node.scope?.chain[instance.level] : undefined;
  return {
    counts: counted(model, instance, upstream),
    sources: map ? counted(model, instance, sourceTasks(map.over)) : null,
  };
}

/** The run as stored. */
export async function loadRun(
  connection: Connection,
  { dagRunId, manifest }: { readonly dagRunId: number; readonly manifest: DagManifest },
): Promise<RunModel> {
  const [rows, expansions, groups] = await Promise.all([
    loadInstances(connection, [dagRunId]),
    loadExpansions(connection, [dagRunId]),
    loadGroups(connection, [dagRunId]),
  ]);
  return RunModel.load(
    compileGraph(manifest),
    rows.map((row) => ({
      ...instanceFacts(row),
      retryAt: null,
      infraLosses: 0,
    })),
    {
      expansions: expansions.map(({ map_id: mapId, ...row }) => ({ mapId, ...row })),
      groups: groups.map(groupRow),
    },
  );
}

function counted(model: RunModel, instance: Instance, taskIds: ReadonlySet<string>): StateCount[] {
  const counts = new Map<string, StateCount>();
  for (const other of model.instances()) {
    if (!taskIds.has(other.node.id) || !isSeen(model, instance, other)) continue;
    const key = `${other.node.id} ${other.state}`;
    const known = counts.get(key);
    const count = (known?.count ?? 0) + 1;
    const first = Math.min(known?.first ?? other.mapIndex, other.mapIndex);
    counts.set(key, { task_id: other.node.id, state: other.state, count, first });
  }
  return [...counts.values()];
}

/** Whether another instance belongs to the same items of the maps that both tasks share. */
function isSeen(model: RunModel, instance: Instance, other: Instance): boolean {
  const level = Math.min(commonDepth(instance.node.scope, other.node.scope), other.level);
  const itemOf = ({ level: own, node, ordinal }: Instance) =>
    model.expansions.ancestor(node.scope?.chain[own - 1] ?? null, ordinal, level);
  return level <= instance.level && itemOf(instance) === itemOf(other);
}
