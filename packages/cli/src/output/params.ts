/** The params of a DAG from its JSON Schema: enough to write a `--conf`. */

interface Property {
  readonly type?: unknown;
  readonly enum?: unknown;
  readonly default?: unknown;
  readonly description?: unknown;
}

/** One line per param: `region: "eu" | "us", default "eu"`. None if the schema is not an object schema. */
export function paramLines(schema: unknown): string[] {
  const { properties, required } = (schema ?? {}) as { properties?: unknown; required?: unknown };
  if (typeof properties !== "object" || properties === null) return [];
  const needed = new Set(Array.isArray(required) ? (required as unknown[]) : []);
  return Object.entries(properties as Record<string, Property | boolean>).map(([name, given]) => {
    const property = typeof given === "object" && given !== null ? given : {};
    const parts = [typeOf(property)];
    if ("default" in property) parts.push(`default ${JSON.stringify(property.default)}`);
    else if (needed.has(name)) parts.push("required");
    const about = typeof property.description === "string" ? ` (${property.description})` : "";
    return `${name}: ${parts.join(", ")}${about}`;
  });
}

function typeOf({ enum: values, type }: Property): string {
  if (Array.isArray(values)) return values.map((value) => JSON.stringify(value)).join(" | ");
  if (typeof type === "string") return type;
  return Array.isArray(type) ? type.join(" | ") : "any";
}
