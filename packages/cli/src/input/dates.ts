/** Dates typed by users. Without an offset, a date is local to a time zone. Each date is a span: a day, a minute or a second. */
import { zoneNamed } from "@tradewind/engine/zone";
import { InvalidArgumentError } from "commander";
import { parseDuration } from "./values.ts";

const FORM =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(\.\d{1,3})?)?)?(Z|[+-]\d{2}(?::?\d{2})?)?$/i;
const DAY = 86_400_000;

/** A date typed by a user. */
export interface TypedDate {
  /** An ISO date without offset: `2026-11-15`, `2026-11-15T02:00`. */
  readonly local: string;
  /** Minutes east of UTC; null: use the time zone. */
  readonly offset: number | null;
}

/** One end of a range: a date, or an age in milliseconds. */
export type Bound = TypedDate | { readonly agoMs: number };

export function readDate(text: string): TypedDate | null {
  const match = FORM.exec(text.trim());
  if (match === null) return null;
  const [, day = "", time, seconds, fraction, zone] = match;
  const local = [day, time && `T${time}`, seconds && `:${seconds}`, fraction?.padEnd(4, "0")]
    .filter(Boolean)
    .join("");
  const at = localMs(local);
  // JavaScript parses 30 February as 2 March.
  const isReal = !Number.isNaN(at) && new Date(at).toISOString().startsWith(local);
  return isReal ? { local, offset: zone === undefined ? null : offsetMinutes(zone) } : null;
}

/** Parses an option such as `--from`. */
export function parseDate(text: string): TypedDate {
  const date = readDate(text);
  if (date !== null) return date;
  throw new InvalidArgumentError("Give a date such as 2026-01-31 or 2026-01-31T08:00 (+01:00, Z).");
}

/** Parses an option such as `--since`. */
export function parseBound(text: string): Bound {
  const date = readDate(text);
  if (date !== null) return date;
  try {
    return { agoMs: parseDuration(text) };
  } catch {
    throw new InvalidArgumentError("Give a date such as 2026-01-31 or 2026-01-31T08:00, or an age: 3h, 2d.");
  }
}

/** The first instant included by a lower bound. */
export function sinceInstant(bound: Bound, zone: string): Date {
  return "agoMs" in bound ? new Date(Date.now() - bound.agoMs) : spanOf(bound, zone).from;
}

/** The first instant after an upper bound: `--until 2026-01-31` includes that day. */
export function untilInstant(bound: Bound, zone: string): Date {
  return "agoMs" in bound ? new Date(Date.now() - bound.agoMs) : spanOf(bound, zone).to;
}

/** From the first to the last instant at which clocks show the date; a time that clocks show twice is one span. */
export function spanOf(
  { local, offset }: TypedDate,
  zone: string,
): { readonly from: Date; readonly to: Date } {
  const begin = localMs(local);
  const end = begin + stepOf(local);
  if (offset !== null)
    return { from: new Date(begin - offset * 60_000), to: new Date(end - offset * 60_000) };
  const { firstInstant, lastInstant } = clocksOf(zone);
  return { from: new Date(firstInstant(begin)), to: new Date(lastInstant(end - 1) + 1) };
}

function clocksOf(name: string) {
  const zone = zoneNamed(name);
  const lastInstant = (local: number) => {
    const first = zone.firstInstant(local);
    const again = local - zone.offsetAt(local + DAY);
    return again > first && again + zone.offsetAt(again) === local ? again : first;
  };
  return { firstInstant: (local: number) => zone.firstInstant(local), lastInstant };
}

/** Whether clocks show the date at this instant. */
export function isShownAt({ local, offset }: TypedDate, zone: string, iso: string): boolean {
  const at = Date.parse(iso);
  const east = offset === null ? zoneNamed(zone).offsetAt(at) : offset * 60_000;
  return new Date(at + east).toISOString().startsWith(local);
}

function localMs(local: string): number {
  return Date.parse(local.includes("T") ? `${local}Z` : `${local}T00:00:00Z`);
}

function stepOf(local: string): number {
  if (!local.includes("T")) return DAY;
  if (local.length === "2026-11-15T02:00".length) return 60_000;
  return local.includes(".") ? 1 : 1_000;
}

function offsetMinutes(zone: string): number {
  if (/^z$/i.test(zone)) return 0;
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(3).replace(":", "") || 0);
  return zone.startsWith("-") ? -minutes : minutes;
}
