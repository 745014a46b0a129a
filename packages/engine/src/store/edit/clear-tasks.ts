/** Clears tasks: they run again as new tries, with the tasks that have to run again with them. */
import { OCCUPYING } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import {
  type EditedInstance,
  type InstanceKey,
  keyOf,
  named,
  type RunSelection,
  readInstances,
  withRestarted,
} from "./edited-instances.ts";
import { clearChosen, endInstances } from "./instance-states.ts";
import { idsOf, isEnded, type LockedRun, lockRuns, reopenRuns } from "./locked-runs.ts";

/** Instances that must restart with the chosen ones are also cleared: see model/run/implied-ends.ts. */
export interface ClearEdit {
  readonly runs: readonly RunSelection[];
  /** "failed": failed and upstream_failed; "running": running, queued, deferred...; "new": tasks the run has no rows for. */
  readonly only: "any" | "failed" | "running" | "new";
  /** Ended runs return to `queued` and continue; false: the run's state does not change. */
  readonly resetRuns: boolean;
  /** Move the runs to the DAG's current version. */
  readonly latestVersion: boolean;
  /** Do nothing if one of the chosen instances is running. */
  readonly refuseRunning: boolean;
  /** Set on every cleared instance; undefined: notes stay. */
  readonly note?: string | null;
  readonly dryRun: boolean;
}

export type ClearResult =
  | { readonly kind: "cleared"; readonly affected: readonly InstanceKey[] }
  | { readonly kind: "running"; readonly instance: InstanceKey };

const ADAPT = statement(
  "edit-adapt-instances",
  `UPDATE task_instance t SET pool = k.task->>'pool', pool_slots = (k.task->>'poolSlots')::int,
     limit_key = nullif(concat_ws(E'\\n', '@' || r.dag_id || '/' || t.task_id || left(k.task->>'maxActivePerDag', 0),
                                  '@@' || r.dag_id || left(v.manifest->>'maxActiveTasksPerDag', 0)), ''),
     queue = k.task->>'queue', executor = k.task->>'executor', operator = k.task->>'operator'
   FROM dag_run r JOIN dag_version v ON v.id = r.version_id,
        LATERAL jsonb_array_elements(v.manifest->'tasks') AS k(task)
   WHERE r.id = ANY($1) AND t.dag_run_id = r.id AND t.task_id = k.task->>'taskId'
     AND t.state NOT IN ('queued', 'running', 'restarting') AND NOT t.keeps_slot`,
);

const CHOOSE_GONE = statement(
  "edit-choose-gone",
  `SELECT t.dag_run_id, t.task_id, t.map_index, t.state, t.pool, t.pool_slots, t.limit_key, t.keeps_slot,
          t.resumed_attempt, t.try_number, t.attempt, t.is_marked
   FROM task_instance t JOIN dag_run r ON r.id = t.dag_run_id JOIN dag_version v ON v.id = r.version_id
   WHERE r.id = ANY($1) AND t.state <> 'removed'
     AND NOT EXISTS (SELECT 1 FROM jsonb_array_elements(v.manifest->'tasks') AS k(task) WHERE k.task->>'taskId' = t.task_id)`,
);

export async function clearTasks(tx: Connection, edit: ClearEdit): Promise<ClearResult> {
  const runs = await lockRuns(tx, edit.runs);
  const rows = await readInstances(tx, idsOf(runs));
  const picked = named(rows, edit.runs).filter((row) => isCleared(row, edit.only));
  const goOn = runs.filter((run) => edit.resetRuns || !isEnded(run));
  const wholeGroups = edit.only === "failed" ? edit.runs.filter(({ tasks }) => tasks === null) : [];
  const chosen = await withRestarted(tx, {
    rows,
    chosen: new Set(picked),
    runIds: idsOf(goOn),
    latestVersion: edit.latestVersion,
    wholeGroups: new Set(wholeGroups.map(({ dagRunId }) => dagRunId)),
  });
  const running = chosen.find((row) => row.state === "running");
  if (edit.refuseRunning && running) return { kind: "running", instance: keyOf(running) };
  if (!edit.dryRun && (chosen.length > 0 || edit.resetRuns)) {
    const touched = new Set(chosen.map((row) => row.dag_run_id));
    const unbegun = new Set(idsOf(neverBegan(goOn, rows, edit)));
    const reopened = idsOf(goOn).filter((id) => touched.has(id) || unbegun.has(id) || edit.only === "new");
    // First, because the version that the run continues with decides the number of retries.
    await reopenRuns(tx, reopened, edit.latestVersion);
    await clearChosen(tx, chosen, edit.note);
    if (edit.latestVersion) await moveToVersion(tx, reopened);
  }
  return { kind: "cleared", affected: chosen.map(keyOf) };
}

/**
 * Runs that ended before their first task started, e.g. cancelled in the queue. They have no instance to clear: the whole
 * run starts.
 */
function neverBegan(
  runs: readonly LockedRun[],
  rows: readonly EditedInstance[],
  { only, runs: edited }: ClearEdit,
): LockedRun[] {
  const begun = new Set(rows.map((row) => row.dag_run_id));
  const whole = new Set(edited.filter(({ tasks }) => tasks === null).map(({ dagRunId }) => dagRunId));
  const states = only === "failed" ? ["failed"] : only === "any" ? ["failed", "success"] : [];
  return runs.filter(({ id, state }) => whole.has(id) && !begun.has(id) && states.includes(state));
}

/**
 * Adapts instances to the runs' new version. Instances that hold slots keep their pool until they end, because their
 * slots are counted there. Instances of tasks that the version does not have are removed and release their slots.
 */
async function moveToVersion(tx: Connection, runIds: readonly number[]): Promise<void> {
  await tx.rows(ADAPT, [runIds]);
  const gone = await tx.rows<EditedInstance>(CHOOSE_GONE, [runIds]);
  if (gone.length === 0) return;
  const states = gone.map(() => "removed");
  await endInstances(tx, gone, { states, reason: "not in this version of the DAG", isMarked: false });
}

/**
 * A scheduled instance will run from the beginning anyway: clearing it would only lose its place in the queue. If a task
 * upstream restarts, the instance waits for it (implied-ends.ts).
 */
function isCleared(row: EditedInstance, only: ClearEdit["only"]): boolean {
  if (row.state === "pending" || (row.state === "scheduled" && row.resumed_attempt === null)) return false;
  if (only === "failed") return row.state === "failed" || row.state === "upstream_failed";
  if (only === "running") return OCCUPYING.has(row.state) || row.state === "deferred";
  return only !== "new";
}
