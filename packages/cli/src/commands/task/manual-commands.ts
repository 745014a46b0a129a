/** Manual commands: start, restart or stop a task of a run; with task null, close the run. */

import { path } from "../../client/client.ts";
import {
  type DagRun,
  isRunEnded,
  type Ordered,
  type RunConditions,
  type TaskInstance,
} from "../../client/resources.ts";
import { CliError } from "../../errors.ts";
import { EXIT } from "../../exit-code.ts";
import type { Session } from "../../session.ts";

export interface ManualCommand {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string | null;
  readonly action: "start" | "restart" | "stop";
}

/** Sends the command. Asks first if it discards work; the task and run must exist. */
export async function submitManualCommand(session: Session, order: ManualCommand): Promise<void> {
  const { action, dagId, runId, taskId } = order;
  const run = path`/dags/${dagId}/dagRuns/${runId}`;
  const where = taskId === null ? run : `${run}${path`/taskInstances/${taskId}`}`;
  const what = `cannot ${action} ${taskId === null ? "" : `${taskId} of `}the run ${runId} of ${dagId}`;
  await confirm(session, order, run, what);
  const ordered = await session.client.post<Ordered>(`${where}/${action}`, { what, idempotent: true });
  await session.printDone(
    { dag_id: dagId, dag_run_id: runId, task_id: taskId, action, ...ordered },
    describeCommand(order, ordered),
  );
}

/** A start discards nothing, except the outputs of a run that has ended. */
async function confirm(session: Session, order: ManualCommand, run: string, what: string): Promise<void> {
  const { action, dagId, runId, taskId } = order;
  if (taskId === null) return session.confirm(`Close run ${runId} of ${dagId} and stop its streaming tasks?`);
  const isEnded = isRunEnded(await session.client.get<DagRun>(run, { what }));
  if (action === "start" && !isEnded) return;
  await requireTask(session, order, run, what);
  if (action === "stop") return session.confirm(`Stop ${taskId} of ${runId}?`);
  if (isEnded) {
    const { is_driven: isDriven } = await session.client.get<RunConditions>(`${run}/conditions`, { what });
    const effect = isDriven
      ? `This reopens the whole run with its rules, timers and streaming tasks, until you close it (tradewind runs stop ${dagId} ${runId}). `
      : "";
    return session.confirm(`Run ${runId} has ended. ${effect}Rerun ${taskId} and its downstream tasks?`);
  }
  if (action === "restart") await session.confirm(`Restart ${taskId} of ${runId}?`);
}

/** A task of the DAG, or of the run's earlier version. */
async function requireTask(
  { client }: Session,
  { dagId, runId, taskId }: ManualCommand,
  run: string,
  what: string,
): Promise<void> {
  const isMissing = (error: unknown) => error instanceof CliError && error.exit === EXIT.notFound;
  const found = await client
    .get(path`/dags/${dagId}/tasks/${taskId!}`, { what })
    .then(() => true)
    .catch((error: unknown) => {
      if (isMissing(error)) return false;
      throw error;
    });
  if (found) return;
  const { items } = await client.list<TaskInstance>({
    path: `${run}/taskInstances`,
    key: "task_instances",
    what,
    limit: 0,
  });
  if (items.some(({ task_id }) => task_id === taskId)) return;
  throw new CliError("NOT_FOUND", `${what}: the run has no task "${taskId}".`, {
    exit: EXIT.notFound,
    remedy: `\`tradewind tasks list ${dagId} ${runId}\` lists its tasks`,
  });
}

function describeCommand({ action, runId, taskId }: ManualCommand, { cleared, version }: Ordered): string {
  if (cleared.length > 0) {
    const names = new Set(cleared.map(({ task_id }) => task_id));
    return `Run ${runId} had ended. Rerunning: ${[...names].join(", ")}.`;
  }
  const what =
    taskId === null ? `The run ${runId} is to close` : `Task ${taskId} of ${runId} is to ${action}`;
  return `${what} (signal ${version}).`;
}
