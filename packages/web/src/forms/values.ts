/** The values of a form: defaults, problems that are found before the request, and what is sent. Pure. */
import type { FormField } from "./fields.ts";

/** Text that is not the JSON or the number it has to be; kept while it is typed. */
export class Unparsed {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** By JSON pointer: "/region", "/rows/0/name"; "" is the whole value. */
export type FormErrors = ReadonlyMap<string, string>;

/** The value with which a field begins; undefined: it is not set. */
export function initialValue(field: FormField): unknown {
  if ("default" in field.schema) return withDefaults(field, structuredClone(field.schema["default"]));
  switch (field.kind) {
    case "object": {
      const entries = field.fields
        .map((each) => [each.name, initialValue(each.field)] as const)
        .filter(([, value]) => value !== undefined);
      return field.isRequired || entries.length > 0 ? Object.fromEntries(entries) : undefined;
    }
    case "array":
      return field.isRequired ? [] : undefined;
    case "choice":
      return field.isRequired && field.options.length === 1 ? field.options[0] : undefined;
    case "boolean":
      return field.isRequired ? false : undefined;
    default:
      return undefined;
  }
}

/** The default of an object may leave out properties that have defaults of their own. */
function withDefaults(field: FormField, value: unknown): unknown {
  if (field.kind !== "object" || typeof value !== "object" || value === null) return value;
  const own = field.fields.filter(({ field: each }) => "default" in each.schema);
  return { ...Object.fromEntries(own.map((each) => [each.name, initialValue(each.field)])), ...value };
}

export function pointerOf(parent: string, name: string | number): string {
  return `${parent}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** What the form itself can see; the server checks everything. */
export function problemsOf(field: FormField, value: unknown, pointer = ""): Map<string, string> {
  const problems = new Map<string, string>();
  const add = (message: string) => problems.set(pointer, message);
  if (value === undefined) {
    if (field.isRequired) add("Required");
    return problems;
  }
  if (value === null && field.isNullable) return problems;
  if (value instanceof Unparsed) {
    add(field.kind === "number" ? `"${value.text}" is not a number` : "This is not JSON");
    return problems;
  }
  const { schema } = field;
  const number = (keyword: string) => (typeof schema[keyword] === "number" ? schema[keyword] : undefined);
  switch (field.kind) {
    case "number": {
      if (typeof value !== "number") return problems;
      const [least, most] = [number("minimum"), number("maximum")];
      if (field.isInteger && !Number.isInteger(value)) add("Must be a whole number");
      else if (least !== undefined && value < least) add(`Must be at least ${least}`);
      else if (most !== undefined && value > most) add(`Must be at most ${most}`);
      break;
    }
    case "text": {
      if (typeof value !== "string") return problems;
      const [least, most] = [number("minLength"), number("maxLength")];
      if (least !== undefined && value.length < least) add(`Must have at least ${least} characters`);
      else if (most !== undefined && value.length > most) add(`Must have at most ${most} characters`);
      break;
    }
    case "array": {
      if (!Array.isArray(value)) return problems;
      const [least, most] = [number("minItems"), number("maxItems")];
      if (least !== undefined && value.length < least) add(`Must have at least ${least} items`);
      else if (most !== undefined && value.length > most) add(`Must have at most ${most} items`);
      for (const [index, item] of value.entries())
        for (const [at, message] of problemsOf(field.item, item, pointerOf(pointer, index)))
          problems.set(at, message);
      break;
    }
    case "object":
      for (const each of field.fields)
        for (const [at, message] of problemsOf(
          each.field,
          (value as Readonly<Record<string, unknown>>)[each.name],
          pointerOf(pointer, each.name),
        ))
          problems.set(at, message);
  }
  return problems;
}

/** Without what is not set. Call it only without problems. */
export function jsonOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(jsonOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .map(([name, each]) => [name, jsonOf(each)]),
  );
}

/** The top-level values that differ from the defaults: the others need not be sent. */
export function changedFrom(
  defaults: Readonly<Record<string, unknown>>,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([name, value]) => !isSame(defaults[name], value)));
}

function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const [ones, others] = [Object.entries(one), Object.entries(other)];
  return (
    ones.length === others.length &&
    ones.every(([name, value]) => name in other && isSame(value, (other as Record<string, unknown>)[name]))
  );
}
