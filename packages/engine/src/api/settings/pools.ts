/** `/pools`: read, create, change, delete. */
import { z } from "zod";
import type { Connection } from "../../store/database/database.ts";
import {
  createPool,
  DEFAULT_POOL,
  deletePool,
  findPool,
  listPools,
  lockPool,
  POOL_ORDER,
  type PoolRow,
  type PoolValues,
  updatePool,
} from "../../store/pool/pools.ts";
import { pageOf } from "../dag/dags.ts";
import { addBulkRoute, type BulkTarget, type BulkValues } from "../server/bulk.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import { id, many, orderBy, pageQuery, text, unused } from "../server/fields.ts";
import { change, create } from "../server/idempotent.ts";
import { conflict, invalid, notFound, Problem } from "../server/problem.ts";

const poolDocument = z
  .object({
    name: z.string(),
    slots: z.number(),
    description: z.string().nullable(),
    include_deferred: z.boolean(),
    occupied_slots: z.number(),
    running_slots: z.number(),
    queued_slots: z.number(),
    scheduled_slots: z.number(),
    open_slots: z.number(),
    deferred_slots: z.number(),
    team_name: z.string().nullable(),
  })
  .meta({ id: "PoolResponse" });

/** -1 is Airflow's "no limit". */
const slots = z.number().int().min(-1).max(1_000_000);
const name = id.regex(/^(?!@)/, "Names that start with @ are reserved for the engine");
const createBody = z.strictObject({
  name,
  slots,
  description: text.nullish(),
  include_deferred: z.boolean().default(false),
  team_name: unused,
});
const patchBody = z.strictObject({
  pool: id.nullish(),
  name: id.nullish(),
  slots: slots.nullish(),
  description: text.nullish(),
  include_deferred: z.boolean().nullish(),
  team_name: unused,
});
const listQuery = z.strictObject({
  ...pageQuery,
  pool_name_pattern: text.optional(),
  pool_name_prefix_pattern: text.optional(),
  order_by: orderBy(POOL_ORDER, "id"),
});
const patchQuery = z.strictObject({
  update_mask: many(z.enum(["pool", "name", "slots", "description", "include_deferred"])).optional(),
});
const params = z.object({ pool_name: id });

export const pools: Resource = (app, options) => {
  const { database } = options;
  const tags = ["Pool"];

  app.get(
    "/api/v2/pools",
    {
      schema: {
        querystring: listQuery,
        response: { 200: z.object({ pools: z.array(poolDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const filter = { pattern: query.pool_name_pattern, prefix: query.pool_name_prefix_pattern };
      const { rows, total } = await listPools(database, filter, pageOf(query));
      return { pools: rows.map(show), total_entries: total };
    },
  );

  app.get(
    "/api/v2/pools/:pool_name",
    { schema: { params, response: { 200: poolDocument }, tags } },
    async (request) => show(await requirePool(database, request.params.pool_name)),
  );

  app.post(
    "/api/v2/pools",
    { schema: { body: createBody, response: { 201: poolDocument }, tags } },
    async (request, reply) => {
      const { description = null, include_deferred, name, slots } = request.body;
      const { body, replayed } = await create(options, { request, reply }, async (tx) => {
        if (!(await createPool(tx, name, { slots, description, includeDeferred: include_deferred }))) {
          throw conflict(`Pool "${name}" already exists`);
        }
        return {
          status: 201,
          body: show(await requirePool(tx, name)),
          deed: { action: "create_pool", about: `pools/${name}`, details: { pool: name, slots } },
        };
      });
      if (!replayed) options.notify({ kind: "pool_changed", pool: name });
      return body;
    },
  );

  app.patch(
    "/api/v2/pools/:pool_name",
    { schema: { params, querystring: patchQuery, body: patchBody, response: { 200: poolDocument }, tags } },
    async (request) => {
      const name = request.params.pool_name;
      const { body } = request;
      const renamed = body.pool ?? body.name;
      if (renamed != null && renamed !== name)
        throw invalid(["body", "pool"], "A pool cannot be renamed: create another one");
      const masked = <T>(field: string, value: T) =>
        (request.query.update_mask?.includes(field as never) ?? true) ? value : undefined;
      const values = {
        slots: masked("slots", body.slots) ?? undefined,
        description: masked("description", body.description),
        includeDeferred: masked("include_deferred", body.include_deferred) ?? undefined,
      };
      const row = await change(options, request, async (tx) => {
        await requirePool(tx, name);
        await updatePool(tx, name, values);
        const deed = {
          action: "patch_pool",
          about: `pools/${name}`,
          details: { pool: name, ...(values.slots === undefined ? {} : { slots: values.slots }) },
        };
        return { result: await requirePool(tx, name), deed };
      });
      options.notify({ kind: "pool_changed", pool: name });
      return show(row);
    },
  );

  app.delete(
    "/api/v2/pools/:pool_name",
    { schema: { params, response: { 204: z.null() }, tags } },
    async (request, reply) => {
      const name = request.params.pool_name;
      if (name === DEFAULT_POOL) throw new Problem(400, "POOL_PROTECTED", PROTECTED);
      await change(options, request, async (tx) => {
        await requirePool(tx, name);
        const outcome = await deletePool(tx, name);
        if (outcome === "occupied") throw conflict(occupied(name));
        return {
          result: undefined,
          deed: { action: "delete_pool", about: `pools/${name}`, details: { pool: name } },
        };
      });
      return reply.code(204).send(null);
    },
  );

  addBulkRoute(app, options, bulkTarget(options));
};

const PROTECTED = "The default pool cannot be deleted: tasks without a pool use it";

function occupied(name: string): string {
  return `Tasks occupy slots of pool "${name}": wait for them or cancel their runs`;
}

function bulkTarget({ notify }: ApiOptions): BulkTarget {
  const entity = createBody.extend({ include_deferred: z.boolean().optional() });
  const valuesOf = ({ description, include_deferred, slots }: BulkValues) =>
    ({ slots, description, includeDeferred: include_deferred }) as PoolValues;
  return {
    collection: "pools",
    tag: "Pool",
    key: "name",
    create: entity,
    update: entity.partial().required({ name: true }),
    values: ({ name: _, team_name: __, ...values }) => values,
    add: (tx, key, values) =>
      createPool(tx, key, valuesOf({ description: null, include_deferred: false, ...values })),
    lock: async (tx, key) => {
      const row = await lockPool(tx, key);
      return row && { ...row };
    },
    alter: async (tx, key, { changes }) => {
      await updatePool(tx, key, valuesOf(changes));
    },
    remove: async (tx, key) => {
      if (key === DEFAULT_POOL) return PROTECTED;
      return (await deletePool(tx, key)) === "occupied" ? occupied(key) : null;
    },
    onChanged: (pool) => notify({ kind: "pool_changed", pool }),
  };
}

/** Internal counters are treated like unknown pools. */
async function requirePool(connection: Connection, name: string): Promise<PoolRow> {
  const row = name.startsWith("@") ? undefined : await findPool(connection, name);
  if (row === undefined) throw notFound(`Pool "${name}" does not exist`);
  return row;
}

function show(row: PoolRow): z.output<typeof poolDocument> {
  return {
    name: row.name,
    slots: row.slots,
    description: row.description,
    include_deferred: row.include_deferred,
    occupied_slots: row.occupied,
    running_slots: row.running,
    queued_slots: row.queued,
    scheduled_slots: row.scheduled,
    open_slots: row.slots < 0 ? -1 : row.slots - row.occupied,
    deferred_slots: row.deferred,
    team_name: null,
  };
}
