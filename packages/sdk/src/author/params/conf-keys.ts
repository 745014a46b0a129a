/** Finds keys of a run's conf that the DAG's params do not declare, which are typically misspelt. */

import { nearest } from "../../check/wording.ts";
import type { Json } from "../../manifest.ts";

/** Keywords that may allow more members than `properties` does. */
const OPENING = ["patternProperties", "unevaluatedProperties", "$ref", "allOf", "anyOf", "oneOf", "if"];

/** A key of the conf that the params do not declare. */
export interface UnknownKey {
  readonly key: string;
  /** For example "is unknown; did you mean …". */
  readonly problem: string;
}

/**
 * Returns the unknown keys; a schema that allows other members accepts all keys.
 * @param schema The JSON Schema of the params.
 * @example unknownConfKeys({ type: "object", properties: { region: {} }, additionalProperties: false }, { regoin: "eu" });
 */
export function unknownConfKeys(schema: Json | null, conf: Json): UnknownKey[] {
  if (!isObject(schema) || !isObject(conf) || OPENING.some((word) => word in schema)) return [];
  const { additionalProperties = false, properties } = schema;
  if (additionalProperties !== false) return [];
  if (!isObject(properties)) return [];
  const known = Object.keys(properties);
  return Object.keys(conf)
    .filter((key) => !Object.hasOwn(properties, key))
    .map((key) => {
      const near = nearest(key, known);
      const remedy = near ? `did you mean "${near}"?` : `known: ${known.join(", ") || "none"}`;
      return { key, problem: `is unknown; ${remedy}` };
    });
}

function isObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
