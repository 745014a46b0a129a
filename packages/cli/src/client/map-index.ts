/** Which instance of a mapped task is meant: by its map index, by its path (2/0) where maps are nested, by its label. */
import { type Client, path } from "./client.ts";

export const MAP_INDEX_FORMS = "its map index, its path such as 2/0, or its label";

/** -1 where none was named: the task itself, or its map as a whole. */
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
