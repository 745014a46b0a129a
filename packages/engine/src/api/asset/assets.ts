/**
 * `/assets`: Airflow's resource. Also accepts events from outside of tasks; an event for an unknown URI creates the asset.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { recordEvent } from "../../store/asset/asset-events.ts";
import { forgetQueued, listQueued } from "../../store/asset/asset-queue.ts";
import type { Connection } from "../../store/database/database.ts";
import {
  ALIAS_ORDER,
  ASSET_ORDER,
  type AssetRow,
  EVENT_ORDER,
  findAsset,
  findEvent,
  listAliases,
  listAssets,
  listEvents,
} from "../../store/list/assets.ts";
import { pageOf, requireDagExists } from "../dag/dags.ts";
import { ParamsCheck } from "../dag/params-check.ts";
import { createBody, requireRun, runParams, triggerRun } from "../run/dag-runs.ts";
import { principalOf } from "../server/auth.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import { dagRunDocument } from "../server/documents.ts";
import {
  flag,
  id,
  instant,
  instantRange,
  instantsOf,
  int,
  jsonValue,
  many,
  orderBy,
  pageQuery,
  text,
} from "../server/fields.ts";
import { change, create } from "../server/idempotent.ts";
import { conflict, invalid, notFound } from "../server/problem.ts";
import {
  aliasDocument,
  assetDocument,
  eventDocument,
  eventList,
  queuedDocument,
  queuedList,
  showAlias,
  showAsset,
  showEvent,
  showQueued,
} from "./asset-document.ts";

const MAX_PAYLOAD_BYTES = 65_536;
const MAX_URI = 500;

const uri = z
  .string()
  .min(1)
  .max(MAX_URI)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
  .regex(/^[^\u0000-\u001f\u007f*]*$/, 'An address must not contain "*" or control characters');
const partition = id.max(200);
const assetId = int(0, Number.MAX_SAFE_INTEGER);
const params = z.object({ asset_id: assetId });

const assetQuery = z.strictObject({
  ...pageQuery,
  name_pattern: text.optional(),
  name_prefix_pattern: text.optional(),
  uri_pattern: text.optional(),
  uri_prefix_pattern: text.optional(),
  uri: uri.optional().describe("Exactly this URI."),
  dag_ids: many(id).optional(),
  only_active: flag.default(true),
  order_by: orderBy(ASSET_ORDER, "id"),
});

const aliasQuery = z.strictObject({
  ...pageQuery,
  name_pattern: text.optional(),
  name_prefix_pattern: text.optional(),
  order_by: orderBy(ALIAS_ORDER, "id"),
});

const eventQuery = z.strictObject({
  ...pageQuery,
  ...instantRange("timestamp"),
  asset_id: assetId.optional(),
  uri: uri.optional(),
  source_dag_id: id.optional(),
  source_task_id: id.optional(),
  source_run_id: id.optional(),
  source_map_index: int(-1).optional(),
  partition_key: partition.optional(),
  order_by: orderBy(EVENT_ORDER, "timestamp"),
});

const eventBody = z.strictObject({
  asset_id: z.int().min(0).optional(),
  uri: uri.optional().describe("Instead of asset_id; an unknown asset is created."),
  extra: z.record(z.string(), jsonValue).optional(),
  payload: jsonValue.optional().describe("Instead of extra, for a value that is not an object."),
  partition_key: partition.nullish(),
});

const queuedQuery = z.strictObject({ before: instant.optional() });
const dagParams = z.object({ dag_id: id });

export const assets: Resource = (app, options) => {
  const { database } = options;
  const tags = ["Asset"];

  app.get(
    "/api/v2/assets",
    {
      schema: {
        querystring: assetQuery,
        response: { 200: z.object({ assets: z.array(assetDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const filter = {
        uri: query.uri,
        uriPattern: query.uri_pattern ?? query.name_pattern,
        uriPrefix: query.uri_prefix_pattern ?? query.name_prefix_pattern,
        dagIds: query.dag_ids,
        onlyActive: query.only_active,
      };
      const { rows, total } = await listAssets(database, filter, pageOf(query));
      return { assets: rows.map(showAsset), total_entries: total };
    },
  );

  app.get(
    "/api/v2/assets/:asset_id",
    { schema: { params, response: { 200: assetDocument }, tags } },
    async (request) => showAsset(await requireAsset(database, request.params.asset_id)),
  );

  app.get(
    "/api/v2/assets/aliases",
    {
      schema: {
        querystring: aliasQuery,
        response: { 200: z.object({ asset_aliases: z.array(aliasDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const filter = { namePattern: query.name_pattern, namePrefix: query.name_prefix_pattern };
      const { rows, total } = await listAliases(database, filter, pageOf(query));
      return { asset_aliases: rows.map(showAlias), total_entries: total };
    },
  );

  app.get(
    "/api/v2/assets/aliases/:asset_alias_id",
    {
      schema: { params: z.object({ asset_alias_id: assetId }), response: { 200: aliasDocument }, tags },
    },
    async (request) => {
      const aliasId = request.params.asset_alias_id;
      const { rows } = await listAliases(database, { id: aliasId }, { limit: 1, offset: 0 });
      if (rows[0] === undefined) throw notFound(`Asset alias ${aliasId} does not exist`);
      return showAlias(rows[0]);
    },
  );

  app.get(
    "/api/v2/assets/events",
    { schema: { querystring: eventQuery, response: { 200: eventList }, tags } },
    async ({ query }) => {
      const filter = {
        assetId: query.asset_id,
        uri: query.uri,
        sourceDagId: query.source_dag_id,
        sourceTaskId: query.source_task_id,
        sourceRunId: query.source_run_id,
        sourceMapIndex: query.source_map_index,
        partition: query.partition_key,
        createdAt: instantsOf(query, "timestamp"),
      };
      const { rows, total } = await listEvents(database, filter, pageOf(query));
      return { asset_events: rows.map(showEvent), total_entries: total };
    },
  );

  app.get(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/upstreamAssetEvents",
    { schema: { params: runParams, response: { 200: eventList }, tags: ["DagRun"] } },
    async (request) => {
      const { id: dagRunId } = await requireRun(database, request.params);
      const { rows, total } = await listEvents(database, { dagRunId }, { limit: 1_000, offset: 0 });
      return { asset_events: rows.map(showEvent), total_entries: total };
    },
  );

  sending(app, options);
  queue(app, options);
};

function sending(app: Parameters<Resource>[0], options: ApiOptions): void {
  const tags = ["Asset"];
  const paramsCheck = new ParamsCheck();

  app.post(
    "/api/v2/assets/events",
    { schema: { body: eventBody, response: { 200: eventDocument }, tags } },
    async (request, reply) => {
      const { body } = request;
      const payload = payloadOf(body);
      let address = body.uri;
      const answer = await create(options, { request, reply }, async (tx) => {
        address = await addressOf(tx, body);
        const sender = principalOf(request).name;
        const made = await recordEvent(tx, {
          uri: address,
          payload,
          partition: body.partition_key ?? null,
          sender,
        });
        return { status: 200, body: showEvent((await findEvent(tx, made))!) };
      });
      if (!answer.replayed && address !== undefined) options.notify({ kind: "signal_sent", key: address });
      return answer.body;
    },
  );

  app.post(
    "/api/v2/assets/:asset_id/materialize",
    {
      schema: { params, body: createBody.nullish(), response: { 200: dagRunDocument }, tags },
    },
    async (request, reply) => {
      const asset = await requireAsset(options.database, request.params.asset_id);
      const producers = asset.uses.filter(({ kind }) => kind === "produces").map(({ dag_id }) => dag_id);
      const [dagId, ...others] = new Set(producers);
      if (dagId === undefined) throw notFound(`No DAG produces the asset "${asset.uri}"`);
      if (others.length > 0) {
        const names = [dagId, ...others].map((name) => `"${name}"`).join(", ");
        throw conflict(`Several DAGs produce the asset "${asset.uri}": ${names}. Trigger one of them.`);
      }
      return triggerRun(options, { request, reply }, { dagId, body: request.body ?? {}, paramsCheck });
    },
  );
}

function queue(app: Parameters<Resource>[0], options: ApiOptions): void {
  const { database } = options;
  const tags = ["Asset"];
  const answer = { response: { 200: queuedList }, querystring: queuedQuery, tags };
  const shown = (rows: Awaited<ReturnType<typeof listQueued>>) => ({
    queued_events: rows.map(showQueued),
    total_entries: rows.length,
  });

  app.get("/api/v2/assets/:asset_id/queuedEvents", { schema: { params, ...answer } }, async (request) => {
    const { id: assetId } = await requireAsset(database, request.params.asset_id);
    return shown(await listQueued(database, { assetId, before: request.query.before }));
  });

  app.get(
    "/api/v2/dags/:dag_id/assets/queuedEvents",
    { schema: { params: dagParams, ...answer } },
    async (request) => {
      const dagId = request.params.dag_id;
      await requireDagExists(database, dagId);
      return shown(await listQueued(database, { dagId, before: request.query.before }));
    },
  );

  app.get(
    "/api/v2/dags/:dag_id/assets/:asset_id/queuedEvents",
    {
      schema: {
        params: z.object({ ...dagParams.shape, ...params.shape }),
        querystring: queuedQuery,
        response: { 200: queuedDocument },
        tags,
      },
    },
    async (request) => {
      const { asset_id: assetId, dag_id: dagId } = request.params;
      await requireDagExists(database, dagId);
      const { uri } = await requireAsset(database, assetId);
      const [queued] = await listQueued(database, { dagId, assetId, before: request.query.before });
      if (queued === undefined) throw notFound(`No event of asset "${uri}" is queued for DAG "${dagId}"`);
      return showQueued(queued);
    },
  );

  app.delete(
    "/api/v2/dags/:dag_id/assets/queuedEvents",
    { schema: { params: dagParams, response: { 204: z.null() }, tags } },
    async (request, reply) => {
      const dagId = request.params.dag_id;
      await requireDagExists(database, dagId);
      await change(options, request, async (tx) => {
        if (!(await forgetQueued(tx, dagId))) throw notFound(`DAG "${dagId}" is not scheduled on assets`);
        return { result: null, deed: { action: "delete_queued_asset_events", dagId } };
      });
      options.notify({ kind: "dag_changed", dagIds: [dagId] });
      return reply.code(204).send(null);
    },
  );
}

async function requireAsset(connection: Connection, assetId: number): Promise<AssetRow> {
  const row = await findAsset(connection, { id: assetId });
  if (row === undefined) throw notFound(`Asset ${assetId} does not exist: see GET /api/v2/assets`);
  return row;
}

async function addressOf(tx: Connection, body: z.output<typeof eventBody>): Promise<string> {
  if ((body.uri === undefined) === (body.asset_id === undefined))
    throw invalid(["body", "asset_id"], "Give either asset_id or uri");
  return body.uri ?? (await requireAsset(tx, body.asset_id!)).uri;
}

function payloadOf({ extra, payload }: z.output<typeof eventBody>): Json {
  if (extra !== undefined && payload !== undefined)
    throw invalid(["body", "payload"], "Give either extra or payload");
  const given = (extra ?? payload ?? null) as Json;
  const bytes = Buffer.byteLength(JSON.stringify(given));
  if (bytes > MAX_PAYLOAD_BYTES) {
    throw invalid(
      ["body", extra === undefined ? "payload" : "extra"],
      `It has ${bytes} bytes, at most ${MAX_PAYLOAD_BYTES} are allowed: store larger data at the asset's URI`,
    );
  }
  return given;
}
