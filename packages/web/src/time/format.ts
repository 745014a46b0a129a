/** Times and durations as text. Pure: the clock and the time zone are arguments. */

/** "local" or an IANA name. */
export type Zone = string;

const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
];

/** Two units at most: `1 m 12 s`, `3 h 4 m`, `850 ms`. */
export function duration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) return `${whole} ms`;
  if (whole < 10_000) return `${(Math.floor(whole / 100) / 10).toFixed(1)} s`;
  const first = UNITS.findIndex(([, length]) => whole >= length);
  const [unit, length] = UNITS[first]!;
  const next = UNITS[first + 1];
  const count = Math.floor(whole / length);
  if (next === undefined) return `${count} ${unit}`;
  const rest = Math.floor((whole % length) / next[1]);
  return rest === 0 ? `${count} ${unit}` : `${count} ${unit} ${rest} ${next[0]}`;
}

/** `2 m ago`, `in 3 h 4 m`, `now`. */
export function relative(at: number, now: number): string {
  const difference = at - now;
  const size = Math.abs(difference);
  if (size < 1_000) return "now";
  const text = size < 60_000 ? `${Math.floor(size / 1_000)} s` : duration(size);
  return difference < 0 ? `${text} ago` : `in ${text}`;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: Zone, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${zone} ${JSON.stringify(options)}`;
  let known = formats.get(key);
  if (known === undefined) {
    known = new Intl.DateTimeFormat("en-GB", {
      ...options,
      hourCycle: "h23",
      ...(zone === "local" ? {} : { timeZone: zone }),
    });
    formats.set(key, known);
  }
  return known;
}

const DATE = { year: "numeric", month: "2-digit", day: "2-digit" } as const;
const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;

function parts(at: number, zone: Zone, options: Intl.DateTimeFormatOptions): Record<string, string> {
  return Object.fromEntries(
    format(zone, options)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
}

/** `2026-11-16 02:00:04.123`, without zero milliseconds; the zone is added by `exact`. */
export function dateTime(at: number, zone: Zone): string {
  const { year, month, day, hour, minute, second } = parts(at, zone, { ...DATE, ...CLOCK });
  const ms = Math.floor(at) % 1_000;
  return `${year}-${month}-${day} ${hour}:${minute}:${second}${ms === 0 ? "" : `.${String(ms).padStart(3, "0")}`}`;
}

export function exact(at: number, zone: Zone): string {
  const name = parts(at, zone, { timeZoneName: "short" })["timeZoneName"] ?? "";
  return `${dateTime(at, zone)} ${name}`;
}

export function day(at: number, zone: Zone): string {
  const { year, month, day } = parts(at, zone, DATE);
  return `${year}-${month}-${day}`;
}

/** `5 Oct`, for axes. */
export function monthDay(at: number, zone: Zone): string {
  const { month, day } = parts(at, zone, { month: "short", day: "numeric" });
  return `${day} ${month}`;
}

export function clock(at: number, zone: Zone): string {
  const { hour, minute, second } = parts(at, zone, CLOCK);
  return `${hour}:${minute}:${second}`;
}

/** A logical date as short as it is exact: `2026-11-16`, `2026-11-16 02:00`. */
export function shortDate(at: number, zone: Zone): string {
  const { hour, minute, second } = parts(at, zone, CLOCK);
  if (hour === "00" && minute === "00" && second === "00") return day(at, zone);
  return second === "00"
    ? `${day(at, zone)} ${hour}:${minute}`
    : `${day(at, zone)} ${hour}:${minute}:${second}`;
}

/** For little room: `02:00:05` of today, `16 Nov 02:00` of other days. */
export function briefTime(at: number, now: number, zone: Zone): string {
  const time = clock(at, zone);
  return day(at, zone) === day(now, zone) ? time : `${monthDay(at, zone)} ${time.slice(0, 5)}`;
}

/** How far a zone is ahead of UTC at a moment, in milliseconds. */
export function zoneOffset(at: number, zone: Zone): number {
  const { year, month, day, hour, minute, second } = parts(at, zone, { ...DATE, ...CLOCK });
  const shown = Date.UTC(+year!, +month! - 1, +day!, +hour!, +minute!, +second!);
  return shown - Math.floor(at / 1_000) * 1_000;
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** Of a bounded count: `10,000+`. */
export function bounded({ count: value, more }: { readonly count: number; readonly more: boolean }): string {
  return more ? `${count(value)}+` : count(value);
}

export function bytes(size: number): string {
  if (size < 1_000) return `${size} B`;
  const units = ["kB", "MB", "GB", "TB"];
  const power = Math.min(Math.floor(Math.log10(size) / 3), units.length);
  return `${(size / 1_000 ** power).toFixed(1)} ${units[power - 1]}`;
}
