/**
 * A moment: a Date, a date alone (midnight UTC), or an ISO text with "Z" or an offset.
 * @example const moments: Moment[] = [new Date(), "2027-01-04", "2027-01-04T08:00:00+01:00"];
 */
export type Moment = Date | string;

/** The moment as an ISO text in UTC; null if it is invalid, or in a year that PostgreSQL writes differently. */
export function isoInstant(value: unknown): string | null {
  const date =
    value instanceof Date ? value : typeof value === "string" && hasZone(value) ? new Date(value) : null;
  const year = date?.getUTCFullYear() ?? Number.NaN;
  return date && year >= 1 && year <= 9999 ? date.toISOString() : null;
}

/** Describes what {@link isoInstant} accepts, for messages. */
export const MOMENT_FORMS =
  'a Date, "2026-01-31", or an ISO text with "Z" or an offset, of the years 1 to 9999';

/** A text without a zone would be a different moment on every machine. A date alone is midnight UTC. */
function hasZone(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:?\d{2}))?$/.test(text);
}
