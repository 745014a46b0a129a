/** Instants and durations for users. JSON and YAML output keeps the API's values. */
import { durationText } from "@tradewind/sdk/wording";

const UTC = "UTC";
/** The time zone of `--tz`. */
let zone: string = UTC;
let format: Intl.DateTimeFormat | undefined;
let offsetFormat: Intl.DateTimeFormat | undefined;

/** Sets the time zone of dates; the default is UTC. */
export function showDatesIn(name: string): void {
  zone = name;
  format = undefined;
  offsetFormat = undefined;
}

/** "3 m ago", "in 2 h"; the date if it is more than a month away. */
export function relativeTime(iso: string | null | undefined, now: number = Date.now()): string {
  if (!iso) return "-";
  const moment = Date.parse(iso);
  if (Number.isNaN(moment)) return iso;
  const distance = Math.abs(now - moment);
  if (distance > 30 * DAY) return localTime(moment).slice(0, 10);
  const text = coarse(distance);
  return moment > now ? `in ${text}` : `${text} ago`;
}

/** A due time: "in 2 h", or "now" if it has passed. */
export function dueTime(iso: string | null | undefined, now: number = Date.now()): string {
  return iso && Date.parse(iso) <= now ? "now" : relativeTime(iso, now);
}

/** An instant with its offset, accepted by commands: "2026-03-01 13:00:00+01:00", or with "Z". */
export function moment(iso: string | null | undefined): string {
  if (!iso) return "-";
  const at = Date.parse(iso);
  return Number.isNaN(at) ? iso : localTime(at);
}

/** The time of a log line: with milliseconds, and with the date unless it is today. */
export function logTime(iso: string, now: number = Date.now()): string {
  const at = Date.parse(iso);
  if (Number.isNaN(at)) return iso;
  const text = localTime(at, true);
  return text.slice(0, 10) === localTime(now).slice(0, 10) ? text.slice(11) : text;
}

/** A message of the server with its instants in the form of `moment`. Ids and quoted values are kept. */
export function withMoments(text: string): string {
  return text.replace(INSTANT, (iso) => moment(iso));
}

const INSTANT = /(?<![^\s(])\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?![\w"-])/g;

function localTime(at: number, keepsMs = false): string {
  const utc = new Date(at).toISOString();
  const ms = !keepsMs && utc.endsWith(".000Z") ? "" : utc.slice(19, 23);
  if (zone === UTC) return `${utc.slice(0, 10)} ${utc.slice(11, 19)}${ms}Z`;
  // Swedish dates are ISO 8601 with a space.
  format ??= new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" });
  return `${format.format(at)}${ms}${offsetAt(at)}`;
}

function offsetAt(at: number): string {
  offsetFormat ??= new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
  const name = offsetFormat.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value ?? "GMT";
  return name === "GMT" ? "+00:00" : name.slice(3);
}

/** A duration in seconds, e.g. "41 ms", "3.2 s", "1 h 5 m". */
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
