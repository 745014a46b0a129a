/** A range as users give it: from an instant or a day to an instant or a day, in the time zone of a schedule. */
import type { ScheduleManifest } from "@tradewind/sdk/manifest";
import { zoneNamed } from "./zone.ts";

const DAY = 86_400_000;

/** An instant is exact; a day means the whole day. */
export type RangeEnd = number | { readonly day: string };

/** The common zone of all times of a schedule; UTC if there is none. */
export function zoneOf(schedule: ScheduleManifest | undefined): string {
  const parts = schedule?.kind === "several" ? schedule.of : [schedule];
  const zones = new Set(parts.map((part) => (part?.kind === "cron" ? part.timezone : "UTC")));
  const [zone = "UTC"] = zones;
  return zones.size === 1 ? zone : "UTC";
}

/** The first moment of each day in a zone, from the day of `first` (midnight in UTC) on. */
export function dayStarts(first: number, count: number, zone: string): number[] {
  const local = zoneNamed(zone);
  return Array.from({ length: count }, (_, day) => local.firstInstant(first + day * DAY));
}

/** The first and the last instant of the range. */
export function rangeInstants(
  schedule: ScheduleManifest,
  { from, to }: { readonly from: RangeEnd; readonly to: RangeEnd },
): { readonly from: number; readonly to: number } {
  const zone = zoneNamed(zoneOf(schedule));
  const startOf = (day: string, later = 0) => zone.firstInstant(Date.parse(`${day}T00:00:00Z`) + later);
  return {
    from: typeof from === "number" ? from : startOf(from.day),
    to: typeof to === "number" ? to : startOf(to.day, DAY) - 1,
  };
}
