/**
 * Edits by hand, under the run's lock. Each edit locks its runs (FOR UPDATE, by id), changes them, and bumps their
 * generation: the owner's next write is refused with TW001, it reloads the run and goes on from what the edit left.
 * An owner's batch that committed first is simply what the edit sees; there is no third order.
 *
 * A running instance that is cleared becomes `restarting` and keeps its attempt and slot: its owner kills the
 * process, and only then starts the next try, so that two processes of one task never overlap.
 */
import { haltedAs, isFinished, OCCUPYING } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { closeDrives } from "../drive/run-drives.ts";
import { limitNames } from "../pool/limit-key.ts";
import { createRun } from "../run/run-create.ts";
import { askForEnd, teardownsLeft } from "../run/run-ending.ts";
import { archiveAttempts, forgetOutputs, type InstanceKeys } from "../task/instance-record.ts";
import { tellRuns, tellTasks } from "../task/state-signals.ts";
import { cancelWaits } from "../trigger/deferrals.ts";
import { endStarts, forgetStops } from "./edited-drives.ts";
import {
  type EditedInstance,
  isImplied,
  keyColumns,
  keyOf,
  named,
  readInstances,
  withRestarted,
} from "./edited-instances.ts";
import type {
  ClearEdit,
  ClearResult,
  MarkEdit,
  MarkResult,
  RunEditResult,
  RunEdits,
  RunSelection,
} from "./run-edits.ts";

const LOCK_RUNS = statement(
  "edit-lock-runs",
  "SELECT id, dag_id, state, ending, version_id FROM dag_run WHERE id = ANY($1) ORDER BY id FOR UPDATE",
);

const CLEAR = statement(
  "edit-clear-instances",
  `WITH cleared AS (UPDATE task_instance t SET
     state = CASE WHEN t.state IN ('queued', 'running', 'restarting') THEN 'restarting' ELSE 'none' END,
     attempt = CASE WHEN t.state IN ('queued', 'running', 'restarting') THEN t.attempt END,
     max_tries = t.try_number + coalesce((k.task->>'retries')::int, 0), infra_losses = 0,
     scheduled_at = NULL, queued_at = NULL,
     started_at = CASE WHEN t.state IN ('running', 'restarting') THEN t.started_at END, ended_at = NULL,
     retry_at = NULL, reason = NULL, resumed_attempt = NULL, keeps_slot = false, is_marked = false,
     note = CASE WHEN $4::boolean THEN $5 ELSE t.note END
   FROM unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
   JOIN dag_run r ON r.id = u.run
   JOIN dag_version v ON v.id = r.version_id
   LEFT JOIN LATERAL jsonb_array_elements(v.manifest->'tasks') AS k(task) ON k.task->>'taskId' = u.task
   WHERE t.dag_run_id = u.run AND t.task_id = u.task AND t.map_index = u.map
   RETURNING t.*) ${tellTasks("cleared")}`,
);

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

const MARK = statement(
  "edit-mark-instances",
  `WITH marked AS (
     UPDATE task_instance t SET state = u.state, ended_at = now(), retry_at = NULL, reason = $5, attempt = NULL,
            resumed_attempt = NULL, keeps_slot = false, is_marked = $6
     FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[]) AS u(run, task, map, state)
     WHERE t.dag_run_id = u.run AND t.task_id = u.task AND t.map_index = u.map
     RETURNING t.*
   ) ${tellTasks("marked")}`,
);

const RELEASE = statement(
  "edit-release-slots",
  `WITH locked AS (
     SELECT p.name, d.delta FROM pool p JOIN unnest($1::text[], $2::int[]) AS d(name, delta) ON d.name = p.name
     ORDER BY p.name FOR NO KEY UPDATE OF p
   ) UPDATE pool p SET occupied = p.occupied - locked.delta FROM locked WHERE p.name = locked.name`,
);

/**
 * An ended run goes back to the queue; a running one stays with its owner, who reloads it. That of a sub-DAG whose task
 * has gone on is from now on a run on its own: somebody wants it for itself.
 */
const REOPEN = statement(
  "edit-reopen-runs",
  `WITH ended AS (
     SELECT id FROM dag_run WHERE id = ANY($1) AND state IN ('success', 'failed')
   ), reopened AS (UPDATE dag_run SET generation = generation + 1,
     clear_number = clear_number + 1,
     state = CASE WHEN state = 'running' THEN 'running' ELSE 'queued' END,
     queued_at = CASE WHEN state = 'running' THEN queued_at ELSE now() END,
     started_at = CASE WHEN state = 'running' THEN started_at END,
     ended_at = NULL, ending = NULL, end_reason = NULL, retry_at = NULL,
     try_number = CASE WHEN state = 'running' THEN try_number ELSE 1 END,
     parent_try = CASE WHEN state IN ('queued', 'running') THEN parent_try END,
     version_id = CASE WHEN $2::boolean THEN (SELECT d.version_id FROM dag d WHERE d.dag_id = dag_run.dag_id) ELSE version_id END
   WHERE id = ANY($1) RETURNING id, dag_id, run_id, state
   ) ${tellRuns("(SELECT reopened.* FROM reopened JOIN ended USING (id))")}`,
);

