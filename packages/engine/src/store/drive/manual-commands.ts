/**
 * Manual commands: start, restart or stop a task, or close the run. A command is stored in the run's drive and sent as a
 * signal. It raises the run's generation, so the owner reloads the run and executes the command first. A run without a
 * drive gets one. An ended run has no owner: there the task to start is cleared.
 *
 * Everything happens under the run's lock: an end or a clear of the run commits before or after. An owner that was about
 * to end the run is fenced, and finds the command when it reloads.
 */
import type { DagManifest, Json } from "@tradewind/sdk/manifest";
import { compileGraph, Drive, isDriven, RuleSet } from "../../model/index.ts";
import { senderPlace, type TaskPlace } from "../../model/signal/sender-name.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { clearTasks } from "../edit/clear-tasks.ts";
import type { InstanceKey } from "../edit/edited-instances.ts";
import { readManifests } from "../list/dag-versions.ts";
import { sendSignals } from "../signal/signals.ts";
import { findListener, retryDeadLetter } from "../signal/signals-watch.ts";
import { addManualCommand, openDriveNow, openDrives } from "./run-drives.ts";

export type OrderAction = "start" | "restart" | "stop";

/** For a task; `taskId` null: close the run. */
export type ManualRunCommand = {
  readonly dagId: string;
  readonly runId: string;
  readonly user: string;
} & (
  | { readonly taskId: string; readonly action: OrderAction }
  | { readonly taskId: null; readonly action: "stop" }
);

export type ManualCommandResult =
  /** The run's owner has to be notified. `version`: of the signal of the command. */
  | { readonly kind: "ordered"; readonly dagRunId: number; readonly version: number }
  /** The run had ended. `version`: of the command's signal, for a task that never started. */
  | {
      readonly kind: "cleared";
      readonly dagRunId: number;
      readonly affected: readonly InstanceKey[];
      readonly version: number | null;
      /** Signals drive the run: it receives them again. */
      readonly isDriven: boolean;
    }
  | { readonly kind: "unknown_run" | "unknown_task" }
  /** "never_began": it ended in the queue, and has no instances to clear. */
  | { readonly kind: "over" | "never_began"; readonly state: string }
  /** The run has no drive: there is nothing to close. */
  | { readonly kind: "not_driven" };

/**
 * NO KEY UPDATE blocks batches, edits and other commands as UPDATE would. It does not block an owner that inserts the
 * run's drive, which references this row, at the same time: with UPDATE the two would deadlock.
 */
const LOCK_RUN = statement(
  "order-lock-run",
  `SELECT id, dag_id, run_id, conf, state, version_id FROM dag_run WHERE dag_id = $1 AND run_id = $2
   FOR NO KEY UPDATE`,
);

const HAS_DRIVE = statement("order-has-drive", "SELECT 1 FROM run_drive WHERE dag_run_id = $1");

const FIND_LETTER = statement("order-find-letter", "SELECT listener FROM signal_dead_letter WHERE id = $1");

const LOAD_AGAIN = statement(
  "order-load-again",
  "UPDATE dag_run SET generation = generation + 1 WHERE id = $1",
);

const LAST_TRY = statement(
  "order-last-try",
  "SELECT coalesce(max(try_number), 0) AS try_number FROM task_instance WHERE dag_run_id = $1 AND task_id = $2",
);

interface LockedRun {
  readonly id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly conf: Json;
  readonly state: "queued" | "running" | "success" | "failed";
  readonly version_id: number;
}

/** Call it last, before the audit record only: its signal blocks other writers of the same key. */
export async function submitManualCommand(
  tx: Connection,
  order: ManualRunCommand,
): Promise<ManualCommandResult> {
  const run = await tx.one<LockedRun>(LOCK_RUN, [order.dagId, order.runId]);
  if (!run) return { kind: "unknown_run" };
  // The run is locked, so its version cannot change.
  const manifest = (await readManifests(tx, [run.version_id])).get(run.version_id)!;
  if (order.taskId !== null && !manifest.tasks.some(({ taskId }) => taskId === order.taskId))
    return { kind: "unknown_task" };
  if (run.state === "success" || run.state === "failed") return commandAfterEnd(tx, run, manifest, order);
  const hasDrive = (await tx.one(HAS_DRIVE, [run.id])) !== undefined;
  if (order.taskId === null && !hasDrive && !isDriven(manifest)) return { kind: "not_driven" };
  if (!hasDrive) await openDrive(tx, run, manifest);
  return { kind: "ordered", dagRunId: run.id, version: await recordCommand(tx, run, order) };
}

