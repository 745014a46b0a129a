/** The instances of runs that an edit has locked, and the instances that restart with those named by the edit. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import {
  beginAgain,
  compileGraph,
  type EditableRow,
  isImpliedEnd,
  isListEnd,
  isStopped,
  type TaskState,
} from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { loadSkips } from "../run/run-load.ts";
import type { InstanceKeys } from "../task/instance-record.ts";
import { loadExpansions } from "../task/map-expansions.ts";
import { groupRow, loadGroups } from "../task/run-groups.ts";

/** Reads the instances after their runs are locked. */
const CHOOSE = statement(
  "edit-choose-instances",
  `SELECT t.dag_run_id, t.task_id, t.map_index, t.state, t.pool, t.pool_slots, t.limit_key, t.keeps_slot,
          t.resumed_attempt, t.try_number, t.attempt, t.is_marked, t.reason
   FROM task_instance t WHERE t.dag_run_id = ANY($1) ORDER BY t.dag_run_id, t.task_id, t.map_index`,
);

/** The version that each run continues with. */
const MANIFESTS = statement(
  "edit-manifests",
  `SELECT r.id, v.id AS version_id, v.manifest
   FROM dag_run r JOIN dag d ON d.dag_id = r.dag_id
   JOIN dag_version v ON v.id = CASE WHEN $2::boolean THEN d.version_id ELSE r.version_id END
   WHERE r.id = ANY($1)`,
);

/** One instance, or with `mapIndex` null all instances of a task. */
export interface TaskSelection {
  readonly taskId: string;
  readonly mapIndex: number | null;
}

/** Instances of one run; `tasks` null: all. Graph closures are already applied. */
export interface RunSelection {
  readonly dagRunId: number;
  readonly tasks: readonly TaskSelection[] | null;
}

export interface InstanceKey {
  readonly dagRunId: number;
  readonly taskId: string;
  readonly mapIndex: number;
}

export interface EditedInstance {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
  readonly state: TaskState;
  readonly pool: string;
  readonly pool_slots: number;
  readonly limit_key: string | null;
  readonly keeps_slot: boolean;
  /** Set when the current try deferred: the attempt whose wait it resumes from. */
  readonly resumed_attempt: string | null;
  readonly try_number: number;
  readonly attempt: string | null;
  readonly is_marked: boolean;
  readonly reason: string | null;
}

export function readInstances(tx: Connection, runIds: readonly number[]): Promise<EditedInstance[]> {
  return tx.rows<EditedInstance>(CHOOSE, [runIds]);
}

/** The instances named by an edit. */
export function named(
  rows: readonly EditedInstance[],
  selections: readonly RunSelection[],
): EditedInstance[] {
  const byRun = new Map(
    selections.map(({ dagRunId, tasks }) => [
      dagRunId,
      tasks && new Set(tasks.map(({ mapIndex, taskId }) => `${mapIndex ?? "*"} ${taskId}`)),
    ]),
  );
  return rows.filter(({ dag_run_id, map_index, task_id }) => {
    const tasks = byRun.get(dag_run_id);
    return tasks === null || tasks?.has(`* ${task_id}`) || tasks?.has(`${map_index} ${task_id}`);
  });
}

interface Restart {
  /** The runs that continue after the edit. */
  readonly runIds: readonly number[];
  /** Their instances; marked instances have their new state. */
  readonly rows: readonly EditedInstance[];
  readonly chosen: ReadonlySet<EditedInstance>;
  readonly latestVersion: boolean;
  /** The runs in which all tasks of a group with retries restart. */
  readonly wholeGroups: ReadonlySet<number>;
}

/** The chosen instances and those that restart with them, as the model decides (implied-ends.ts). */
export async function withRestarted(tx: Connection, restart: Restart): Promise<EditedInstance[]> {
  const { chosen, latestVersion, rows, runIds, wholeGroups } = restart;
  const again = new Set(chosen);
  const byRun = Map.groupBy(rows, (row) => row.dag_run_id);
  const begun = runIds.filter((id) => byRun.has(id));
  if (begun.length === 0) return [...again];
  const found = await tx.rows<{ id: number; version_id: number; manifest: DagManifest }>(MANIFESTS, [
    begun,
    latestVersion,
  ]);
  const [skips, expansions, groups] = [
    await loadSkips(tx, begun),
    await loadExpansions(tx, begun),
    await loadGroups(tx, begun),
  ];
  const graphs = new Map(found.map(({ manifest, version_id }) => [version_id, compileGraph(manifest)]));
  for (const { id, version_id } of found) {
    const isOwn = (row: { readonly dag_run_id: number }) => row.dag_run_id === id;
    const own = byRun.get(id)!.map(editable);
    const run = {
      graph: graphs.get(version_id)!,
      rows: own,
      skips: skips.filter(isOwn).map((row) => {
        return { taskId: row.task_id, mapIndex: row.map_index, skip: row.value };
      }),
      expansions: expansions.filter(isOwn).map(({ map_id: mapId, ...row }) => ({ mapId, ...row })),
      groups: groups.filter(isOwn).map(groupRow),
    };
    const wanted = own.filter(({ row }) => chosen.has(row));
    for (const { row } of beginAgain(run, wanted, { wholeGroups: wholeGroups.has(id) })) again.add(row);
  }
  return [...again];
}

/** True if neither an attempt nor a user nor a stop has ended it: its state follows from the rest of the run. */
export function isImplied(row: EditedInstance): boolean {
  return isImpliedEnd(editable(row));
}

function editable(row: EditedInstance): EditableRow & { readonly row: EditedInstance } {
  return {
    row,
    taskId: row.task_id,
    mapIndex: row.map_index,
    state: row.state,
    tryNumber: row.try_number,
    maxTries: 0,
    attempt: row.attempt,
    retryAt: null,
    infraLosses: 0,
    resumedAttempt: row.resumed_attempt,
    isMarked: row.is_marked || isStopped(row.reason),
    isListEnd: isListEnd(row.reason),
  };
}

export function keyOf(row: EditedInstance): InstanceKey {
  return { dagRunId: row.dag_run_id, taskId: row.task_id, mapIndex: row.map_index };
}

export function keyColumns(rows: readonly EditedInstance[]): InstanceKeys {
  return [rows.map((r) => r.dag_run_id), rows.map((r) => r.task_id), rows.map((r) => r.map_index)];
}
