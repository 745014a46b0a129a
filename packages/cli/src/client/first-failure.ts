import type { Client } from "./client.ts";
import type { TaskInstance } from "./resources.ts";

/** The task of a run that failed before all others: what the rest follows from, most often. */
export async function firstFailure(client: Client, runPath: string): Promise<TaskInstance | undefined> {
  const { items } = await client.list<TaskInstance>({
    path: `${runPath}/taskInstances`,
    key: "task_instances",
    what: "cannot look for what failed",
    query: { state: "failed", order_by: "end_date" },
    limit: 1,
  });
  return items[0];
}
