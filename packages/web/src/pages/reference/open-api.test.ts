import { expect, it } from "vitest";
import { byTag, exampleOf, type OpenApi, operationsOf, typeText } from "./open-api.ts";

const document: OpenApi = {
  paths: {
    "/api/v2/pools/{name}": {
      patch: {
        tags: ["Pool"],
        parameters: [{ name: "name", in: "path", required: true, schema: { type: "string" } }],
        requestBody: {
          content: { "application/json": { schema: { $ref: "#/components/schemas/PoolInput" } } },
        },
        responses: {
          200: { content: { "application/json": { schema: { $ref: "#/components/schemas/Pool" } } } },
        },
      },
      get: { tags: ["Pool"], description: "One pool" },
    },
    "/api/v2/dags": { get: { tags: ["DAG"] } },
  },
};
const schemas = {
  PoolInput: {
    type: "object",
    required: ["slots", "kind"],
    properties: {
      slots: { type: "integer", minimum: 1, description: "How many run at once" },
      owner: { type: ["string", "null"] },
      kind: { enum: ["fixed", "elastic"] },
      note: { anyOf: [{ type: "string" }, { type: "null" }] },
      parts: { type: "array", items: { type: "object", properties: { of: { $ref: "#/x/Pool" } } } },
    },
  },
};
const operations = operationsOf(document);

it("lists operations by tag, and finds them by words", () => {
  const shown = (q: string) => byTag(operations, q).map(([tag, of]) => [tag, of.map(({ id }) => id)]);
  expect(shown("")).toEqual([
    ["DAG", ["GET /api/v2/dags"]],
    ["Pool", ["GET /api/v2/pools/{name}", "PATCH /api/v2/pools/{name}"]],
  ]);
  expect(shown("one POOL")).toEqual([["Pool", ["GET /api/v2/pools/{name}"]]]);
  expect(shown("nothing")).toEqual([]);
});

it("writes a schema as a type", () => {
  expect(typeText({ $ref: "#/components/schemas/PoolInput" }, schemas)).toBe(`{
  slots: integer  // How many run at once
  owner?: string | null
  kind: "fixed" | "elastic"
  note?: string | null
  parts?: {
    of?: Pool
  }[]
}`);
});

it("makes a request with what is required", () => {
  const patch = operations.find(({ method }) => method === "PATCH")!;
  expect(exampleOf(patch, schemas)).toEqual({
    method: "PATCH",
    path: "/api/v2/pools/{name}",
    body: { slots: 1, kind: "fixed" },
  });
});
