import { DagDefinitionError, show } from "../check/errors.ts";

/**
 * A duration: milliseconds, or a number with a unit.
 * @example const options = { timeout: "5h", retryDelay: "100ms", maxRetryDelay: 60_000 } satisfies Record<string, Duration>;
 */
export type Duration = number | `${number}${DurationUnit}`;

/**
 * The units of a {@link Duration}, from milliseconds to weeks.
 * @example const units: DurationUnit[] = ["ms", "s", "m", "h", "d", "w"];
 */
export type DurationUnit = "ms" | "s" | "m" | "h" | "d" | "w";

const UNIT_MS: Readonly<Record<DurationUnit, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/;

/** A century: a longer duration is a mistake in the unit and exceeds the interval arithmetic of the database. */
const LONGEST_MS = 100 * 366 * UNIT_MS.d;

/** The milliseconds of a duration; `where` names the option in the error. */
export function durationMs(value: unknown, where: string): number {
  const ms = typeof value === "string" ? parse(value) : typeof value === "number" ? value : Number.NaN;
  if (Number.isFinite(ms) && ms >= 0 && ms <= LONGEST_MS) return Math.round(ms);
  throw new DagDefinitionError(
    "TW_BAD_DURATION",
    `${where}: ${show(value)} is not a duration; write "100ms", "5s", "10m", "5h", "2d" or "1w", or a number of milliseconds`,
  );
}

function parse(text: string): number {
  const match = PATTERN.exec(text);
  return match ? Number(match[1]) * UNIT_MS[match[2] as DurationUnit] : Number.NaN;
}
