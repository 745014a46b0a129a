import { expect, it } from "vitest";
import { briefTime } from "./format.ts";
import { timeOfId } from "./run-time.ts";

it("finds the time in a generated run id only", () => {
  const at = Date.parse("2026-11-16T02:00:05.123Z");
  expect(timeOfId("manual__2026-11-16T02:00:05.123Z_4f1c2d3e")).toBe(at);
  expect(timeOfId("scheduled__2026-11-16T02:00:05.123Z")).toBe(at);
  expect(timeOfId("event__4f1c2d3e")).toBeNull();
  expect(timeOfId("broken")).toBeNull();
  expect(timeOfId("manual__2026-99-16T02:00:05Z")).toBeNull();
});

it("shortens a time to the clock of today, or to day and minute", () => {
  const at = Date.parse("2026-11-16T02:00:05Z");
  expect(briefTime(at, at + 3_600_000, "UTC")).toBe("02:00:05");
  expect(briefTime(at, at + 86_400_000, "UTC")).toBe("16 Nov 02:00");
});