const BUMP = statement("edit-bump-runs", "UPDATE dag_run SET generation = generation + 1 WHERE id = ANY($1)");

const END_RUN = statement(
  "edit-end-run",
  `WITH ended AS (
     UPDATE dag_run SET state = $2, end_reason = $3, started_at = coalesce(started_at, now()), ended_at = now(),
                        ending = NULL, retry_at = NULL, owner_job = NULL, generation = generation + 1
     WHERE id = $1 RETURNING dag_id, run_id, state
   ) ${tellRuns("ended")}`,
);

const DELETE_RUN = statement("edit-delete-run", "DELETE FROM dag_run WHERE id = $1");

interface LockedRun {
  readonly id: number;
  readonly dag_id: string;
  readonly state: "queued" | "running" | "success" | "failed";
  /** How it is going to end: somebody has ended it, and its teardowns are left. */
  readonly ending: "success" | "failed" | null;
  readonly version_id: number;
}

const isEnded = ({ state }: LockedRun) => state === "success" || state === "failed";

export const runEdits: RunEdits = { createRun, clearTasks, markTasks, markRun, cancelRun, deleteRun };

async function clearTasks(tx: Connection, edit: ClearEdit): Promise<ClearResult> {
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
    // First, because how often a task is retried is up to the version it runs with from now on.
    await tx.rows(REOPEN, [reopened, edit.latestVersion]);
    await clearChosen(tx, chosen, edit.note);
    if (edit.latestVersion) await moveToVersion(tx, reopened);
  }
  return { kind: "cleared", affected: chosen.map(keyOf) };
}

/**
 * Runs that ended before their first task began, e.g. cancelled while they were queued. There is no instance to clear: the
 * whole run starts.
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

async function clearChosen(
  tx: Connection,
  chosen: readonly EditedInstance[],
  note: string | null | undefined,
): Promise<void> {
  await clearInstances(tx, keyColumns(chosen), note);
  // A deferred one that held its slot nevertheless gives it back; what runs keeps its own until its process is gone.
  await release(
    tx,
    chosen.filter((row) => row.keeps_slot),
  );
  await cancelWaits(tx, [...new Set(chosen.map((row) => row.dag_run_id))]);
  await forgetStops(tx, chosen);
}

/** Of runs that this transaction has locked, and whose generation it raises. `note`: undefined leaves theirs alone. */
export async function clearInstances(
  tx: Connection,
  keys: InstanceKeys,
  note: string | null | undefined,
): Promise<void> {
  await archiveAttempts(tx, keys, false);
  await tx.rows(CLEAR, [...keys, note !== undefined, note ?? null]);
  await forgetOutputs(tx, keys);
}

/**
 * The runs have another version now. Instances that hold slots keep their place until they end, for that is where
 * their slots are counted; all others go by the new version. What it no longer has is removed, with its slots.
 */
async function moveToVersion(tx: Connection, runIds: readonly number[]): Promise<void> {
  await tx.rows(ADAPT, [runIds]);
  const gone = await tx.rows<EditedInstance>(CHOOSE_GONE, [runIds]);
  if (gone.length === 0) return;
  await archiveAttempts(tx, keyColumns(gone), true);
  const reason = "not in this version of the DAG";
  await tx.rows(MARK, [...keyColumns(gone), gone.map(() => "removed"), reason, false]);
  await release(tx, gone);
  await cancelWaits(tx, runIds);
}

/**
 * A scheduled instance is about to run anyway, from the beginning: clearing it would only lose its place. If something upstream
 * of it begins again, it waits for that (implied-ends.ts).
 */
function isCleared(row: EditedInstance, only: ClearEdit["only"]): boolean {
  if (row.state === "none" || (row.state === "scheduled" && row.resumed_attempt === null)) return false;
  if (only === "failed") return row.state === "failed" || row.state === "upstream_failed";
  if (only === "running") return OCCUPYING.has(row.state) || row.state === "deferred";
  return only !== "new";
}

