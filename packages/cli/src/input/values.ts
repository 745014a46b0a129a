/** Parses values typed by users; an error is a usage error that names the option and shows an example. */
import { readFileSync } from "node:fs";
import { InvalidArgumentError } from "commander";
import { usageError } from "../errors.ts";

export type JsonObject = { [key: string]: unknown };

/** `--conf '{"a":1}'`, `--conf @file.json`, `--conf @-` (standard input). */
export function parseConf(text: string): JsonObject {
  const source = readSource(text, "--conf");
  const value = parseJson(source.text, source.name);
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw usageError(
      `${source.name} must be a JSON object, not ${describe(value)}.`,
      `example: --conf '{"region":"eu"}'`,
    );
  }
  return value as JsonObject;
}

/** The text itself, or for `@` the contents of a file or of stdin. */
export function readSource(text: string, option: string): { name: string; text: string } {
  if (!text.startsWith("@")) return { name: option, text };
  const path = text.slice(1);
  if (path === "")
    throw usageError(
      `${option} has no file name after "@".`,
      `use ${option} @conf.json, or ${option} @- for stdin`,
    );
  return { name: path === "-" ? "standard input" : path, text: readFile(path) };
}

export function readFile(path: string): string {
  try {
    return readFileSync(path === "-" ? 0 : path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw usageError(
      `cannot read ${path === "-" ? "standard input" : `the file ${path}`}: ${code === "ENOENT" ? "it does not exist" : (error as Error).message}.`,
    );
  }
}

export function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`${name} is not valid JSON: ${(error as Error).message}.`);
  }
}

/** `key=value`, any number of them. */
export function parsePairs(pairs: readonly string[], option: string): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf("=");
      // Do not repeat the text: it may contain a secret.
      if (equals < 1)
        throw usageError(`${option} needs a name and a value.`, `example: ${option} name=value`);
      return [pair.slice(0, equals), pair.slice(equals + 1)];
    }),
  );
}

/** An ISO 8601 instant. Without an offset it is UTC, never local time. */
export function parseInstant(text: string): string {
  const match = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?(Z|[+-]\d{2}:?\d{2})?$/i.exec(
    text,
  );
  if (match) {
    const iso = text.replace(" ", "T");
    const zoned = match[1] ? iso : iso.includes("T") ? `${iso}Z` : `${iso}T00:00:00Z`;
    const date = new Date(zoned);
    // JavaScript parses 30 February as 2 March.
    const isDay =
      Number(text.slice(8, 10)) <=
      new Date(Date.UTC(Number(text.slice(0, 4)), Number(text.slice(5, 7)), 0)).getUTCDate();
    if (isDay && !Number.isNaN(date.getTime())) return date.toISOString();
  }
  throw new InvalidArgumentError(
    "Give a date such as 2026-01-31 or 2026-01-31T08:00:00+01:00 (UTC without an offset).",
  );
}

/** `500ms`, `90s`, `15m`, `12h`, `30d`, `2w`: milliseconds. */
export function parseDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)$/.exec(text.trim());
  if (!match) throw new InvalidArgumentError("Give a duration such as 90s, 15m, 12h or 30d.");
  return Number(match[1]) * UNITS[match[2] as keyof typeof UNITS];
}

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Parses a whole number within bounds. */
export function wholeNumber(minimum: number, maximum = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^-?\d+$/.test(text.trim()) || value < minimum || value > maximum) {
      const bounds =
        maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`;
      throw new InvalidArgumentError(`Give a whole number ${bounds}.`);
    }
    return value;
  };
}

function describe(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return `a ${typeof value}`;
}
