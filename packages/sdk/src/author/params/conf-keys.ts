/** Members of a run's conf that its DAG's params do not know: most often a typing error, which nothing else would tell. */

import { nearest } from "../../check/wording.ts";
import type { Json } from "../../manifest.ts";

/** What may say more about the members of an object than `properties` does. */
const OPENING = ["patternProperties", "unevaluatedProperties", "$ref", "allOf", "anyOf", "oneOf", "if"];

export interface UnknownKey {
  readonly key: string;
  /** "is unknown; did you mean …". */
  readonly problem: string;
}

/** @param schema JSON Schema of the params. One that says what other members may be is open, and left to the validator. */
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