/** Rules receive the signals sent since the run was queued; a run without rules starts at the current position. */
async function openDrive(tx: Connection, run: LockedRun, manifest: DagManifest): Promise<void> {
  if (isDriven(manifest)) await openDrives(tx, [run.id]);
  else await openDriveNow(tx, run.id);
}

async function recordCommand(
  tx: Connection,
  run: LockedRun,
  { action, taskId, user }: Pick<ManualRunCommand, "action" | "taskId" | "user">,
): Promise<number> {
  await tx.rows(LOAD_AGAIN, [run.id]);
  await addManualCommand(tx, run.id, { taskId, action, by: user });
  const name = `${run.dag_id}/${run.run_id}`;
  const key = taskId === null ? name : `${name}/${taskId}`;
  const [sent] = await sendSignals(tx, [
    { namespace: "action", key, value: { action, by: user }, sender: user },
  ]);
  return sent!.id;
}

async function commandAfterEnd(
  tx: Connection,
  run: LockedRun,
  manifest: DagManifest,
  { action, taskId, user }: ManualRunCommand,
): Promise<ManualCommandResult> {
  if (taskId === null || action === "stop") return { kind: "over", state: run.state };
  const drive = new Drive({
    manifest,
    rules: new RuleSet(manifest),
    run: { dagId: run.dag_id, runId: run.run_id, conf: run.conf },
    startedAt: 0,
  });
  const tasks = reach(manifest, drive, taskId).map((each) => ({ taskId: each, mapIndex: null }));
  const cleared = await clearTasks(tx, {
    runs: [{ dagRunId: run.id, tasks }],
    only: "any",
    resetRuns: true,
    latestVersion: false,
    refuseRunning: false,
    dryRun: false,
  });
  const affected = cleared.kind === "cleared" ? cleared.affected : [];
  if (affected.length === 0) return { kind: "never_began", state: run.state };
  const lastTry = await tx.one<{ try_number: number }>(LAST_TRY, [run.id, taskId]);
  // Clearing starts a task that has run before. A task that never started would keep waiting for a start.
  const lacksStart = drive.needsStart(taskId) && lastTry?.try_number === 0;
  if (lacksStart) await openDrives(tx, [run.id]);
  const version = lacksStart ? await recordCommand(tx, run, { action: "start", taskId, user }) : null;
  return { kind: "cleared", dagRunId: run.id, affected, version, isDriven: isDriven(manifest) };
}

/** The task and the tasks that run again with it: its downstream, except for tasks that wait for a start of their own. */
function reach(manifest: DagManifest, drive: Drive, from: string): string[] {
  const { byId, nodes } = compileGraph(manifest);
  const reached = new Set([byId.get(from)!]);
  for (const { downstream } of reached) {
    for (const index of downstream) if (!drive.needsStart(nodes[index]!.id)) reached.add(nodes[index]!);
  }
  return [...reached].map(({ id }) => id);
}

/** `dagRunId`: the run whose owner has to be notified; null: another kind of listener retries the dead letter. */
export type LetterResult =
  | { readonly kind: "unknown" }
  | { readonly kind: "retried"; readonly dagRunId: number | null }
  /** The run of the dead letter no longer receives signals; state null: it is deleted. */
  | { readonly kind: "over"; readonly task: TaskPlace; readonly state: string | null };

/**
 * Retries a dead letter once. A dead letter of an `onSignal` belongs to its run: the owner reloads the run with the dead
 * letter, and deletes it in the transaction of its effect. Of two concurrent retries, the second makes the owner reload
 * the run, so that only one takes effect.
 */
export async function retryLetter(tx: Connection, letterId: number): Promise<LetterResult> {
  const letter = await tx.one<{ listener: string }>(FIND_LETTER, [letterId]);
  if (!letter) return { kind: "unknown" };
  const isNamed = await findListener(tx, letter.listener);
  const task = isNamed ? null : senderPlace(letter.listener);
  const run = task && (await tx.one<LockedRun>(LOCK_RUN, [task.dagId, task.runId]));
  if (task && (!run || run.state === "success" || run.state === "failed"))
    return { kind: "over", task, state: run?.state ?? null };
  // The owner may have processed it while this transaction waited for the lock.
  if (!(await retryDeadLetter(tx, letterId))) return { kind: "unknown" };
  if (!run) return { kind: "retried", dagRunId: null };
  await tx.rows(LOAD_AGAIN, [run.id]);
  return { kind: "retried", dagRunId: run.id };
}
