/** Moments and durations of test options. */
import { type Duration, serialise, TimeDeltaTrigger } from "@tradewind/sdk";
import { DagTestError } from "./errors.ts";

/**
 * A time in the run: a duration after its start, or a moment of its clock (default: its start).
 * @example const times: When[] = [{ after: "1h" }, { at: "2027-01-04T08:00:00Z" }];
 */
export interface When {
  readonly after?: Duration;
  readonly at?: Date | string;
}

/** Milliseconds; rejects what the SDK rejects. */
export function delayMs(delay: Duration): number {
  const { wake } = serialise(new TimeDeltaTrigger({ delta: delay }));
  return (wake as { readonly afterMs: number }).afterMs;
}

/** The same for an option of `runDag`. */
export function durationOption(name: string, value: Duration): number {
  try {
    return delayMs(value);
  } catch {
    const given = JSON.stringify(value) ?? String(value);
    throw new DagTestError("TW_TEST_BAD_OPTION", `${name} must be a duration like "10m", got ${given}`);
  }
}

export function isoOption(name: string, value: Date | string): string {
  const date = new Date(value);
  if (!Number.isNaN(date.getTime())) return date.toISOString();
  throw new DagTestError("TW_TEST_BAD_OPTION", `${name} must be a Date or an ISO text, got ${String(value)}`);
}

export function momentOption(name: string, { after, at }: When, startedAt: number): number {
  if (after !== undefined && at !== undefined)
    throw new DagTestError("TW_TEST_BAD_OPTION", `${name}: give "after" or "at", not both`);
  if (at === undefined) return startedAt + (after === undefined ? 0 : durationOption(`${name}.after`, after));
  const moment = Date.parse(isoOption(`${name}.at`, at));
  if (moment >= startedAt) return moment;
  const start = new Date(startedAt).toISOString();
  throw new DagTestError(
    "TW_TEST_BAD_OPTION",
    `${name}.at is before the start of the run, ${start}`,
    'set its start with "now"',
  );
}
