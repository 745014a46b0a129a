import { expect, test } from "vitest";
import { z } from "zod";
import { unknownConfKeys } from "./conf-keys.ts";
import { jsonSchemaOf } from "./params.ts";

const shape = { region: z.string().optional(), days: z.number().default(1) };
const conf = { regoin: "eu", days: 2, colour: "red" };

test.each([
  ["an object", z.object(shape)],
  ["a strict object", z.strictObject(shape)],
])("%s rejects unknown keys and names the nearest", (_, schema) => {
  expect(unknownConfKeys(jsonSchemaOf(schema), conf)).toEqual([
    { key: "regoin", problem: 'is unknown; did you mean "region"?' },
    { key: "colour", problem: "is unknown; known: region, days" },
  ]);
});

test.each([
  ["a loose object", z.looseObject(shape)],
  ["one with a type for the rest", z.object(shape).catchall(z.string())],
  ["a record", z.record(z.string(), z.string())],
  ["a union", z.union([z.object(shape), z.object({ colour: z.string() })])],
])("%s accepts unknown keys", (_, schema) => {
  expect(unknownConfKeys(jsonSchemaOf(schema), conf)).toEqual([]);
});
