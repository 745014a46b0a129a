import type { Client } from "./client.ts";
import type { TaskInstance } from "./resources.ts";

/** The first task of a run that failed, usually the cause of the later failures. */
export interface FirstFailure {
  readonly instance: TaskInstance;
  /** How many other tasks failed. */
  readonly others: number;
}

export async function firstFailure(client: Client, runPath: string): Promise<FirstFailure | undefined> {
  const { items, total } = await client.list<TaskInstance>({
    path: `${runPath}/taskInstances`,
    key: "task_instances",
    what: "cannot read which task failed",
    query: { state: "failed", order_by: "end_date" },
    limit: 1,
  });
  const [instance] = items;
  return instance && { instance, others: total - 1 };
}
