import { expect, test } from "vitest";
import { DagDefinitionError } from "./errors.ts";
import { continuous, cron, every, once, scheduleManifest } from "./schedule.ts";

test("the schedule functions make frozen values", () => {
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
])("the option %j is understood", (option, manifest) => {
  expect(scheduleManifest(option, "schedule")).toEqual(manifest);
});

test.each([
  [() => cron("0 2 * *"), /"0 2 \* \*" is not a cron expression; write five fields/],
  [() => cron("0 2 * * $"), /not a cron expression/],
  [() => cron("0 2 * * *", "Mars/Base"), /unknown time zone "Mars\/Base"/],
  [() => every(0), /must be more than 0/],
  [() => scheduleManifest("@dayly", 'dag "x"'), /dag "x": unknown preset "@dayly"; use one of @once/],
  [() => scheduleManifest(5, 'dag "x"'), /5 is not a schedule; use cron\(\)/],
  [() => scheduleManifest({ kind: "sometimes" }, 'dag "x"'), /is not a schedule/],
  [() => scheduleManifest({ kind: "cron", expression: "x" }, 'dag "x"'), /not a cron expression/],
])("a bad schedule is refused: %s", (make, message) => {
  expect(make).toThrow(DagDefinitionError);
  expect(make).toThrow(message);
});
