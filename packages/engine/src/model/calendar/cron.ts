/**
 * When a cron schedule fires, in the local time of its zone. When clocks change:
 *
 * - An expression that names hours ("30 2 * * *", "0 0-12 * * *") fires once for every local time it names. A skipped
 *   local time fires at the moment of the jump (02:30 becomes 03:00), a repeated local time fires the first time.
 * - An expression for every hour ("*\/5 * * * *", "0 * * * *") follows real time: it does not fire for the skipped hour and
 *   fires twice in the repeated hour. The distance between two fires never changes.
 */

import { ModelError } from "../run/errors.ts";
import { type CronFields, parseCron } from "./cron-expression.ts";
import { type Zone, zoneNamed } from "./zone.ts";

const DAY = 86_400_000;
/** Feb 29 falls on the same weekday again after at most 40 years. */
const HORIZON = 41 * 366 * DAY;

export class Cron {
  readonly #fields: CronFields;
  readonly #zone: Zone;
  readonly #isEveryHour: boolean;

  /** Throws a ModelError if the expression or the zone is invalid. */
  constructor(expression: string, timezone: string) {
    this.#fields = parseCron(expression);
    this.#zone = zoneNamed(timezone);
    this.#isEveryHour = this.#fields.hours.length === 24;
  }

  /** The first fire after `utc`. */
  next(utc: number): number {
    return this.#isEveryHour ? this.#nextInRealTime(utc) : this.#nextByClock(utc);
  }

  /** The last fire at or before `at`. */
  previous(at: number): number {
    // Fires are at whole milliseconds. With a fraction, the search below would not end.
    const utc = Math.floor(at);
    let window = 3_600_000;
    while (this.next(utc - window) > utc) {
      if (window > HORIZON) throw noFire();
      window *= 8;
    }
    // Finds the largest start whose next fire is not after `utc`. That fire is the result.
    let [reaches, misses] = [utc - window, utc];
    while (misses - reaches > 1) {
      const middle = Math.floor((reaches + misses) / 2);
      if (this.next(middle) <= utc) reaches = middle;
      else misses = middle;
    }
    return this.next(reaches);
  }

  #nextByClock(utc: number): number {
    let local = utc + this.#zone.offsetAt(utc);
    for (;;) {
      local = this.#nextLocal(local + 1);
      const instant = this.#zone.firstInstant(local);
      if (instant > utc) return instant;
    }
  }

  #nextInRealTime(utc: number): number {
    let from = utc + 1;
    for (;;) {
      const offset = this.#zone.offsetAt(from);
      const instant = this.#nextLocal(from + offset) - offset;
      if (this.#zone.offsetAt(instant) === offset) return instant;
      from = this.#zone.changeBetween(from, instant);
    }
  }

  /** The first matching local time at or after `local`. */
  #nextLocal(local: number): number {
    const { seconds, minutes, hours, months, isDay } = this.#fields;
    const rounded = Math.ceil(local / 1000) * 1000;
    const firstDay = Math.floor(rounded / DAY) * DAY;
    for (let day = firstDay; day < firstDay + HORIZON; day += DAY) {
      const date = new Date(day);
      const month = date.getUTCMonth();
      if (!months.has(month + 1)) {
        day = Date.UTC(date.getUTCFullYear(), month + 1, 1) - DAY;
        continue;
      }
      const daysInMonth = new Date(Date.UTC(date.getUTCFullYear(), month + 1, 0)).getUTCDate();
      if (!isDay({ dayOfMonth: date.getUTCDate(), weekday: date.getUTCDay(), daysInMonth })) continue;
      const least = day === firstDay ? rounded - day : 0;
      const time = firstTime({ seconds, minutes, hours }, least);
      if (time !== null) return day + time;
    }
    throw noFire();
  }
}

/** Throws a ModelError with the reason if the expression or the zone is invalid. */
export function validateCron(expression: string, timezone = "UTC"): void {
  new Cron(expression, timezone);
}

/** The first matching time of day, in milliseconds, that is not before `least`. */
function firstTime(fields: Pick<CronFields, "seconds" | "minutes" | "hours">, least: number): number | null {
  const leastHour = Math.floor(least / 3_600_000);
  const leastMinute = Math.floor(least / 60_000) % 60;
  const leastSecond = Math.floor(least / 1000) % 60;
  for (const hour of fields.hours) {
    if (hour < leastHour) continue;
    const isLeastHour = hour === leastHour;
    for (const minute of fields.minutes) {
      if (isLeastHour && minute < leastMinute) continue;
      const isLeastMinute = isLeastHour && minute === leastMinute;
      for (const second of fields.seconds) {
        if (isLeastMinute && second < leastSecond) continue;
        return ((hour * 60 + minute) * 60 + second) * 1000;
      }
    }
  }
  return null;
}

function noFire(): ModelError {
  return new ModelError(
    "CRON_INVALID",
    "The cron expression does not fire within 40 years. Check its day and month.",
  );
}
