import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { dag } from "../author/dag.ts";
import { DagDefinitionError } from "../check/errors.ts";
import { type DueCall, type DueOutcome, PROGRAM } from "../runtime/program.ts";
import { every } from "./schedule.ts";
import { type Due, Timetable, type TimetableQuery } from "./timetable.ts";

const HOUR = 3_600_000;
const at = (text: string) => Date.parse(text);
const NOW = at("2027-01-04T12:30:00Z");

class Hourly extends Timetable<{ everyHours: number }> {
  next({ last, start, now }: TimetableQuery): Date {
    const step = this.args.everyHours * HOUR;
    const after = last?.logicalDate.getTime() ?? (start ?? now).getTime() - 1;
    return new Date((Math.floor(after / step) + 1) * step);
  }
}

/** Returns the given answers. */
class Fixed extends Timetable<null> {
  readonly #answer: (question: TimetableQuery) => unknown;

  constructor(answer: (question: TimetableQuery) => unknown) {
    super(null);
    this.#answer = answer;
  }

  next(question: TimetableQuery): Due {
    return this.#answer(question) as Due;
  }
}

function ask(schedule: Timetable<unknown>, call: Partial<DueCall> = {}): Promise<DueOutcome> {
  const { due } = dag("x", { schedule }, (d) => void d.task("a", () => 1))[PROGRAM];
  if (!due) throw new Error("no timetable");
  return due({ last: null, now: NOW, start: null, end: null, catchup: false, slackMs: 0, ...call });
}

/** The logical date of the answer. */
async function date(schedule: Timetable<unknown>, call: Partial<DueCall> = {}): Promise<string | null> {
  const outcome = await ask(schedule, call);
  if (!outcome.ok) throw new Error(outcome.error.message);
  return outcome.due && new Date(outcome.due.logicalDate).toISOString();
}

async function problem(answer: (question: TimetableQuery) => unknown, call: Partial<DueCall> = {}) {
  const outcome = await ask(new Fixed(answer), call);
  return outcome.ok ? null : outcome.error;
}

test("writes name and arguments to the manifest, and is missing in other DAGs", () => {
  const manifest = dag("x", { schedule: new Hourly({ everyHours: 2 }) }, (d) => void d.task("a", () => 1));
  expect(manifest[PROGRAM].describe().schedule).toEqual({
    kind: "timetable",
    name: "Hourly",
    args: { everyHours: 2 },
  });
  const other = dag("x", { schedule: every("1h") }, (d) => void d.task("a", () => 1));
  expect(other[PROGRAM]).not.toHaveProperty("due");
});

test("rejects arguments that are not JSON when the DAG is defined", () => {
  class Odd extends Timetable<{ at: unknown }> {
    next() {
      return null;
    }
  }
  const define = () => dag("x", { schedule: new Odd({ at: () => 1 }) }, (d) => void d.task("a", () => 1));
  expect(define).toThrow(DagDefinitionError);
  expect(define).toThrow(/schedule: Odd: args.at/);
});

describe("start, end and catchup", () => {
  const start = at("2027-01-04T09:30:00Z");
  const hourly = new Hourly({ everyHours: 1 });
  const run = (text: string) => {
    const logicalDate = at(text);
    return { logicalDate, intervalStart: logicalDate, intervalEnd: logicalDate };
  };

  test("returns every run with catchup, and otherwise the newest that is due", async () => {
    expect(await date(hourly, { start, catchup: true })).toBe("2027-01-04T10:00:00.000Z");
    expect(await date(hourly, { start })).toBe("2027-01-04T12:00:00.000Z");
    const last = run("2027-01-04T10:00:00Z");
    expect(await date(hourly, { start, last, catchup: true })).toBe("2027-01-04T11:00:00.000Z");
    expect(await date(hourly, { start, last })).toBe("2027-01-04T12:00:00.000Z");
    expect(await date(hourly, { start, last: run("2027-01-04T12:00:00Z") })).toBe("2027-01-04T13:00:00.000Z");
  });

  test("treats a run within the slack as not missed", async () => {
    const last = run("2027-01-04T11:00:00Z");
    expect(await date(hourly, { start, last, now: NOW + HOUR })).toBe("2027-01-04T13:00:00.000Z");
    expect(await date(hourly, { start, last, now: NOW + HOUR, slackMs: 2 * HOUR })).toBe(
      "2027-01-04T12:00:00.000Z",
    );
  });

  test("skips answers before the start and ends after the end", async () => {
    const fromEpoch = new Fixed(({ last }) => new Date((last?.logicalDate.getTime() ?? -HOUR) + HOUR));
    expect(await date(fromEpoch, { start: 10 * HOUR + 1, catchup: true })).toBe("1970-01-01T11:00:00.000Z");
    expect(await date(hourly, { start, end: start })).toBeNull();
    expect(await date(hourly, { start, end: at("2027-01-04T11:00:00Z") })).toBe("2027-01-04T11:00:00.000Z");
  });

  test("ends at null", async () => {
    expect(await date(new Fixed(() => null))).toBeNull();
    const once = new Fixed(({ last }) => (last === null ? "2027-01-01" : null));
    expect(await date(once)).toBe("2027-01-01T00:00:00.000Z");
    expect(await date(once, { last: run("2027-01-01T00:00:00Z") })).toBeNull();
  });
});

