/** Checks of single options. Each error names the place, the option and the accepted values. */

import { durationMs } from "../schedule/duration.ts";
import { orElse, refuse } from "./definition-errors.ts";
import { DagDefinitionError, show } from "./errors.ts";
import { belongsTo, meant, type OptionPlace } from "./misplaced-option.ts";

type Options = Readonly<Record<string, unknown>>;

/** Returns the options object after rejecting unknown names. */
export function knownOptions(
  options: unknown,
  names: readonly string[],
  where: string,
  place?: OptionPlace,
): Options {
  if (options === undefined) return {};
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    refuse(
      new DagDefinitionError("TW_BAD_OPTION", `${where}: options must be an object, got ${show(options)}`),
    );
    return {};
  }
  for (const name of Object.keys(options)) {
    if (names.includes(name)) continue;
    const remedy = (place && belongsTo(name, place)) ?? meant(name, names, place);
    refuse(new DagDefinitionError("TW_UNKNOWN_OPTION", `${where}: unknown option "${name}"; ${remedy}`));
  }
  return options as Options;
}

/** Drops options that are present but undefined: they must not hide a default. */
export function definedOnly(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** The maximum of a 32-bit column. */
export const INT32_MAX = 2_147_483_647;

/** A whole number that fits a 32-bit column. */
export function atLeast(
  o: Options,
  name: string,
  bounds: { min: number; fallback: number },
  where: string,
): number {
  const value = o[name];
  const { fallback, min } = bounds;
  if (value === undefined) return fallback;
  const isTooLarge = typeof value === "number" && value > INT32_MAX;
  if (Number.isInteger(value) && (value as number) >= min && !isTooLarge) return value as number;
  const range = min < 0 || isTooLarge ? `from ${min} to ${INT32_MAX}` : `of ${min} or more`;
  refuse(bad(where, name, `a whole number ${range}`, value));
  return fallback;
}

/** A whole number of 1 or more, or null if it is missing. */
export function wholeOrNull(o: Options, name: string, where: string): number | null {
  return o[name] === undefined || o[name] === null ? null : atLeast(o, name, { min: 1, fallback: 1 }, where);
}

/** A non-empty text, or null if it is missing. */
export function text(o: Options, name: string, where: string): string | null {
  const value = o[name];
  if (value === undefined || value === null) return null;
  if (typeof value === "string" && value !== "") return value;
  refuse(bad(where, name, "a non-empty text", value));
  return null;
}

/** One of some words; the first is the default. */
export function choice<const C extends string>(
  o: Options,
  name: string,
  words: readonly C[],
  where: string,
): C {
  const value = o[name] ?? words[0];
  if (words.includes(value as C)) return value as C;
  refuse(bad(where, name, `one of ${words.map((word) => `"${word}"`).join(", ")}`, value));
  return words[0] as C;
}

export function flag(o: Options, name: string, where: string): boolean {
  const value = o[name] ?? false;
  if (typeof value === "boolean") return value;
  refuse(bad(where, name, "true or false", value));
  return false;
}

export function func(o: Options, name: string, where: string): ((...args: never[]) => unknown) | undefined {
  const value = o[name];
  if (value === undefined) return undefined;
  if (typeof value === "function") return value as (...args: never[]) => unknown;
  refuse(bad(where, name, "a function", value));
  return undefined;
}

/** The milliseconds of a duration option. */
export function duration<F>(o: Options, name: string, fallback: F, where: string): number | F {
  const value = o[name];
  return value === undefined
    ? fallback
    : orElse<number | F>(() => durationMs(value, `${where}: ${name}`), fallback);
}

function bad(where: string, name: string, wanted: string, got: unknown): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_OPTION", `${where}: ${name} must be ${wanted}, got ${show(got)}`);
}
