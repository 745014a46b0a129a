/** A JSON Schema as the fields of a form. What has no field of its own is edited as JSON. Pure. */

interface JsonSchema {
  readonly [keyword: string]: unknown;
}

interface Common {
  /** The title, or the name of the property. */
  readonly label: string;
  readonly description: string | undefined;
  readonly isRequired: boolean;
  /** null is a value of its own. */
  readonly isNullable: boolean;
  readonly schema: JsonSchema;
}

export type FormField = Common &
  (
    | { readonly kind: "text"; readonly format: TextFormat }
    | { readonly kind: "number"; readonly isInteger: boolean }
    | { readonly kind: "boolean" }
    | { readonly kind: "choice"; readonly options: readonly unknown[] }
    | { readonly kind: "object"; readonly fields: readonly NamedField[] }
    | { readonly kind: "array"; readonly item: FormField }
    | { readonly kind: "json" }
  );

export interface NamedField {
  readonly name: string;
  readonly field: FormField;
}

export type TextFormat = "line" | "lines" | "date" | "date-time" | "time" | "email" | "uri";

const FORMATS: Readonly<Record<string, TextFormat>> = {
  date: "date",
  "date-time": "date-time",
  time: "time",
  email: "email",
  uri: "uri",
  url: "uri",
};

/** A schema may refer to itself: below this depth it is edited as JSON. */
const DEEPEST = 6;
/** Longer texts get several lines. */
const LONG_TEXT = 200;

export function fieldOf(schema: unknown, label: string): FormField {
  return read(schema, { label, isRequired: true, root: objectOf(schema), depth: 0 });
}

interface Place {
  readonly label: string;
  readonly isRequired: boolean;
  /** Where references begin. */
  readonly root: JsonSchema;
  readonly depth: number;
}

function read(given: unknown, place: Place): FormField {
  const { isNullable, schema } = withoutNull(resolved(objectOf(given), place.root), place.root);
  const common: Common = {
    label: typeof schema["title"] === "string" ? schema["title"] : place.label,
    description: typeof schema["description"] === "string" ? schema["description"] : undefined,
    isRequired: place.isRequired,
    isNullable,
    schema,
  };
  const options = optionsOf(schema);
  if (options !== undefined) return { ...common, kind: "choice", options };
  if (place.depth > DEEPEST) return { ...common, kind: "json" };
  switch (schema["type"]) {
    case "string":
      return { ...common, kind: "text", format: textFormat(schema) };
    case "integer":
    case "number":
      return { ...common, kind: "number", isInteger: schema["type"] === "integer" };
    case "boolean":
      return { ...common, kind: "boolean" };
    case "array":
      if (schema["prefixItems"] !== undefined || typeof schema["items"] !== "object") break;
      return {
        ...common,
        kind: "array",
        item: read(schema["items"], { ...place, label: "Item", isRequired: true, depth: place.depth + 1 }),
      };
    case "object": {
      const properties = inOrder(objectOf(schema["properties"]), schema["propertyOrdering"]);
      if (properties.length === 0) break;
      const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
      return {
        ...common,
        kind: "object",
        fields: properties.map(([name, property]) => ({
          name,
          field: read(property, {
            ...place,
            label: name,
            isRequired: required.has(name),
            depth: place.depth + 1,
          }),
        })),
      };
    }
  }
  return { ...common, kind: "json" };
}

/** As the author wrote them. Names that the order lacks come last. */
function inOrder(properties: JsonSchema, order: unknown): [string, unknown][] {
  const names = new Set([...(Array.isArray(order) ? order.map(String) : []), ...Object.keys(properties)]);
  return [...names].filter((name) => Object.hasOwn(properties, name)).map((name) => [name, properties[name]]);
}

function objectOf(value: unknown): JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonSchema) : {};
}

/** Follows `$ref` within the document. */
function resolved(schema: JsonSchema, root: JsonSchema): JsonSchema {
  let at = schema;
  for (let steps = 0; steps < 20 && typeof at["$ref"] === "string"; steps += 1) {
    const { $ref: ref, ...rest } = at as JsonSchema & { readonly $ref: string };
    if (!ref.startsWith("#")) return {};
    let target: unknown = root;
    for (const part of ref.slice(1).split("/").filter(Boolean))
      target = objectOf(target)[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    at = { ...objectOf(target), ...rest };
  }
  return at;
}

/** The schema without null among its types: a field that may be null has a choice of its own. */
function withoutNull(
  schema: JsonSchema,
  root: JsonSchema,
): { readonly schema: JsonSchema; readonly isNullable: boolean } {
  const { type } = schema;
  if (Array.isArray(type) && type.includes("null")) {
    const rest = type.filter((each) => each !== "null");
    return { schema: { ...schema, type: rest.length === 1 ? rest[0] : rest }, isNullable: true };
  }
  for (const keyword of ["anyOf", "oneOf"]) {
    const branches = schema[keyword];
    if (!Array.isArray(branches)) continue;
    const others = branches.filter((each) => objectOf(each)["type"] !== "null");
    if (others.length !== 1) continue;
    const { [keyword]: _, ...rest } = schema;
    return {
      schema: { ...resolved(objectOf(others[0]), root), ...rest },
      isNullable: others.length < branches.length,
    };
  }
  return { schema, isNullable: false };
}

function optionsOf(schema: JsonSchema): readonly unknown[] | undefined {
  if (Array.isArray(schema["enum"])) return schema["enum"];
  if ("const" in schema) return [schema["const"]];
  const branches = schema["anyOf"] ?? schema["oneOf"];
  if (!Array.isArray(branches)) return undefined;
  const constants = branches.map(objectOf);
  return constants.length > 0 && constants.every((each) => "const" in each)
    ? constants.map((each) => each["const"])
    : undefined;
}

function textFormat(schema: JsonSchema): TextFormat {
  const known = FORMATS[String(schema["format"])];
  if (known !== undefined) return known;
  return schema["format"] === "textarea" || Number(schema["maxLength"]) > LONG_TEXT ? "lines" : "line";
}
