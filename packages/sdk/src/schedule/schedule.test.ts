import { expect, test } from "vitest";
import { DagDefinitionError } from "../check/errors.ts";
import { continuous, cron, dates, every, on, once, scheduleManifest } from "./schedule.ts";

test("returns frozen values", () => {
  expect(cron("0 2 * * *", "Europe/Berlin")).toEqual({
    kind: "cron",
    expression: "0 2 * * *",
    timezone: "Europe/Berlin",
    style: "trigger",
  });
  expect(cron("*/5 * * * * *", undefined, { style: "interval" })).toMatchObject({
    timezone: "UTC",
    style: "interval",
  });
  expect(every("10m")).toEqual({ kind: "interval", everyMs: 600_000, style: "trigger" });
  expect(every(1000, { style: "interval" })).toMatchObject({ everyMs: 1000, style: "interval" });
  expect(once()).toEqual({ kind: "once" });
  expect(continuous()).toEqual({ kind: "continuous" });
  for (const schedule of [cron("0 2 * * *"), every("1s"), once()])
    expect(Object.isFrozen(schedule)).toBe(true);
});

test.each([
  [null, { kind: "none" }],
  [undefined, { kind: "none" }],
  ["@once", { kind: "once" }],
  ["@continuous", { kind: "continuous" }],
  ["@daily", { kind: "cron", expression: "0 0 * * *", timezone: "UTC", style: "trigger" }],
  ["@quarterly", { kind: "cron", expression: "0 0 1 */3 *", timezone: "UTC", style: "trigger" }],
  ["5 4 * * MON-FRI", { kind: "cron", expression: "5 4 * * MON-FRI", timezone: "UTC", style: "trigger" }],
])("parses the option %j", (option, manifest) => {
  expect(scheduleManifest(option, "schedule")).toEqual(manifest);
});

test("sorts dates in any form", () => {
  const schedule = dates([new Date("2027-04-01T08:00:00Z"), "2027-01-04T09:00:00+01:00", "2026-12-31"]);
  expect(schedule).toEqual({
    kind: "dates",
    dates: ["2026-12-31T00:00:00.000Z", "2027-01-04T08:00:00.000Z", "2027-04-01T08:00:00.000Z"],
  });
  expect(scheduleManifest(schedule, "schedule")).toEqual(schedule);
  expect(Object.isFrozen(schedule)).toBe(true);
});

test("combines a list of schedules, and unwraps a list of one", () => {
  const moments = dates(["2027-01-04T08:00:00Z"]);
  expect(
    scheduleManifest([cron("0 2 * * *", "Europe/Berlin"), "@weekly", every("6h"), moments], "x"),
  ).toEqual({
    kind: "several",
    of: [
      { kind: "cron", expression: "0 2 * * *", timezone: "Europe/Berlin", style: "trigger" },
      { kind: "cron", expression: "0 0 * * 0", timezone: "UTC", style: "trigger" },
      { kind: "interval", everyMs: 21_600_000, style: "trigger" },
      moments,
    ],
  });
  expect(scheduleManifest([moments], "x")).toEqual(moments);
});

test.each([
  [() => dates([]), /dates\(\): give a list of 1 to 10000 moments, got 0 of them/],
  [() => dates("2027-01-04" as never), /give a list of 1 to 10000 moments, got "2027-01-04"/],
  [() => dates(["tomorrow"]), /"tomorrow" is not a moment; give a Date/],
  [() => dates(["2027-01-04T08:00"]), /is not a moment/],
  [() => dates(["2027-01-04", "2027-01-04T01:00:00+01:00"]), /2027-01-04T00:00:00.000Z appears twice/],
  [() => dates(Array(10_001).fill("2027-01-04")), /got 10001 of them/],
  [() => scheduleManifest([], "schedule"), /schedule: the list is empty/],
  [() => scheduleManifest([every("1h"), once()], "schedule"), /schedule\[1\]: a list takes cron\(\).*"once"/],
  [() => scheduleManifest([[every("1h"), every("2h")]], "schedule"), /not a schedule of the kind "several"/],
  [
    () => scheduleManifest([cron("0 2 * * *", "UTC", { style: "interval" })], "schedule"),
    /schedule\[0\]: style "interval" has no meaning in a list/,
  ],
  [() => scheduleManifest({ kind: "timetable", name: "X", args: null }, "schedule"), /is not a schedule/],
  [() => cron("0 2 * *"), /"0 2 \* \*" is not a cron expression; write five fields/],
  [() => cron("0 2 * * $"), /not a cron expression/],
  [() => cron("0 2 * * *", "Mars/Base"), /unknown time zone "Mars\/Base"/],
  [() => every(0), /must be more than 0/],
  [() => scheduleManifest("@dayly", 'dag "x"'), /dag "x": unknown preset "@dayly"; use one of @once/],
  [() => scheduleManifest(5, 'dag "x"'), /5 is not a schedule; use cron\(\)/],
  [() => scheduleManifest({ kind: "sometimes" }, 'dag "x"'), /is not a schedule/],
  [() => scheduleManifest({ kind: "cron", expression: "x" }, 'dag "x"'), /not a cron expression/],
])("rejects an invalid schedule: %s", (make, message) => {
  expect(make).toThrow(DagDefinitionError);
  expect(make).toThrow(message);
});

test("rejects an invalid argument of on() with the remedy", () => {
  expect(() => on("a" as never)).toThrow(
    'on() takes a signal, a condition of signals or assets, or a trigger, got "a"; declare a signal with signal("a")',
  );
  expect(() => on(7 as never)).toThrow("or a trigger, got 7");
});
