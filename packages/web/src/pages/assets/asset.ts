import type { components } from "../../api/schema.gen.ts";

export type Asset = components["schemas"]["AssetResponse"];
export type AssetEvent = components["schemas"]["AssetEventResponse"];

export const ASSETS = "/api/v2/assets";
/** Answers that differ after an event of an asset. */
export const ASSET_PATHS = [
  ASSETS,
  `${ASSETS}/{asset_id}`,
  `${ASSETS}/{asset_id}/queuedEvents`,
  "/ui/lineage",
] as const;

/** DAGs that have a task which produces it. */
export function producersOf({ producing_tasks: tasks }: Pick<Asset, "producing_tasks">): readonly string[] {
  return [...new Set(tasks.map(({ dag_id }) => dag_id))];
}

/** DAGs that run on it, or have a task that consumes it. */
export function consumersOf({
  consuming_tasks: tasks,
  scheduled_dags: dags,
}: Pick<Asset, "consuming_tasks" | "scheduled_dags">): readonly string[] {
  return [...new Set([...dags, ...tasks].map(({ dag_id }) => dag_id))];
}
