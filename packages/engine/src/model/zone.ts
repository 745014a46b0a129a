/** Local time in an IANA zone, by the rules that Intl knows. Local instants are milliseconds as if they were UTC. */
import { ModelError } from "./errors.ts";

const DAY = 86_400_000;

const zones = new Map<string, Zone>();

/** Making one is slow (Intl), and there are few: each is made once. */
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

  /** Local minus UTC, in milliseconds. */
  offsetAt(utc: number): number {
    if (this.name === "UTC") return 0;
    const parts: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(utc)) parts[type] = Number(value);
    const { year, month, day, hour, minute, second } = parts;
    return Date.UTC(year!, month! - 1, day!, hour!, minute!, second!) - Math.floor(utc / 1000) * 1000;
  }

  /**
   * The instant at which clocks first show `local`. A time that clocks jump over is the instant of the jump; of a time
   * that they show twice, the first.
   */
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