async function markTasks(tx: Connection, edit: MarkEdit): Promise<MarkResult> {
  const runs = await lockRuns(tx, edit.runs);
  const rows = await readInstances(tx, idsOf(runs));
  // A skip that only followed from the rest of the run stays from now on, because somebody says so.
  const chosen = named(rows, edit.runs).filter((row) => row.state !== edit.state || isImplied(row));
  if (chosen.length === 0) return { affected: [] };
  const marked = new Set(chosen);
  const touched = new Set(chosen.map((row) => row.dag_run_id));
  const changed = runs.filter((run) => touched.has(run.id));
  const after = rows.map((row) => {
    return marked.has(row) ? { ...row, state: edit.state, attempt: null, is_marked: true } : row;
  });
  const again = await withRestarted(tx, {
    rows: after,
    chosen: new Set(),
    runIds: idsOf(changed.filter(({ ending }) => ending === null)),
    latestVersion: false,
    wholeGroups: new Set(),
  });
  if (!edit.dryRun) {
    await archiveAttempts(tx, keyColumns(chosen), true);
    await endStarts(tx, chosen);
    await tx.rows(MARK, [
      ...keyColumns(chosen),
      chosen.map(() => edit.state),
      `marked ${edit.state} by hand`,
      true,
    ]);
    await release(tx, chosen);
    await cancelWaits(tx, [...touched]);
    await tx.rows(BUMP, [idsOf(changed.filter((run) => !isEnded(run)))]);
    // An ended run is judged again: what its tasks say has changed.
    await tx.rows(REOPEN, [idsOf(changed.filter(isEnded)), false]);
    await clearChosen(tx, again, undefined);
  }
  return { affected: [...chosen, ...again].map(keyOf) };
}

async function markRun(
  tx: Connection,
  dagRunId: number,
  state: "queued" | "success" | "failed",
): Promise<RunEditResult> {
  const [run] = await lockRuns(tx, [{ dagRunId, tasks: null }]);
  if (!run) return { found: false, changed: false };
  if (state === "queued") {
    if (run.state === "queued" || run.state === "running") return { found: true, changed: false };
    await tx.rows(REOPEN, [[dagRunId], false]);
    const again = await withRestarted(tx, {
      rows: await readInstances(tx, [dagRunId]),
      chosen: new Set(),
      runIds: [dagRunId],
      latestVersion: false,
      wholeGroups: new Set(),
    });
    await clearChosen(tx, again, undefined);
    return { found: true, changed: true };
  }
  if (run.state === state) return { found: true, changed: false };
  await endRun(tx, { run, state, reason: `marked ${state} by hand` });
  return { found: true, changed: true };
}

async function cancelRun(tx: Connection, dagRunId: number, reason: string): Promise<RunEditResult> {
  const [run] = await lockRuns(tx, [{ dagRunId, tasks: null }]);
  if (!run) return { found: false, changed: false };
  if (run.state === "success" || run.state === "failed") return { found: true, changed: false };
  await endRun(tx, { run, state: "failed", reason });
  return { found: true, changed: true };
}

/**
 * What runs or waits takes the run's end state, what never started is skipped; the owner kills what is left. Where teardowns
 * are left to run, the run ends after them.
 */
async function endRun(
  tx: Connection,
  end: { run: LockedRun; state: "success" | "failed"; reason: string },
): Promise<void> {
  const all = await readInstances(tx, [end.run.id]);
  const left = await teardownsLeft(tx, end.run, all);
  const open = all.filter((row) => !isFinished(row.state) && !left.has(row));
  const states = open.map((row) => haltedAs(row.state, end.state));
  await archiveAttempts(tx, keyColumns(open), true);
  await endStarts(tx, open);
  // Marking a run as success also covers what has not begun; a run that fails leaves it to do.
  await tx.rows(MARK, [...keyColumns(open), states, end.reason, end.state === "success"]);
  await release(tx, open);
  await cancelWaits(tx, [end.run.id]);
  if (left.size > 0) return askForEnd(tx, end);
  await tx.rows(END_RUN, [end.run.id, end.state, end.reason]);
  const forget = closeDrives([end.run.id]);
  await tx.rows(forget.statement, forget.values);
}

async function deleteRun(tx: Connection, dagRunId: number): Promise<"deleted" | "active" | "not_found"> {
  const [run] = await lockRuns(tx, [{ dagRunId, tasks: null }]);
  if (!run) return "not_found";
  if (run.state === "running") return "active";
  await release(tx, await readInstances(tx, [dagRunId]));
  await tx.rows(DELETE_RUN, [dagRunId]);
  return "deleted";
}

function lockRuns(tx: Connection, runs: readonly RunSelection[]): Promise<LockedRun[]> {
  return tx.rows<LockedRun>(LOCK_RUNS, [runs.map((run) => run.dagRunId)]);
}

function idsOf(runs: readonly LockedRun[]): number[] {
  return runs.map(({ id }) => id);
}

async function release(tx: Connection, rows: readonly EditedInstance[]): Promise<void> {
  const slots = new Map<string, number>();
  for (const row of rows) {
    if (!OCCUPYING.has(row.state) && !row.keeps_slot) continue;
    slots.set(row.pool, (slots.get(row.pool) ?? 0) + row.pool_slots);
    for (const name of limitNames(row.limit_key)) slots.set(name, (slots.get(name) ?? 0) + 1);
  }
  if (slots.size > 0) await tx.rows(RELEASE, [[...slots.keys()], [...slots.values()]]);
}
