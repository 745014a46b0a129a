/** Orders by hand: start, restart or stop a task of a run; with the task null, close the run. */

import { path } from "../client/client.ts";
import { type DagRun, isRunEnded, type Ordered } from "../client/resources.ts";
import type { Session } from "../session.ts";

export interface Order {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string | null;
  readonly action: "start" | "restart" | "stop";
}

/** Gives the order, and asks first where something would be lost by it. */
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
  if (action === "stop") return session.confirm(`Stop ${taskId} of ${runId}?`);
  if (isRunEnded(await session.client.get<DagRun>(run, { what })))
    return session.confirm(`The run ${runId} is over. Run ${taskId} and what comes after it again?`);
  if (action === "restart") await session.confirm(`Restart ${taskId} of ${runId}?`);
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
