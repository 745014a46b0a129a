/** Local time in an IANA zone, from the rules in Intl. A local instant is in milliseconds as if it were UTC. */
import { ModelError } from "../run/errors.ts";

const DAY = 86_400_000;
/** About a century: enough for one schedule that searches 40 years ahead. */
const MAX_DAYS = 40_000;

const zones = new Map<string, Zone>();

/** Zones are cached: creating one is slow (Intl), and there are few. */
export function zoneNamed(name: string): Zone {
  let zone = zones.get(name);
  if (!zone) {
    zone = new Zone(name);
    zones.set(name, zone);
  }
  return zone;
}

export type { Zone };

class Zone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat;
  /** Cached offsets at the start of each UTC day, by day number. */
  readonly #offsets = new Map<number, number>();

  constructor(name: string) {
    this.name = name;
    try {
      this.#format = new Intl.DateTimeFormat("en-US-u-ca-iso8601", {
        timeZone: name,
        hourCycle: "h23",
        year: "numeric",
        month: "numeric",
        day: "numeric",
        hour: "numeric",
        minute: "numeric",
        second: "numeric",
      });
    } catch {
      throw new ModelError(
        "TIMEZONE_UNKNOWN",
        `Time zone "${name}" is unknown. Use an IANA name such as "Europe/Berlin" or "UTC".`,
      );
    }
  }

  /**
   * Local minus UTC, in milliseconds. A call of Intl takes microseconds, and schedules need the same days repeatedly. If a
   * day begins and ends with the same offset, that offset is used: no zone of the tz database has ever changed its offset
   * and changed back within one UTC day.
   */
  offsetAt(utc: number): number {
    if (this.name === "UTC") return 0;
    const day = Math.floor(utc / DAY);
    const offset = this.#offsetOnDay(day);
    return offset === this.#offsetOnDay(day + 1) ? offset : this.#offsetAt(utc);
  }

  #offsetOnDay(day: number): number {
    let offset = this.#offsets.get(day);
    if (offset === undefined) {
      if (this.#offsets.size >= MAX_DAYS) this.#offsets.clear();
      offset = this.#offsetAt(day * DAY);
      this.#offsets.set(day, offset);
    }
    return offset;
  }

  #offsetAt(utc: number): number {
    const parts: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(utc)) parts[type] = Number(value);
    const { year, month, day, hour, minute, second } = parts;
    return Date.UTC(year!, month! - 1, day!, hour!, minute!, second!) - Math.floor(utc / 1000) * 1000;
  }

  /** The instant at which clocks first show `local`. If clocks skip that time: the instant of the jump. */
  firstInstant(local: number): number {
    const earlier = this.offsetAt(local - DAY);
    const later = this.offsetAt(local + DAY);
    if (earlier === later) return local - earlier;
    const shown = [local - earlier, local - later].filter((utc) => utc + this.offsetAt(utc) === local);
    if (shown.length > 0) return Math.min(...shown);
    return this.changeBetween(local - Math.max(earlier, later), local - Math.min(earlier, later));
  }

  /** The first instant of the new offset, given two instants with different offsets. */
  changeBetween(before: number, after: number): number {
    const offset = this.offsetAt(before);
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (this.offsetAt(middle) === offset) before = middle;
      else after = middle;
    }
    return after;
  }
}
