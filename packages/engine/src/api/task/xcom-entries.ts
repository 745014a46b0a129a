/**
 * `/xcomEntries`: outputs of tasks. Values are returned as stored JSON. A large value comes with its storage location; above a
 * limit, only the location is returned. `raw` streams only the value, of any size.
 */
import type { FastifyReply } from "fastify";
import { z } from "zod";
import type { OpenText } from "../../output/large-outputs.ts";
import type { Connection } from "../../store/database/database.ts";
import { findXCom, listXComs, XCOM_ORDER, type XComRow } from "../../store/list/xcoms.ts";
import { pageOf, requireDagExists } from "../dag/dags.ts";
import { requireTask } from "../dag/tasks.ts";
import { requireRun } from "../run/dag-runs.ts";
import type { Resource } from "../server/context.ts";
import {
  date,
  flag,
  id,
  instantRange,
  instantsOf,
  iso,
  mapIndex,
  namedList,
  nullableDate,
  orderBy,
  pageQuery,
  text,
} from "../server/fields.ts";
import { notFound, type Problem } from "../server/problem.ts";
import { stream } from "../server/streaming.ts";
import { outputText, shownOutput } from "./shown-output.ts";
import { addressOf, describe, requireInstance } from "./task-instances.ts";

const entry = z.object({
  key: z.string(),
  timestamp: date,
  logical_date: nullableDate,
  map_index: z.number(),
  task_id: z.string(),
  dag_id: z.string(),
  run_id: z.string(),
  dag_display_name: z.string(),
  task_display_name: z.string(),
  run_after: date,
});

/** Metadata of an output that is too large for the database. */
const object = z.object({
  store: z.string(),
  key: z.string(),
  bytes: z.number(),
  items: z.number().nullable().describe("Number of items of a list."),
});

const listQuery = z.strictObject({
  ...pageQuery,
  ...instantRange("logical_date"),
  ...instantRange("run_after"),
  xcom_key: id.optional(),
  map_index: mapIndex.optional(),
  map_index_filter: mapIndex.optional(),
  xcom_key_pattern: text.optional(),
  xcom_key_prefix_pattern: text.optional(),
  dag_display_name_pattern: text.optional(),
  dag_display_name_prefix_pattern: text.optional(),
  run_id_pattern: text.optional(),
  run_id_prefix_pattern: text.optional(),
  task_id_pattern: text.optional(),
  task_id_prefix_pattern: text.optional(),
  order_by: orderBy(XCOM_ORDER, "dag_id"),
});

const BASE = "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/taskInstances/:task_id/xcomEntries";
const listParams = z.object({ dag_id: id, dag_run_id: id, task_id: id });
const entryParams = listParams.extend({ xcom_key: id });

export const xcomEntries: Resource = (app, { database, outputs }) => {
  app.get(
    BASE,
    {
      schema: {
        params: listParams,
        querystring: listQuery,
        response: { 200: z.object({ xcom_entries: z.array(entry), total_entries: z.number() }) },
        tags: ["XCom"],
      },
    },
    async ({ params, query }) => {
      const filter = {
        dagIds: namedList(params.dag_id),
        runIds: namedList(params.dag_run_id),
        taskIds: namedList(params.task_id),
        mapIndex: query.map_index ?? query.map_index_filter,
        key: query.xcom_key,
        keyPattern: query.xcom_key_pattern,
        keyPrefix: query.xcom_key_prefix_pattern,
        dagIdPattern: query.dag_display_name_pattern,
        dagIdPrefix: query.dag_display_name_prefix_pattern,
        runIdPattern: query.run_id_pattern,
        runIdPrefix: query.run_id_prefix_pattern,
        taskIdPattern: query.task_id_pattern,
        taskIdPrefix: query.task_id_prefix_pattern,
        logicalDate: instantsOf(query, "logical_date"),
        runAfter: instantsOf(query, "run_after"),
      };
      const { rows, total } = await listXComs(database, filter, pageOf(query));
      if (total === 0) await requireListed(database, params);
      return { xcom_entries: rows.map(show), total_entries: total };
    },
  );

  app.get(
    `${BASE}/:xcom_key`,
    {
      schema: {
        params: entryParams,
        querystring: z.strictObject({
          map_index: mapIndex.default(-1),
          deserialize: flag.default(false),
          stringify: flag.default(false),
          raw: flag.default(false).describe("Only the value, as a stream of JSON of any size."),
        }),
        response: { 200: entry.extend({ value: z.any(), object: object.optional() }) },
        tags: ["XCom"],
      },
    },
    async ({ params, query }, reply) => {
      const { dag_id, dag_run_id, task_id, xcom_key } = params;
      const row = await findXCom(database, {
        dagIds: [dag_id],
        runIds: [dag_run_id],
        taskIds: [task_id],
        mapIndex: query.map_index,
        key: xcom_key,
      });
      if (row === undefined) throw await absence(database, params, query.map_index);
      if (query.raw) {
        const text = await outputText(row.value, outputs);
        const answer = reply as unknown as FastifyReply;
        // Also for a client that disconnected before the first piece.
        answer.raw.once("close", () => text.close());
        return stream(answer, "application/json", (stop) => wholeText(text, stop)) as never;
      }
      const { value, ...stored } = await shownOutput(row.value, outputs);
      return { ...show(row), value: query.stringify ? JSON.stringify(value) : value, ...stored };
    },
  );
};

/** An empty list would hide that the object does not exist. */
async function requireListed(connection: Connection, params: z.output<typeof listParams>): Promise<void> {
  const { dag_id, dag_run_id, task_id } = params;
  if (dag_id === "~") return;
  if (dag_run_id === "~") await requireDagExists(connection, dag_id);
  else if (task_id === "~") await requireRun(connection, params);
  else await requireTask(connection, params);
}

/** Why there is no such output. @throws If the instance does not exist. */
async function absence(
  connection: Connection,
  params: z.output<typeof entryParams>,
  index: number,
): Promise<Problem> {
  await requireRun(connection, params);
  const address = addressOf(params, index);
  const { state } = await requireInstance(connection, address);
  const { dagId, runId, taskId } = address;
  const which = index < 0 ? "" : ` --map-index ${index}`;
  const why =
    state === "success"
      ? "it returned nothing"
      : `it is ${state}; tradewind tasks why ${dagId} ${runId} ${taskId}${which} explains why`;
  return notFound(`${describe(address)} has no output "${params.xcom_key}": ${why}`);
}

/** Aborts the response if the server stops: a normal end would look complete. */
async function* wholeText(text: OpenText, stop: AbortSignal): AsyncGenerator<string, void, undefined> {
  try {
    for await (const piece of text.pieces()) {
      stop.throwIfAborted();
      yield piece;
    }
  } finally {
    text.close();
  }
}

function show(row: XComRow): z.output<typeof entry> {
  return {
    key: row.key,
    timestamp: iso(row.created_at),
    logical_date: iso(row.logical_date),
    map_index: row.map_index,
    task_id: row.task_id,
    dag_id: row.dag_id,
    run_id: row.run_id,
    dag_display_name: row.dag_id,
    task_display_name: row.task_id,
    run_after: iso(row.run_after),
  };
}
