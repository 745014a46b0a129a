import { expect, test } from "vitest";
import { z } from "zod";
import type { StandardSchemaV1 } from "../../index.ts";
import { jsonSchemaOf } from "./params.ts";

/** A validator of another library. */
const other = (jsonSchema?: () => Record<string, unknown>): StandardSchemaV1 => ({
  "~standard": {
    version: 1,
    vendor: "other",
    validate: (value) => ({ value }),
    ...(jsonSchema && { jsonSchema: { input: jsonSchema } }),
  },
});

test("has defaults, enums, descriptions, bounds, nested objects, lists and dates, as a form needs them", () => {
  const schema = jsonSchemaOf(
    z.object({
      region: z.enum(["eu", "us"]).default("eu").describe("Where to run"),
      rows: z.number().int().min(1).max(9).default(3),
      day: z.iso.date().meta({ title: "Day" }).optional(),
      tags: z.array(z.string().min(1)).max(3).default(["a"]),
      target: z.object({ table: z.string(), mode: z.literal("append").nullable() }).optional(),
    }),
  );
  expect(schema).toMatchObject({
    type: "object",
    properties: {
      region: { type: "string", enum: ["eu", "us"], default: "eu", description: "Where to run" },
      rows: { type: "integer", minimum: 1, maximum: 9, default: 3 },
      day: { type: "string", format: "date", title: "Day" },
      tags: { type: "array", maxItems: 3, items: { type: "string", minLength: 1 }, default: ["a"] },
      target: { type: "object", properties: { table: { type: "string" } }, required: ["table", "mode"] },
    },
  });
  expect(schema).not.toHaveProperty("required");
});

test("has the author's order of properties as lists, at any depth, and not within values", () => {
  const schema = jsonSchemaOf(
    z.object({
      zone: z.string(),
      a: z.object({ y: z.string(), x: z.string() }),
      rows: z.array(z.object({ n: z.number(), b: z.string() })),
      value: z.any().default({ properties: { b: 1, a: 2 } }),
      either: z.union([z.object({ q: z.string(), p: z.string() }), z.null()]),
      one: z.object({ only: z.string() }),
    }),
  );
  expect(schema).toMatchObject({
    propertyOrdering: ["zone", "a", "rows", "value", "either", "one"],
    properties: {
      a: { propertyOrdering: ["y", "x"] },
      rows: { items: { propertyOrdering: ["n", "b"] } },
      value: { default: { properties: { b: 1, a: 2 } } },
      either: { anyOf: [{ propertyOrdering: ["q", "p"] }, {}] },
    },
  });
  expect(schema).not.toHaveProperty(["properties", "value", "default", "propertyOrdering"]);
  expect(schema).not.toHaveProperty(["properties", "one", "propertyOrdering"]);
});

test("keeps all other params of zod beside a type that JSON Schema cannot express", () => {
  const schema = z.object({
    at: z.coerce.date().optional().describe("Until"),
    custom: z.custom<string>(() => true),
    rows: z.number(),
  });
  expect(jsonSchemaOf(schema)).toMatchObject({
    properties: { at: { format: "date-time", description: "Until" }, custom: {}, rows: { type: "number" } },
    required: ["custom", "rows"],
  });
});

test("is that of any other library, and null if it has none or throws", () => {
  expect(jsonSchemaOf(other(() => ({ type: "object", properties: { n: { type: "number" } } })))).toEqual({
    type: "object",
    properties: { n: { type: "number" } },
  });
  expect(jsonSchemaOf(other())).toBeNull();
  expect(jsonSchemaOf(null)).toBeNull();
  const throwing = other(() => {
    throw new Error("a Date cannot be expressed");
  });
  expect(jsonSchemaOf(throwing)).toBeNull();
});
