/** `why` for tasks that rerun with their group or run, and for tasks that wait for such a group. */
import type { DagManifest, GroupManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { commonDepth, type GroupRow, type Instance, type RunModel } from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import type { DagRunRow } from "../../store/list/dag-runs.ts";
import type { TaskInstanceRow } from "../../store/list/task-instances.ts";
import { groupRow, loadGroups } from "../../store/task/run-groups.ts";
import { iso } from "../server/fields.ts";
import type { Finding } from "./why-deferred.ts";
import { loadRun } from "./why-mapped.ts";

interface Place {
  readonly manifest: DagManifest;
  readonly run: DagRunRow;
  readonly task: TaskManifest;
  readonly instance: TaskInstanceRow | undefined;
}

/** Why an ended task reruns. */
export async function retryReasons(db: Connection, place: Place): Promise<Finding[]> {
  const { manifest, run, task } = place;
  if (run.state !== "running") return [];
  const { max_tries: most, retry_at: at, try_number } = run;
  if (at !== null) {
    const next = `try ${try_number + 1} of ${most} begins at ${iso(at)}`;
    return [{ code: "RUN_RETRY", message: `The run has failed; its ${next}.`, until: at }];
  }
  const rows = await standing(db, place, unitsAround(manifest, task.taskId));
  return rows
    .filter(({ state }) => state === "waiting")
    .map(({ groupId, mapIndex, maxTries, retryAt, tryNumber }) => {
      const until = retryAt === null ? null : new Date(retryAt);
      const next = `try ${tryNumber + 1} of ${maxTries + 1} begins at ${iso(until)}`;
      const item = mapIndex < 0 ? "" : `, item ${mapIndex},`;
      const message = `Its group "${groupId}"${item} has failed; its ${next}, with all its tasks.`;
      return { code: "GROUP_RETRY", message, until };
    });
}

/** Groups with retries before a task: it waits until they have finally ended. */
export async function groupReasons(db: Connection, place: Place): Promise<Finding[]> {
  const { manifest, task } = place;
  const own = unitsAround(manifest, task.taskId).map(({ groupId }) => groupId);
  const before = new Map(
    task.upstream
      .flatMap((id) => unitsAround(manifest, id))
      .filter(({ groupId }) => !own.includes(groupId))
      .map((group) => [group.groupId, group]),
  );
  const rows = Map.groupBy(await standing(db, place, [...before.values()]), ({ groupId }) => groupId);
  return [...rows].flatMap(([groupId, all]) => {
    const open = all.filter(({ state }) => state === "open" || state === "waiting");
    // Details of one item: the first that waits for a retry, else the first.
    const first = open.find(({ state }) => state === "waiting") ?? open[0];
    if (!first) return [];
    const until = first.retryAt === null ? null : new Date(first.retryAt);
    const which = `try ${first.tryNumber} of ${first.maxTries + 1}`;
    const now =
      until === null ? `${which} is running` : `${which} has failed, the next try begins at ${iso(until)}`;
    const items = `${open.length} of ${all.length} items have not ended; item ${first.mapIndex}: `;
    const message = `It waits for the end of group "${groupId}", which has retries: ${first.mapIndex < 0 ? "" : items}${now}.`;
    return [{ code: "GROUP_OPEN", message, until }];
  });
}

/** The enclosing groups with retries. */
function unitsAround({ groups, tasks }: DagManifest, taskId: string): GroupManifest[] {
  const byId = new Map(groups.map((group) => [group.groupId, group]));
  const units: GroupManifest[] = [];
  const first = tasks.find((task) => task.taskId === taskId)?.group ?? null;
  for (let id = first; id !== null; ) {
    const group: GroupManifest | undefined = byId.get(id);
    if (group?.retry) units.push(group);
    id = group?.parent ?? null;
  }
  return units;
}

/** States of groups and, for mapped ones, of the items that concern the instance. A group without a row is at its first try. */
async function standing(
  db: Connection,
  { instance, manifest, run, task }: Place,
  groups: readonly GroupManifest[],
): Promise<readonly GroupRow[]> {
  if (groups.length === 0) return [];
  if (groups.some(({ retry }) => retry?.map !== undefined)) {
    const model = await loadRun(db, { dagRunId: run.id, manifest });
    const own = model.get(task.taskId, instance?.map_index ?? -1);
    return groups.flatMap(({ groupId }) => [...itemsBeside(model, groupId, own)]);
  }
  const rows = new Map((await loadGroups(db, [run.id])).map((row) => [row.group_id, groupRow(row)]));
  const first = { mapIndex: -1, state: "open", tryNumber: 1, retryAt: null } as const;
  return groups.map(
    ({ groupId, retry }) => rows.get(groupId) ?? { ...first, groupId, maxTries: retry?.retries ?? 0 },
  );
}

/** The items of a group that share the instance's items, as far as both are in the same maps. */
function* itemsBeside(model: RunModel, groupId: string, own: Instance | undefined): Iterable<GroupRow> {
  const { expansions, graph, groups } = model;
  const { scope } = graph.groups.find(({ id }) => id === groupId)!;
  const around = own?.node.scope?.chain[own.level - 1] ?? null;
  const common = commonDepth(scope, around);
  const item = expansions.ancestor(around, own?.ordinal ?? -1, common);
  for (const row of groups?.rowsOf(groupId) ?? [])
    if (expansions.ancestor(scope, row.mapIndex, common) === item) yield row;
}
