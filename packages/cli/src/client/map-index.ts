/** Finds an instance of a mapped task by its map index, its path (2/0) in nested maps, or its label. */
import { type Client, path } from "./client.ts";

export const MAP_INDEX_FORMS = "map index, path such as 2/0, or label";

/** -1 if none is given: the task itself, or its map as a whole. */
export async function findMapIndex(
  client: Client,
  { dagId, runId, taskId }: { readonly dagId: string; readonly runId: string; readonly taskId: string },
  which: string | undefined,
): Promise<number> {
  if (which === undefined) return -1;
  const where = path`/dags/${dagId}/dagRuns/${runId}/taskInstances/${taskId}/mapIndex`;
  const found = await client.get<{ map_index: number }>(where, {
    what: `cannot find the instance "${which}" of ${taskId}`,
    query: { which },
  });
  return found.map_index;
}
