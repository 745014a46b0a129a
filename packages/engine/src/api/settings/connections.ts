/** `/connections`. Password and extra are write-only: the rows read here do not contain them. */
import { z } from "zod";
import type { Connection } from "../../store/database/database.ts";
import {
  CONNECTION_ORDER,
  type ConnectionRow,
  type ConnectionValues,
  createConnection,
  deleteConnection,
  findConnection,
  listConnections,
  lockConnection,
  updateConnection,
} from "../../store/settings/connections.ts";
import { pageOf } from "../dag/dags.ts";
import { addBulkRoute, type BulkTarget, type BulkValues } from "../server/bulk.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import { id, many, orderBy, pageQuery, text, unused } from "../server/fields.ts";
import { change, create } from "../server/idempotent.ts";
import { conflict, invalid, notFound } from "../server/problem.ts";

const connectionDocument = z
  .object({
    connection_id: z.string(),
    conn_type: z.string(),
    description: z.string().nullable(),
    host: z.string().nullable(),
    login: z.string().nullable(),
    schema: z.string().nullable(),
    port: z.number().nullable(),
    password: z.null(),
    extra: z.null(),
    team_name: z.null(),
  })
  .meta({ id: "ConnectionResponse" });

const connectionId = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[\w.-]+$/, "May contain letters, digits and _ . - only");
/** As in Airflow: an object, or nothing. */
const extra = z
  .string()
  .max(100_000)
  .refine((value) => value === "" || isJsonObject(value), {
    message: 'Must be the text of a JSON object, e.g. {"ssl": true}',
  });
const fields = {
  description: text.nullish(),
  host: text.nullish(),
  login: text.nullish(),
  schema: text.nullish(),
  port: z.number().int().min(0).max(65_535).nullish(),
  password: text.nullish(),
  extra: extra.nullish(),
  team_name: unused,
};
const createBody = z.strictObject({ connection_id: connectionId, conn_type: id, ...fields });
const patchBody = z.strictObject({
  connection_id: connectionId.optional(),
  conn_type: id.optional(),
  ...fields,
});
const FIELD_NAMES = [
  "connection_id",
  "conn_type",
  "description",
  "host",
  "login",
  "schema",
  "port",
  "password",
  "extra",
] as const;
const patchQuery = z.strictObject({ update_mask: many(z.enum(FIELD_NAMES)).optional() });
const listQuery = z.strictObject({
  ...pageQuery,
  connection_id_pattern: text.optional(),
  connection_id_prefix_pattern: text.optional(),
  order_by: orderBy(CONNECTION_ORDER, "id"),
});
const params = z.object({ connection_id: id });

