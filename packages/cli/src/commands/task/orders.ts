/** Orders by hand: start, restart or stop a task of a run; with the task null, close the run. */

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

export interface Order {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string | null;
  readonly action: "start" | "restart" | "stop";
}

/** Gives the order, and asks first where something would be lost by it; about what there is, and nothing else. */
export async function giveOrder(session: Session, order: Order): Promise<void> {
  const { action, dagId, runId, taskId } = order;
  const run = path`/dags/${dagId}/dagRuns/${runId}`;
  const where = taskId === null ? run : `${run}${path`/taskInstances/${taskId}`}`;
  const what = `cannot ${action} ${taskId === null ? "" : `${taskId} of `}the run ${runId} of ${dagId}`;
  await confirm(session, order, run, what);
  const ordered = await session.client.post<Ordered>(`${where}/${action}`, { what, idempotent: true });
  await session.printDone(
    { dag_id: dagId, dag_run_id: runId, task_id: taskId, action, ...ordered },
    told(order, ordered),
  );
}

/** A start loses nothing, but for the outputs of a run that is over. */
async function confirm(session: Session, order: Order, run: string, what: string): Promise<void> {
  const { action, dagId, runId, taskId } = order;
  if (taskId === null)
    return session.confirm(`Close the run ${runId} of ${dagId} and stop its streaming tasks?`);
  const isEnded = isRunEnded(await session.client.get<DagRun>(run, { what }));
  if (action === "start" && !isEnded) return;
  await requireTask(session, order, run, what);
  if (action === "stop") return session.confirm(`Stop ${taskId} of ${runId}?`);
  if (isEnded) {
    const { is_driven: isDriven } = await session.client.get<RunConditions>(`${run}/conditions`, { what });
    const effect = isDriven
      ? `It opens again as a whole: its rules and times are armed, its streaming tasks run, until it is closed (tradewind runs stop ${dagId} ${runId}). `
      : "";
    return session.confirm(`The run ${runId} is over. ${effect}Run ${taskId} and what comes after it again?`);
  }
  if (action === "restart") await session.confirm(`Restart ${taskId} of ${runId}?`);
}

/** A task of the DAG, or one that an earlier version had and the run has. */
async function requireTask(
  { client }: Session,
  { dagId, runId, taskId }: Order,
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
    remedy: `\`tradewind tasks list ${dagId} ${runId}\` shows those it has`,
  });
}

function told({ action, runId, taskId }: Order, { cleared, version }: Ordered): string {
  if (cleared.length > 0) {
    const names = new Set(cleared.map(({ task_id }) => task_id));
    return `The run ${runId} was over. Will run again: ${[...names].join(", ")}.`;
  }
  const what =
    taskId === null ? `The run ${runId} is to close` : `Task ${taskId} of ${runId} is to ${action}`;
  return `${what} (signal ${version}).`;
}
