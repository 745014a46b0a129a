/**
 * Validates stored arguments. The SDK has checked them when they were written; an older or a hand-written bundle may
 * differ. Written without a library, because a validator takes longer to load than most triggers take to start. Errors
 * name the argument and the expected form, never its value, which may be a secret.
 */
import type { Json } from "@tradewind/sdk/manifest";

/** Returns the value, or throws a {@link Misfit}. */
export type Reader<T> = (value: unknown) => T;

export class Misfit extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("; "));
    this.problems = problems;
  }
}

/** An object with exactly these members. */
export function members<T extends object>(readers: { readonly [K in keyof T]: Reader<T[K]> }): Reader<T> {
  return (value) => {
    if (!isObject(value)) throw new Misfit(["has to be an object"]);
    const problems = Object.keys(value)
      .filter((name) => !Object.hasOwn(readers, name))
      .map((name) => `${name}: is not known`);
    const found = Object.entries<Reader<unknown>>(readers).map(([name, read]) => {
      try {
        return [name, read(value[name])];
      } catch (error) {
        if (!(error instanceof Misfit)) throw error;
        problems.push(...error.problems.map((problem) => `${name}: ${problem}`));
        return [name, undefined];
      }
    });
    if (problems.length > 0) throw new Misfit(problems);
    return Object.fromEntries(found) as T;
  };
}

export const text: Reader<string> = reader(
  "a text that is not empty",
  (value) => isText(value) && value !== "",
);

export const anyText: Reader<string> = reader("a text", isText);

export const flag: Reader<boolean> = reader("true or false", (value) => typeof value === "boolean");

export const instant: Reader<string> = reader(
  "an ISO instant",
  (value) =>
    isText(value) &&
    /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/.test(value) &&
    !Number.isNaN(Date.parse(value)),
);

export const json: Reader<Json> = reader("there", (value) => value !== undefined);

export const texts: Reader<Readonly<Record<string, string>>> = reader(
  "an object of texts",
  (value) => isObject(value) && Object.values(value).every(isText),
);

export function whole(min: number): Reader<number> {
  return reader(
    `a whole number of ${min} or more`,
    (value) => Number.isSafeInteger(value) && (value as number) >= min,
  );
}

export function like(pattern: RegExp, words: string): Reader<string> {
  return reader(words, (value) => isText(value) && pattern.test(value));
}

export function orNull<T>(read: Reader<T>): Reader<T | null> {
  return (value) => (value === null ? null : read(value));
}

export function list<T>(read: Reader<T>): Reader<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) throw new Misfit(["has to be a list"]);
    return value.map(read);
  };
}

function reader<T>(words: string, fits: (value: unknown) => boolean): Reader<T> {
  return (value) => {
    if (!fits(value)) throw new Misfit([value === undefined ? "is missing" : `has to be ${words}`]);
    return value as T;
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
