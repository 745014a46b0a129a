import fc from "fast-check";
import { expect, test } from "vitest";
import { Cron } from "./cron.ts";

/**
 * The reference steps through real time minute by minute and reads a wall clock (Intl, in a different format than the code
 * uses) to see it jump. Starting points lie around real clock changes, including unusual ones: half an hour in Lord Howe, at
 * midnight in Cairo and Santiago, a whole day in Apia.
 */
const ZONES = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "America/St_Johns",
  "America/Santiago",
  "Africa/Cairo",
  "Africa/Casablanca",
  "Australia/Lord_Howe",
  "Asia/Kathmandu",
  "Pacific/Apia",
] as const;
const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;
const SPAN = 3 * DAY;

const clocks = new Map(
  ZONES.map((zone) => {
    return [
      zone,
      new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" }),
    ] as const;
  }),
);
/** The wall clock time, as if it were UTC. */
const wall = (zone: (typeof ZONES)[number], utc: number) =>
  Date.parse(`${clocks.get(zone)!.format(utc).replace(" ", "T")}Z`);

const changes = ZONES.flatMap((zone) => {
  const found: { zone: (typeof ZONES)[number]; day: number }[] = [{ zone, day: Date.UTC(2026, 5, 15) }];
  for (let day = Date.UTC(2009, 0, 1); day < Date.UTC(2028, 0, 1); day += DAY) {
    if (wall(zone, day) - day !== wall(zone, day + DAY) - day - DAY) found.push({ zone, day });
  }
  return found;
});

const minutes = { "0": [0], "30": [30], "*/15": [0, 15, 30, 45], "5,50": [5, 50], "*": range(0, 59) };
const hours = {
  "*": range(0, 23),
  "0": [0],
  "2": [2],
  "1-3": [1, 2, 3],
  "*/6": [0, 6, 12, 18],
  "23": [23],
  "2,3": [2, 3],
};
const weekdays = { "*": range(0, 6), "1-5": range(1, 5), "0": [0], "6,0": [6, 0] };

test("fires exactly when a wall clock shows the time, across every kind of clock change", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...changes),
      fc.integer({ min: -2_000, max: 1_500 }),
      fc.constantFrom(...(Object.keys(minutes) as (keyof typeof minutes)[])),
      fc.constantFrom(...(Object.keys(hours) as (keyof typeof hours)[])),
      fc.constantFrom(...(Object.keys(weekdays) as (keyof typeof weekdays)[])),
      ({ zone, day }, shift, minute, hour, weekday) => {
        const start = day + shift * MINUTE;
        const matches = (shown: number) => {
          const date = new Date(shown);
          return (
            minutes[minute].includes(date.getUTCMinutes()) &&
            hours[hour].includes(date.getUTCHours()) &&
            weekdays[weekday].includes(date.getUTCDay())
          );
        };
        const expected = watch(zone, start, { matches, isEveryHour: hour === "*" });
        const cron = new Cron(`${minute} ${hour} * * ${weekday}`, zone);
        const actual: number[] = [];
        for (let at = cron.next(start); at <= start + SPAN; at = cron.next(at)) actual.push(at);
        expect(actual.map(iso)).toEqual(expected.map(iso));
        const last = expected.at(-1);
        if (last !== undefined) expect(iso(cron.previous(start + SPAN))).toBe(iso(last));
      },
    ),
    { numRuns: 300 },
  );
}, 300_000);

/** Fires in (start, start + SPAN]. Starts more than a day earlier, to record which times the clock has already shown. */
function watch(
  zone: (typeof ZONES)[number],
  start: number,
  schedule: { matches: (shown: number) => boolean; isEveryHour: boolean },
): number[] {
  const found = new Set<number>();
  let furthest = wall(zone, start - DAY - MINUTE);
  for (let at = start - DAY; at <= start + SPAN; at += MINUTE) {
    const shown = wall(zone, at);
    if (schedule.isEveryHour) {
      if (schedule.matches(shown)) found.add(at);
      continue;
    }
    // Every minute the clock has passed: one normally, many at a jump, none while the clock repeats an hour.
    for (let minute = furthest + MINUTE; minute <= shown; minute += MINUTE)
      if (schedule.matches(minute)) found.add(at);
    furthest = Math.max(furthest, shown);
  }
  return [...found].filter((at) => at > start);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
