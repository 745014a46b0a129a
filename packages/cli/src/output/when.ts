/** Moments and spans as people read them. JSON and YAML output keeps the API's own values instead. */
import { durationText } from "@tradewind/sdk/wording";

/** "3 m ago", "in 2 h"; the plain date when it is more than a month away. */
export function relativeTime(iso: string | null | undefined, now: number = Date.now()): string {
  if (!iso) return "-";
  const moment = Date.parse(iso);
  if (Number.isNaN(moment)) return iso;
  const distance = Math.abs(now - moment);
  if (distance > 30 * DAY) return iso.slice(0, 10);
  const text = coarse(distance);
  return moment > now ? `in ${text}` : `${text} ago`;
}

/** An instant without the parts nobody reads. */
export function moment(iso: string | null | undefined): string {
  if (!iso) return "-";
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  return at
    .toISOString()
    .replace("T", " ")
    .replace(/\.000Z$/, "Z");
}

/** Seconds, as the API gives them, e.g. "41 ms", "3.2 s", "1 h 5 m". */
export function span(seconds: number | null | undefined): string {
  if (seconds == null) return "-";
  const ms = Math.round(seconds * 1000);
  if (ms < 1000) return `${ms} ms`;
  if (ms < 100_000) return `${(ms / 1000).toFixed(1)} s`;
  return durationText(ms);
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
function coarse(ms: number): string {
  if (ms < MINUTE) return `${Math.round(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.round(ms / MINUTE)} m`;
  if (ms < 2 * DAY) return `${Math.round(ms / HOUR)} h`;
  return `${Math.round(ms / DAY)} d`;
}
