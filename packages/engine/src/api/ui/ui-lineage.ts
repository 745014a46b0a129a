/** `/ui/lineage`: which DAGs produce and use which assets, as the current versions declare it. */
import { z } from "zod";
import { findAsset } from "../../store/list/assets.ts";
import { findDag } from "../../store/list/dags.ts";
import { type LineageUse, readLineage } from "../../store/ui/lineage.ts";
import { noDag } from "../dag/dags.ts";
import type { Resource } from "../server/context.ts";
import { id, int, iso, nullableDate } from "../server/fields.ts";
import { invalid, notFound } from "../server/problem.ts";
import { UI_TAG } from "./columns.ts";

const MOST_STEPS = 20;

const lineageDocument = z
  .object({
    assets: z.array(
      z.object({ id: z.number(), uri: z.string(), group: z.string(), last_event_at: nullableDate }),
    ),
    aliases: z.array(z.object({ id: z.number(), name: z.string() })),
    dags: z.array(
      z.object({
        dag_id: z.string(),
        is_paused: z.boolean(),
        state: z.string().nullable().describe("Of its latest run."),
      }),
    ),
    edges: z.array(
      z.object({
        dag_id: z.string(),
        asset_id: z.number().nullable(),
        alias_id: z.number().nullable(),
        kind: z.enum(["produces", "consumes", "schedule"]),
        task_ids: z.array(z.string()).describe("Empty: the schedule."),
      }),
    ),
    more: z.boolean().describe("There are more edges."),
  })
  .meta({
    id: "UiLineage",
    description:
      "With a start: everything upstream and downstream of it within `depth` steps. Assets that tasks add to an alias at run time are not part of it.",
  });

const lineageQuery = z.strictObject({
  asset_id: int(0, Number.MAX_SAFE_INTEGER).optional(),
  dag_id: id.optional(),
  depth: int(1, MOST_STEPS).default(6),
});

export const uiLineage: Resource = (app, { database }) => {
  app.get(
    "/ui/lineage",
    { schema: { querystring: lineageQuery, response: { 200: lineageDocument }, tags: [UI_TAG.name] } },
    async ({ query: { asset_id: assetId, dag_id: dagId, depth } }) => {
      if (assetId !== undefined && dagId !== undefined)
        throw invalid(["query", "asset_id"], "Give either asset_id or dag_id");
      if (dagId !== undefined && (await findDag(database, dagId)) === undefined) throw noDag(dagId);
      if (assetId !== undefined && (await findAsset(database, { id: assetId })) === undefined)
        throw notFound(`Asset ${assetId} does not exist: see GET /api/v2/assets`);
      const lineage = await readLineage(database, { assetId, dagId }, depth);
      return {
        assets: lineage.assets.map(({ group_name, last_event_at, ...asset }) => ({
          ...asset,
          group: group_name,
          last_event_at: iso(last_event_at),
        })),
        aliases: [...lineage.aliases],
        dags: [...lineage.dags],
        edges: edgesOf(lineage.uses),
        more: lineage.more,
      };
    },
  );
};

/** One edge for all tasks of a DAG that use an asset in the same way. */
function edgesOf(uses: readonly LineageUse[]) {
  const groups = Map.groupBy(uses, ({ alias_id, asset_id, dag_id, kind }) =>
    [dag_id, kind, asset_id, alias_id].join("\0"),
  );
  return [...groups.values()].map((group) => {
    const { alias_id, asset_id, dag_id, kind } = group[0]!;
    const taskIds = group.map(({ task_id }) => task_id).filter((taskId) => taskId !== "");
    return { dag_id, asset_id, alias_id, kind, task_ids: taskIds };
  });
}
