import type { Json } from "../../manifest.ts";

/** Keywords whose values are data, not schemas. */
const DATA = new Set(["default", "enum", "const", "examples"]);
/** Keywords whose values are schemas by name. */
const NAMED = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);

/**
 * The schema with the names of its properties as lists, `propertyOrdering`: forms show the fields in the author's order, which the
 * database does not keep in objects.
 */
export function withPropertyOrder(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(withPropertyOrder);
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).map(([keyword, value]): [string, Json] => {
    if (DATA.has(keyword)) return [keyword, value];
    if (!NAMED.has(keyword) || !isObject(value)) return [keyword, withPropertyOrder(value)];
    return [
      keyword,
      Object.fromEntries(Object.entries(value).map(([name, own]) => [name, withPropertyOrder(own)])),
    ];
  });
  const names = isObject(schema["properties"]) ? Object.keys(schema["properties"]) : [];
  return {
    ...Object.fromEntries(entries),
    ...(names.length > 1 && !("propertyOrdering" in schema) && { propertyOrdering: names }),
  };
}

function isObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
