import { expect, it } from "vitest";
import { ApiProblem } from "../api/problem.ts";
import { type FormField, fieldOf } from "./fields.ts";
import { serverErrors } from "./server-errors.ts";
import { changedFrom, initialValue, jsonOf, problemsOf, Unparsed } from "./values.ts";

const object = (properties: Record<string, unknown>, required: string[] = []) =>
  fieldOf({ type: "object", properties, required }, "conf");

function fieldsOf(field: FormField): Record<string, FormField> {
  if (field.kind !== "object") throw new Error(field.kind);
  return Object.fromEntries(field.fields.map((each) => [each.name, each.field]));
}

it("has a field for each kind of schema", () => {
  const fields = fieldsOf(
    object(
      {
        name: { type: "string", description: "Who" },
        text: { type: "string", maxLength: 5_000 },
        day: { type: "string", format: "date" },
        count: { type: "integer" },
        on: { type: "boolean" },
        size: { enum: ["s", "m"] },
        mode: { anyOf: [{ const: 1 }, { const: 2 }] },
        tags: { type: "array", items: { type: "string" } },
        inner: { type: "object", properties: { a: { type: "number" } } },
        open: { type: "object", additionalProperties: true },
        pair: { type: "array", prefixItems: [{}, {}] },
        any: {},
        either: { anyOf: [{ type: "string" }, { type: "number" }] },
      },
      ["name"],
    ),
  );
  expect(Object.fromEntries(Object.entries(fields).map(([name, { kind }]) => [name, kind]))).toEqual({
    ...{
      name: "text",
      text: "text",
      day: "text",
      count: "number",
      on: "boolean",
      size: "choice",
      mode: "choice",
    },
    ...{ tags: "array", inner: "object", open: "json", pair: "json", any: "json", either: "json" },
  });
  expect(fields["name"]).toMatchObject({ isRequired: true, description: "Who", label: "name" });
  expect(fields["count"]).toMatchObject({ isRequired: false, isInteger: true });
  expect([fields["text"], fields["day"]]).toMatchObject([{ format: "lines" }, { format: "date" }]);
  expect(fields["mode"]).toMatchObject({ options: [1, 2] });
});

it("shows the properties in the author's order, and then those that the order lacks", () => {
  const field = fieldOf(
    {
      type: "object",
      properties: { a: { type: "string" }, new: { type: "string" }, region: { type: "string" } },
      propertyOrdering: ["region", "gone", "a"],
    },
    "conf",
  );
  expect(Object.keys(fieldsOf(field))).toEqual(["region", "a", "new"]);
});

it("knows which fields may be null", () => {
  const fields = fieldsOf(
    object({ a: { type: ["string", "null"] }, b: { anyOf: [{ type: "integer" }, { type: "null" }] } }),
  );
  expect(fields).toMatchObject({
    a: { kind: "text", isNullable: true },
    b: { kind: "number", isNullable: true },
  });
});

it("follows references, and stops in a schema that contains itself", () => {
  const tree = fieldOf(
    {
      $ref: "#/$defs/Tree",
      $defs: { Tree: { type: "object", properties: { left: { $ref: "#/$defs/Tree" } } } },
    },
    "tree",
  );
  let [at, depth] = [tree, 0];
  for (; at.kind === "object"; depth += 1) at = at.fields[0]!.field;
  expect([at.kind, depth]).toEqual(["json", 7]);
});

it("begins with the defaults", () => {
  const field = object(
    {
      region: { enum: ["eu"], default: "eu" },
      tags: { type: "array", items: {} },
      on: { type: "boolean" },
      note: { type: "string" },
      inner: { type: "object", properties: { a: { default: 1, type: "number" } } },
      prefilled: {
        type: "object",
        default: { b: 3 },
        properties: { a: { default: 1, type: "number" }, b: { default: 2, type: "number" }, c: {} },
      },
    },
    ["on", "tags"],
  );
  expect(initialValue(field)).toEqual({
    ...{ region: "eu", tags: [], on: false, inner: { a: 1 } },
    prefilled: { a: 1, b: 3 },
  });
});

it("names each problem by the pointer of its field", () => {
  const field = object(
    {
      name: { type: "string", minLength: 2 },
      count: { type: "integer", maximum: 10 },
      rows: {
        type: "array",
        minItems: 1,
        items: { type: "object", properties: { "a/b": { type: "number" } } },
      },
      free: {},
    },
    ["name"],
  );
  const problems = (value: unknown) => Object.fromEntries(problemsOf(field, value));
  expect(problems({ name: "x", count: 11, rows: [] })).toEqual({
    "/name": "Must have at least 2 characters",
    "/count": "Must be at most 10",
    "/rows": "Must have at least 1 items",
  });
  expect(problems({ count: 1.5, rows: [{ "a/b": new Unparsed("x") }], free: new Unparsed("{") })).toEqual({
    "/name": "Required",
    "/count": "Must be a whole number",
    "/rows/0/a~1b": '"x" is not a number',
    "/free": "This is not JSON",
  });
  expect(problems({ name: "xy" })).toEqual({});
});

it("sends what is set and differs from the defaults", () => {
  expect(jsonOf({ a: undefined, b: [1, { c: undefined, d: null }] })).toEqual({ b: [1, { d: null }] });
  expect(changedFrom({ a: 1, b: [1], c: { x: 1 } }, { a: 1, b: [1, 2], c: { x: 1 }, d: 0 })).toEqual({
    ...{ b: [1, 2], d: 0 },
  });
});

it("finds the fields of the server's messages", () => {
  const problem = (document: object) => new ApiProblem(422, document);
  expect(
    serverErrors(
      problem({
        errors: [
          { pointer: "/conf/region", message: "must be one of: eu" },
          { pointer: "/note", message: "is too long" },
        ],
      }),
      "conf",
    ),
  ).toEqual(new Map([["/region", "must be one of: eu"]]));
  expect(
    serverErrors(
      problem({
        detail: [
          { loc: ["body", "conf", "rows", 0, "a/b"], msg: "conf.rows.0.a/b: must be >= 1", type: "x" },
        ],
      }),
      "conf",
    ),
  ).toEqual(new Map([["/rows/0/a~1b", "must be >= 1"]]));
  expect(serverErrors(problem({ detail: "no" }), "conf")).toBeNull();
});
