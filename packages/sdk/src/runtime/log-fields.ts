/** Converts any value that an author logs into JSON: a log line must never fail a task. */
import type { Json } from "../manifest.ts";

const MAX_DEPTH = 8;

export function logFields(fields: Readonly<Record<string, unknown>>): Record<string, Json> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, shown(value, 0)]));
}

function shown(value: unknown, depth: number): Json {
  try {
    if (value === null || typeof value === "string" || typeof value === "boolean") return value;
    if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
    if (typeof value !== "object") return String(value);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString();
    if (value instanceof Error) return value.stack ?? `${value.name}: ${value.message}`;
    // Also ends the walk through an object that contains itself.
    if (depth >= MAX_DEPTH) return "...";
    if (Array.isArray(value)) return value.map((element) => shown(element, depth + 1));
    if (value instanceof Map || value instanceof Set) return shown([...value], depth);
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shown(member, depth + 1)]));
  } catch (error) {
    return `not shown: ${String(error)}`;
  }
}