export const connections: Resource = (app, options) => {
  const { database, secretBox } = options;
  const tags = ["Connection"];

  app.get(
    "/api/v2/connections",
    {
      schema: {
        querystring: listQuery,
        response: { 200: z.object({ connections: z.array(connectionDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const filter = { pattern: query.connection_id_pattern, prefix: query.connection_id_prefix_pattern };
      const { rows, total } = await listConnections(database, filter, pageOf(query));
      return { connections: rows.map(show), total_entries: total };
    },
  );

  app.get(
    "/api/v2/connections/:connection_id",
    { schema: { params, response: { 200: connectionDocument }, tags } },
    async (request) => show(await requireConnection(database, request.params.connection_id)),
  );

  app.post(
    "/api/v2/connections",
    { schema: { body: createBody, response: { 201: connectionDocument }, tags } },
    async (request, reply) => {
      const given = request.body;
      const { body } = await create(options, { request, reply }, async (tx) => {
        const values: ConnectionValues = {
          ...open({}, given),
          connId: given.connection_id,
          connType: given.conn_type,
          password: given.password ?? null,
          extra: given.extra ?? null,
        };
        if (!(await createConnection(tx, secretBox, values)))
          throw conflict(`Connection "${values.connId}" already exists`);
        const deed = {
          action: "create_connection",
          about: `connections/${values.connId}`,
          details: { connection_id: values.connId },
        };
        return { status: 201, body: show(await requireConnection(tx, values.connId)), deed };
      });
      return body;
    },
  );

  app.patch(
    "/api/v2/connections/:connection_id",
    {
      schema: {
        params,
        querystring: patchQuery,
        body: patchBody,
        response: { 200: connectionDocument },
        tags,
      },
    },
    async (request) => {
      const connId = request.params.connection_id;
      const mask = request.query.update_mask;
      const body = masked(request.body, mask);
      if (body.connection_id !== undefined && body.connection_id !== connId) {
        throw invalid(["body", "connection_id"], "A connection cannot be renamed: create another one");
      }
      const row = await change(options, request, async (tx) => {
        const former = await lockConnection(tx, secretBox, connId);
        if (former === undefined) throw noConnection(connId);
        const values: ConnectionValues = {
          ...open(former, body),
          connId,
          connType: body.conn_type ?? former.conn_type,
          password: secret("password", body, mask),
          extra: secret("extra", body, mask),
        };
        await updateConnection(tx, secretBox, values);
        const changed = FIELD_NAMES.filter((field) => body[field] !== undefined);
        const deed = {
          action: "patch_connection",
          about: `connections/${connId}`,
          details: { connection_id: connId, fields: changed },
        };
        return { result: await requireConnection(tx, connId), deed };
      });
      return show(row);
    },
  );

  app.delete(
    "/api/v2/connections/:connection_id",
    { schema: { params, response: { 204: z.null() }, tags } },
    async (request, reply) => {
      const connId = request.params.connection_id;
      await change(options, request, async (tx) => {
        if (!(await deleteConnection(tx, connId))) throw noConnection(connId);
        return {
          result: undefined,
          deed: {
            action: "delete_connection",
            about: `connections/${connId}`,
            details: { connection_id: connId },
          },
        };
      });
      return reply.code(204).send(null);
    },
  );

  addBulkRoute(app, options, bulkTarget(options));
};

async function requireConnection(connection: Connection, connId: string): Promise<ConnectionRow> {
  const row = await findConnection(connection, connId);
  if (row === undefined) throw noConnection(connId);
  return row;
}

function noConnection(connId: string) {
  return notFound(`Connection "${connId}" does not exist`);
}

/** A null secret was masked in an export: the stored one is kept. */
function bulkTarget({ secretBox }: ApiOptions): BulkTarget {
  const valuesOf = (connId: string, values: BulkValues) =>
    ({
      ...open({}, values as PatchBody),
      connId,
      connType: values.conn_type,
      password: values.password,
      extra: values.extra,
    }) as ConnectionValues;
  return {
    collection: "connections",
    tag: "Connection",
    key: "connection_id",
    create: createBody,
    update: patchBody.required({ connection_id: true }),
    values: ({ connection_id: _, team_name: __, ...values }) => ({
      ...values,
      password: values.password ?? undefined,
      extra: values.extra ?? undefined,
    }),
    add: (tx, key, values) => createConnection(tx, secretBox, valuesOf(key, values)),
    lock: async (tx, key) => (await lockConnection(tx, secretBox, key)) as BulkValues | undefined,
    alter: async (tx, key, { changes, stored }) => {
      const { password, extra } = changes;
      await updateConnection(tx, secretBox, valuesOf(key, { ...stored, ...changes, password, extra }));
    },
    remove: async (tx, key) => {
      await deleteConnection(tx, key);
      return null;
    },
  };
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

type PatchBody = z.output<typeof patchBody>;

function masked(body: PatchBody, mask: readonly string[] | undefined): PatchBody {
  if (mask === undefined) return body;
  return Object.fromEntries(Object.entries(body).filter(([field]) => mask.includes(field))) as PatchBody;
}

/**
 * A client that reads, edits and writes back sends null for a secret it never received: the secret is kept. If update_mask names
 * the field, the null is intended.
 */
function secret(
  field: "password" | "extra",
  body: PatchBody,
  mask: readonly string[] | undefined,
): string | null | undefined {
  return body[field] === null && !(mask?.includes(field) ?? false) ? undefined : body[field];
}

/** The fields that are not secret: given values, else former ones. */
function open(former: Partial<ConnectionRow>, given: Partial<PatchBody>) {
  const pick = <K extends "description" | "host" | "login" | "schema" | "port">(field: K): ConnectionRow[K] =>
    (given[field] === undefined ? (former[field] ?? null) : given[field]) as ConnectionRow[K];
  return {
    description: pick("description"),
    host: pick("host"),
    login: pick("login"),
    schema: pick("schema"),
    port: pick("port"),
  };
}

function show(row: ConnectionRow): z.output<typeof connectionDocument> {
  return {
    connection_id: row.conn_id,
    conn_type: row.conn_type,
    description: row.description,
    host: row.host,
    login: row.login,
    schema: row.schema,
    port: row.port,
    password: null,
    extra: null,
    team_name: null,
  };
}
