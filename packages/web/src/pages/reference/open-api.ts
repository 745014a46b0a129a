/** The parts of the served OpenAPI document that the page shows. Pure. */
import type { Request } from "../../actions/command-text.ts";

export interface Schema {
  readonly [keyword: string]: unknown;
}

interface Content {
  readonly content?: { readonly "application/json"?: { readonly schema?: Schema } };
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

interface DocumentedOperation {
  readonly tags?: readonly string[];
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Content;
  readonly responses?: Readonly<Record<string, Content & { readonly description?: string }>>;
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components?: { readonly schemas?: Schemas };
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
}

export type Schemas = Readonly<Record<string, Schema>>;
const METHODS = ["get", "post", "put", "patch", "delete"] as const;

export interface Operation {
  /** "GET /api/v2/dags". */
  readonly id: string;
  readonly method: Request["method"];
  readonly path: string;
  readonly tag: string;
  readonly description: string | undefined;
  readonly parameters: readonly Parameter[];
  readonly body: Schema | undefined;
  readonly answers: readonly { readonly status: string; readonly schema: Schema | undefined }[];
}

export function operationsOf({ paths }: OpenApi): Operation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((name): Operation[] => {
      const operation = item[name];
      if (operation === undefined) return [];
      const method = name.toUpperCase() as Request["method"];
      return [
        {
          ...{ id: `${method} ${path}`, method, path, tag: operation.tags?.[0] ?? "Other" },
          description: operation.description,
          parameters: operation.parameters ?? [],
          body: operation.requestBody?.content?.["application/json"]?.schema,
          answers: Object.entries(operation.responses ?? {}).map(([status, { content }]) => ({
            status,
            schema: content?.["application/json"]?.schema,
          })),
        },
      ];
    }),
  );
}

/** Operations that contain every word, by tag; tags in alphabetical order. */
export function byTag(operations: readonly Operation[], q: string): [string, Operation[]][] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const found = operations.filter(({ description, id, tag }) => {
    const text = `${id} ${tag} ${description ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return [...Map.groupBy(found, ({ tag }) => tag)].sort(([a], [b]) => a.localeCompare(b));
}

/** A schema as a type. References are written by their name; the outermost one is written out. */
export function typeText(schema: Schema | undefined, schemas: Schemas): string {
  const name = referred(schema);
  return written(name === undefined ? schema : schemas[name], 0);
}

const DEEPEST = 8;

function referred(schema: Schema | undefined): string | undefined {
  const ref = schema?.["$ref"];
  return typeof ref === "string" ? ref.split("/").at(-1) : undefined;
}

function written(schema: Schema | undefined, depth: number): string {
  if (schema === undefined) return "any";
  const name = referred(schema);
  if (name !== undefined) return name.replace(/Input$/, "");
  if (Array.isArray(schema["enum"])) return schema["enum"].map((each) => JSON.stringify(each)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema["const"]);
  const branches = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(branches))
    return [...new Set(branches.map((each) => written(each as Schema, depth)))].join(" | ");
  if (depth > DEEPEST) return "…";
  const { type } = schema;
  if (Array.isArray(type)) return type.map((each) => written({ ...schema, type: each }, depth)).join(" | ");
  switch (schema["type"]) {
    case "array": {
      const item = written(schema["items"] as Schema | undefined, depth);
      return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      return objectText(schema, depth);
    case "string":
      return typeof schema["format"] === "string" ? `string (${schema["format"]})` : "string";
    case undefined:
      return "any";
    default:
      return String(schema["type"]);
  }
}

function objectText(schema: Schema, depth: number): string {
  const properties = Object.entries((schema["properties"] ?? {}) as Schemas);
  const rest = schema["additionalProperties"];
  if (properties.length === 0)
    return typeof rest === "object" && rest !== null ? `{ [key]: ${written(rest as Schema, depth)} }` : "{}";
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  const indent = "  ".repeat(depth + 1);
  const lines = properties.map(([name, property]) => {
    const note = typeof property["description"] === "string" ? `  // ${property["description"]}` : "";
    return `${indent}${name}${required.has(name) ? "" : "?"}: ${written(property, depth + 1)}${note}`;
  });
  return `{\n${lines.join("\n")}\n${"  ".repeat(depth)}}`;
}

/** A request to fill in: parts of the path as {dag_id}, and the required properties of the body. */
export function exampleOf({ body, method, parameters, path }: Operation, schemas: Schemas): Request {
  const query = parameters
    .filter((each) => each.in === "query" && each.required === true)
    .map(({ name }) => `${name}={${name}}`)
    .join("&");
  return {
    method,
    path: query === "" ? path : `${path}?${query}`,
    ...(body !== undefined && { body: sample(body, schemas, 0) }),
  };
}

function sample(schema: Schema, schemas: Schemas, depth: number): unknown {
  const name = referred(schema);
  if (name !== undefined) return depth > DEEPEST ? null : sample(schemas[name] ?? {}, schemas, depth + 1);
  if ("default" in schema) return schema["default"];
  if (Array.isArray(schema["enum"])) return schema["enum"][0];
  if ("const" in schema) return schema["const"];
  const branches = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(branches)) return sample((branches[0] ?? {}) as Schema, schemas, depth + 1);
  switch (schema["type"]) {
    case "object": {
      const properties = (schema["properties"] ?? {}) as Schemas;
      const required = (schema["required"] ?? []) as readonly string[];
      return Object.fromEntries(
        required.map((each) => [each, sample(properties[each] ?? {}, schemas, depth + 1)]),
      );
    }
    case "array":
      return [];
    case "string":
      return "";
    case "integer":
    case "number":
      return typeof schema["minimum"] === "number" ? Math.max(0, schema["minimum"]) : 0;
    case "boolean":
      return false;
    default:
      return null;
  }
}
