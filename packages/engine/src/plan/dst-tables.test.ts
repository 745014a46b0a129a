/**
 * Cron across all clock changes of fifteen years in eight zones, against an independent reference: PostgreSQL, with its
 * own code and time zone tables, determines when the clocks of a zone change, and moment-timezone, with its own tables,
 * must agree. The test walks through these years minute by minute and records when the clock shows a time that the
 * expression names. The engine uses Intl, and jumps.
 *
 * The years include clocks that move by half an hour (Lord Howe), at midnight (São Paulo, until 2019), twice more around
 * Ramadan (Casablanca), by a different calendar (Tehran, until 2022), over a whole day (Apia, at the end of 2011), and
 * never (Kolkata). They are in the past: governments decide about future years, and versions of the tables differ.
 */
import moment from "moment-timezone";
import { beforeAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../test/support/test-database.ts";
import { Cron, type DueRun, nextRun } from "../model/index.ts";
import { adhoc, type Database } from "../store/database/database.ts";

const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;
const FROM = Date.UTC(2011, 0, 1);
const TO = Date.UTC(2026, 0, 1);

/** Minimum number of clock changes in these years, to prove that the reference finds them. */
const ZONES = {
  "Europe/Berlin": 30,
  "America/New_York": 30,
  "Australia/Lord_Howe": 30,
  "Asia/Tehran": 24,
  "America/Sao_Paulo": 16,
  "Africa/Casablanca": 40,
  "Pacific/Apia": 20,
  "Asia/Kolkata": 0,
} as const;
type ZoneName = keyof typeof ZONES;

/** In the hours in which clocks change, and at other times. */
const DAILY = ["30 2 * * *", "0 0 * * *", "15 1,2,3 * * *", "45 23 * * *", "0 12 * * *"];
const HOURLY = ["0 * * * *"];

/** The offset of the clock from UTC, and its first instant. */
interface Offset {
  readonly since: number;
  readonly ms: number;
}

const offsets = new Map<ZoneName, readonly Offset[]>();
let db: Database;

beforeAll(async () => {
  ({ db } = await testDatabase());
  for (const zone of Object.keys(ZONES) as ZoneName[]) offsets.set(zone, await offsetsOf(zone));
}, 300_000);

/** Samples every hour, and every minute of an hour whose ends differ. */
async function offsetsOf(zone: ZoneName): Promise<Offset[]> {
  const hours = await changes(zone, { from: FROM - 3 * DAY, to: TO + 3 * DAY, minutes: 60 });
  const found: Offset[] = [];
  for (const [index, { since, ms }] of hours.entries()) {
    if (index === 0) found.push({ since, ms });
    else found.push(...(await changes(zone, { from: since - 60 * MINUTE, to: since, minutes: 1 })).slice(1));
  }
  return found;
}

/** The offset at the beginning, and each that follows. */
function changes(
  zone: ZoneName,
  { from, to, minutes }: { from: number; to: number; minutes: number },
): Promise<Offset[]> {
  const sql = `
    SELECT since::float8 * 1000 AS since, ms::float8 * 1000 AS ms FROM (
      SELECT extract(epoch FROM t) AS since, extract(epoch FROM t AT TIME ZONE $1) - extract(epoch FROM t) AS ms,
             lag(extract(epoch FROM t AT TIME ZONE $1) - extract(epoch FROM t)) OVER (ORDER BY t) AS before
      FROM generate_series(to_timestamp($2::float8 / 1000), to_timestamp($3::float8 / 1000),
                           $4 * interval '1 minute') AS t) AS offsets
    WHERE before IS DISTINCT FROM ms ORDER BY since`;
  return db.rows<Offset>(adhoc(sql), [zone, from, to, minutes]);
}

/** The same, by a library with its own tables. */
function offsetsByLibrary(zone: ZoneName): Offset[] {
  const { offsets: west = [], untils = [] } = moment.tz.zone(zone) ?? {};
  const found: Offset[] = [];
  for (const [index, minutes] of west.entries()) {
    const until = untils[index] ?? Number.POSITIVE_INFINITY;
    const since = Math.max(untils[index - 1] ?? Number.NEGATIVE_INFINITY, FROM - 3 * DAY);
    const ms = 0 - minutes * MINUTE;
    // Some entries change only the name of the time.
    if (until > FROM - 3 * DAY && since <= TO + 3 * DAY && found.at(-1)?.ms !== ms) found.push({ since, ms });
  }
  return found;
}

/** The minutes of the day that an expression of minute and hours names. */
function minutesOfDay(expression: string): ReadonlySet<number> {
  const [minute = "", hours = ""] = expression.split(" ");
  const named = hours === "*" ? Array.from({ length: 24 }, (_, hour) => hour) : hours.split(",").map(Number);
  return new Set(named.map((hour) => hour * 60 + Number(minute)));
}

/** By zone: fires in (FROM, TO] of each expression, from one walk through the years. */
const walks = new Map<ZoneName, ReadonlyMap<string, number[]>>();

function walked(zone: ZoneName, expression: string): number[] {
  const walk = walks.get(zone) ?? walkThrough(zone);
  walks.set(zone, walk);
  return walk.get(expression) ?? [];
}

function walkThrough(zone: ZoneName): ReadonlyMap<string, number[]> {
  const all = [...DAILY, ...HOURLY].map((expression) => ({ expression, fires: [] as number[] }));
  // The expressions that name a minute of the day, as bits: a single test excludes most minutes.
  const daily = bitsOf(DAILY, 0);
  const hourly = bitsOf(HOURLY, DAILY.length);
  const list = offsets.get(zone) ?? [];
  // In minutes from here on.
  let at = (FROM - DAY) / MINUTE;
  let furthest = Number.NEGATIVE_INFINITY;
  for (const [index, { ms }] of list.entries()) {
    const change = Math.min(list[index + 1]?.since ?? Number.POSITIVE_INFINITY, TO + MINUTE) / MINUTE;
    for (; at < change; at++) {
      const shown = at + ms / MINUTE;
      let fired = hourly[shown % 1_440] as number;
      // Every minute that the clock passed: one normally, many at a jump, none during a repeated hour.
      if (shown > furthest) {
        const begin = furthest === Number.NEGATIVE_INFINITY ? shown : furthest + 1;
        for (let minute = begin; minute <= shown; minute++) fired |= daily[minute % 1_440] as number;
        furthest = shown;
      }
      if (fired === 0 || at * MINUTE <= FROM) continue;
      for (const [bit, { fires }] of all.entries()) if (fired & (1 << bit)) fires.push(at * MINUTE);
    }
  }
  return new Map(all.map(({ expression, fires }) => [expression, fires]));
}

/** By minute of the day, the expressions that name it. */
function bitsOf(expressions: readonly string[], firstBit: number): Uint8Array {
  const bits = new Uint8Array(1_440);
  for (const [index, expression] of expressions.entries())
    for (const minute of minutesOfDay(expression))
      bits[minute] = (bits[minute] ?? 0) | (1 << (firstBit + index));
  return bits;
}

describe.each(Object.entries(ZONES) as [ZoneName, number][])("%s", (zone, least) => {
  it("has the expected number of clock changes", () => {
    expect((offsets.get(zone)?.length ?? 0) - 1).toBeGreaterThanOrEqual(least);
    if (least === 0) expect(offsets.get(zone)).toHaveLength(1);
    expect(offsets.get(zone)).toEqual(offsetsByLibrary(zone));
  });

  it.each([...DAILY, ...HOURLY])("%s: no gap, no double", (expression) => {
    const cron = new Cron(expression, zone);
    const fires: number[] = [];
    const periods = HOURLY.includes(expression) ? aroundChanges(zone) : [{ from: FROM, to: TO }];
    for (const { from, to } of periods)
      for (let at = cron.next(from); at <= to; at = cron.next(at)) fires.push(at);
    const expected = walked(zone, expression).filter((at) =>
      periods.some(({ from, to }) => at > from && at <= to),
    );
    const wrong = expected.findIndex((at, i) => at !== fires[i]);
    // Shows the first difference only.
    expect(wrong === -1 ? null : { expected: iso(expected[wrong]), got: iso(fires[wrong]) }).toBeNull();
    expect(fires).toHaveLength(expected.length);
    expect(expected.length).toBeGreaterThan(HOURLY.includes(expression) ? 700 : 5_470);
  });

  it("daily: every day that the zone had has its run, each with its own date", () => {
    const schedule = { kind: "cron", expression: "30 2 * * *", timezone: zone, style: "interval" } as const;
    const window = { start: FROM, end: null, catchup: true };
    const lengths = new Map<number, number>();
    const apart: string[] = [];
    let last: DueRun | null = null;
    for (;;) {
      const run: DueRun | null = nextRun(schedule, window, { last, now: TO });
      if (run === null || run.runAfter > TO) break;
      // Periods are adjacent: a gap would be processed never, an overlap twice.
      if (last !== null && run.intervalStart !== last.intervalEnd) apart.push(iso(run.intervalStart));
      const hours = (run.intervalEnd - run.intervalStart) / (60 * MINUTE);
      lengths.set(hours, (lengths.get(hours) ?? 0) + 1);
      last = run;
    }
    expect(apart).toEqual([]);
    const normal = lengths.get(24) ?? 0;
    const others = [...lengths.values()].reduce((sum, n) => sum + n, 0) - normal;
    expect(normal).toBeGreaterThan(5_300);
    expect(others).toBeLessThanOrEqual(2 * (offsets.get(zone)?.length ?? 0));
    if (least === 0) expect(others).toBe(0);
  });
});

/** All hours between changes are alike: tests the first month, and two days before and after each change. */
function aroundChanges(zone: ZoneName): { from: number; to: number }[] {
  const changes = (offsets.get(zone) ?? [])
    .map(({ since }) => since)
    .filter((since) => since > FROM && since < TO);
  const days = changes.map((since) => ({ from: since - 2 * DAY, to: Math.min(since + 2 * DAY, TO) }));
  const apart = days.filter(({ from }, index) => from > FROM + 31 * DAY && from > (days[index - 1]?.to ?? 0));
  return [{ from: FROM, to: FROM + 31 * DAY }, ...apart];
}

function iso(at: number | undefined): string {
  return at === undefined ? "none" : new Date(at).toISOString();
}