test("matches an interval from the epoch for any step", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 0, max: 400 * HOUR }),
      fc.integer({ min: 0, max: 400 * HOUR }),
      fc.boolean(),
      async (everyHours, from, after, catchup) => {
        const step = everyHours * HOUR;
        const first = Math.ceil(from / step) * step;
        const newest = Math.max(first, Math.floor((from + after) / step) * step);
        const call = { start: from, now: from + after, catchup };
        const expected = new Date(catchup ? first : newest).toISOString();
        expect(await date(new Hourly({ everyHours }), call)).toBe(expected);
      },
    ),
    { numRuns: 200 },
  );
});

test("accepts a data interval, which makes the run due at its end, or another due time", async () => {
  const dataInterval = { start: new Date("2027-01-04T00:00:00Z"), end: "2027-01-05T00:00:00Z" };
  const facts = {
    logicalDate: at("2027-01-04"),
    intervalStart: at("2027-01-04"),
    intervalEnd: at("2027-01-05"),
  };
  const logicalDate = "2027-01-04";
  expect(await ask(new Fixed(() => ({ logicalDate, dataInterval })))).toEqual({
    ok: true,
    due: { ...facts, runAfter: at("2027-01-05") },
  });
  expect(await ask(new Fixed(() => ({ logicalDate, dataInterval, runAfter: "2027-01-06" })))).toEqual({
    ok: true,
    due: { ...facts, runAfter: at("2027-01-06") },
  });
});

test.each([
  [() => undefined, /next\(\) returned undefined; return \{ logicalDate \}, a moment, or null/],
  [() => 5, /next\(\) returned 5/],
  [() => ({}), /next\(\) returned an empty object/],
  [() => "soon", /the logicalDate "soon"; give a Date/],
  [() => new Date(Number.NaN), /the logicalDate/],
  [async () => "2027-01-01", /returned a promise; it must return synchronously/],
  [() => ({ logicalDate: "2027-01-01", dataInterval: null }), /the dataInterval.start undefined/],
  [
    () => ({ logicalDate: "2027-01-01", dataInterval: { start: "2027-01-02", end: "2027-01-01" } }),
    /ends before it starts/,
  ],
])("rejects an invalid answer: %s", async (answer, message) => {
  expect(await problem(answer)).toMatchObject({ code: "TW_TIMETABLE_ANSWER" });
  expect((await problem(answer))?.message).toMatch(message);
});

test("rejects an answer that is not later than the last run", async () => {
  const last = { logicalDate: NOW, intervalStart: NOW, intervalEnd: NOW };
  const error = await problem(() => new Date(NOW), { last });
  expect(error?.code).toBe("TW_TIMETABLE_ANSWER");
  expect(error?.message).toMatch(/is not after the last run's 2027-01-04T12:30:00.000Z/);
});

test("keeps name and code of a thrown error", async () => {
  const thrown = Object.assign(new RangeError("no calendar"), { code: "NO_CALENDAR" });
  const error = await problem(() => {
    throw thrown;
  });
  expect(error).toMatchObject({ name: "RangeError", message: "no calendar", code: "NO_CALENDAR" });
});

describe("jitter and pauseAfterFailures", () => {
  const manifest = (options: object) =>
    dag("x", options, (d) => void d.task("a", () => 1))[PROGRAM].describe();

  test("are in the manifest only if they are set", () => {
    const used = manifest({ schedule: every("1h"), jitter: "30s", pauseAfterFailures: 3 });
    expect(used).toMatchObject({ jitterMs: 30_000, pauseAfterFailures: 3 });
    const plain = manifest({ schedule: every("1h"), jitter: 0 });
    expect(plain).not.toHaveProperty("jitterMs");
    expect(plain).not.toHaveProperty("pauseAfterFailures");
  });

  test.each([
    [{ jitter: "30s" }, /jitter needs a schedule by time.*, not "none"/],
    [{ schedule: "@continuous", jitter: "30s" }, /not "continuous"/],
    [{ pauseAfterFailures: 3 }, /pauseAfterFailures counts scheduled runs/],
    [
      { schedule: every("1h"), pauseAfterFailures: 0 },
      /pauseAfterFailures must be a whole number of 1 or more/,
    ],
    [{ schedule: every("1h"), jitter: "soon" }, /jitter/],
  ])("are rejected for schedules that do not support them: %j", (options, message) => {
    expect(() => manifest(options)).toThrow(message);
  });
});
