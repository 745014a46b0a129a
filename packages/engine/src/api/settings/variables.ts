/** `/variables`. Values whose key looks like a secret are write-only, as in Airflow. */
import type { Json } from "@tradewind/sdk/manifest";
import { z } from "zod";
import type { Connection } from "../../store/database/database.ts";
import {
  createVariable,
  deleteVariable,
  findVariable,
  listVariables,
  lockVariable,
  type ShownVariable,
  updateVariable,
  VARIABLE_ORDER,
  type Variable,
} from "../../store/settings/variables.ts";
import { pageOf } from "../dag/dags.ts";
import { addBulkRoute, type BulkTarget, type BulkValues } from "../server/bulk.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import { id, jsonValue, many, orderBy, pageQuery, text, unused } from "../server/fields.ts";
import { change, create } from "../server/idempotent.ts";
import { conflict, invalid, notFound } from "../server/problem.ts";
import { SENSITIVE } from "../server/secret-names.ts";

const variableDocument = z
  .object({
    key: z.string(),
    value: z.string().nullable(),
    description: z.string().nullable(),
    is_encrypted: z.boolean(),
    team_name: z.string().nullable(),
  })
  .meta({ id: "VariableResponse" });

const createBody = z.strictObject({
  key: id,
  value: jsonValue,
  description: text.nullish(),
  team_name: unused,
});
const patchBody = z.strictObject({
  key: id.optional(),
  value: jsonValue.optional(),
  description: text.nullish(),
  team_name: unused,
});
const patchQuery = z.strictObject({ update_mask: many(z.enum(["key", "value", "description"])).optional() });
const listQuery = z.strictObject({
  ...pageQuery,
  variable_key_pattern: text.optional(),
  variable_key_prefix_pattern: text.optional(),
  order_by: orderBy(VARIABLE_ORDER, "id"),
});
const params = z.object({ variable_key: id });

export const variables: Resource = (app, options) => {
  const { database, secretBox } = options;
  const tags = ["Variable"];

  app.get(
    "/api/v2/variables",
    {
      schema: {
        querystring: listQuery,
        response: { 200: z.object({ variables: z.array(variableDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const { rows, total } = await listVariables(database, secretBox, {
        pattern: query.variable_key_pattern,
        prefix: query.variable_key_prefix_pattern,
        page: pageOf(query),
      });
      return { variables: rows.map(show), total_entries: total };
    },
  );

  app.get(
    "/api/v2/variables/:variable_key",
    { schema: { params, response: { 200: variableDocument }, tags } },
    async (request) => show(await requireVariable(options, database, request.params.variable_key)),
  );

  app.post(
    "/api/v2/variables",
    { schema: { body: createBody, response: { 201: variableDocument }, tags } },
    async (request, reply) => {
      const { description = null, key, value } = request.body;
      const { body } = await create(options, { request, reply }, async (tx) => {
        const variable = { key, value: textOf(value), description };
        if (!(await createVariable(tx, secretBox, variable)))
          throw conflict(`Variable "${key}" already exists`);
        return {
          status: 201,
          body: show(variable),
          deed: { action: "create_variable", about: `variables/${key}`, details: { key } },
        };
      });
      return body;
    },
  );

  app.patch(
    "/api/v2/variables/:variable_key",
    {
      schema: { params, querystring: patchQuery, body: patchBody, response: { 200: variableDocument }, tags },
    },
    async (request) => {
      const key = request.params.variable_key;
      const { body } = request;
      if (body.key !== undefined && body.key !== key)
        throw invalid(["body", "key"], "A variable cannot be renamed: create another one");
      const given = (field: "value" | "description") =>
        body[field] !== undefined && (request.query.update_mask?.includes(field) ?? true);
      const result = await change(options, request, async (tx) => {
        const former = await lockVariable(tx, secretBox, key);
        if (former === undefined) throw noVariable(key);
        const variable = {
          key,
          // An undecryptable value can be replaced but not kept.
          value: given("value")
            ? textOf(body.value ?? null)
            : (await requireVariable(options, tx, key)).value,
          description: given("description") ? (body.description ?? null) : former.description,
        };
        await updateVariable(tx, secretBox, variable);
        return {
          result: variable,
          deed: { action: "patch_variable", about: `variables/${key}`, details: { key } },
        };
      });
      return show(result);
    },
  );

  app.delete(
    "/api/v2/variables/:variable_key",
    { schema: { params, response: { 204: z.null() }, tags } },
    async (request, reply) => {
      const key = request.params.variable_key;
      await change(options, request, async (tx) => {
        if (!(await deleteVariable(tx, key))) throw noVariable(key);
        return {
          result: undefined,
          deed: { action: "delete_variable", about: `variables/${key}`, details: { key } },
        };
      });
      return reply.code(204).send(null);
    },
  );

  addBulkRoute(app, options, bulkTarget(options));
};

/** @throws SECRET_UNREADABLE if the value cannot be decrypted: null would look like a value. */
async function requireVariable(options: ApiOptions, connection: Connection, key: string): Promise<Variable> {
  const variable = await findVariable(connection, options.secretBox, key);
  if (variable === undefined) throw noVariable(key);
  return variable;
}

function noVariable(key: string) {
  return notFound(`Variable "${key}" does not exist`);
}

function bulkTarget({ secretBox }: ApiOptions): BulkTarget {
  return {
    collection: "variables",
    tag: "Variable",
    key: "key",
    create: createBody,
    update: patchBody.required({ key: true }),
    values: ({ description, value }) => ({
      value: value === undefined ? undefined : textOf(value as Json),
      description,
    }),
    add: (tx, key, { description = null, value }) =>
      createVariable(tx, secretBox, { key, value, description } as Variable),
    lock: async (tx, key) => (await lockVariable(tx, secretBox, key)) as BulkValues | undefined,
    alter: async (tx, key, { changes, stored }) => {
      // An undecryptable value can be replaced but not kept: reading it throws the reason.
      const value = changes.value ?? stored.value ?? (await findVariable(tx, secretBox, key))?.value;
      await updateVariable(tx, secretBox, { ...stored, ...changes, key, value } as Variable);
    },
    remove: async (tx, key) => {
      await deleteVariable(tx, key);
      return null;
    },
  };
}

/** Tasks read text; other values are stored as JSON. */
function textOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function show(variable: ShownVariable): z.output<typeof variableDocument> {
  const { description, key, value } = variable;
  return {
    key,
    value: value !== null && SENSITIVE.test(key) ? "***" : value,
    description,
    is_encrypted: true,
    team_name: null,
  };
}
