import { expect, it } from "vitest";
import { calendarDays, calendarMonths, dayText, failureShare, stateOfDay } from "./calendar-days.ts";

const days = ["2026-12-30", "2026-12-31", "2027-01-01", "2027-01-02", "2027-01-03", "2027-01-04"];
const none = days.map(() => 0);
const calendar = calendarDays({
  days,
  queued: none,
  running: [0, 0, 0, 0, 1, 0],
  success: [0, 3, 5, 0, 1, 0],
  failed: [0, 1, 0, 0, 0, 0],
  planned: [0, 0, 0, 0, 0, 2],
  longest: [null, 5, 6, null, 7, null],
  run_ids: [null, "bad", "good", null, "now", null],
});

it("puts days into weeks that begin on Monday", () => {
  // 30 December 2026 is a Wednesday.
  expect(calendar.map(({ week, weekday }) => `${week}.${weekday}`)).toEqual([
    ...["0.2", "0.3", "0.4", "0.5", "0.6", "1.0"],
  ]);
  expect(calendarMonths(calendar)).toEqual([{ label: "Jan 2027", week: 0 }]);
});

it("shows the worst state of each day, and the share of failures", () => {
  expect(calendar.map(stateOfDay)).toEqual([null, "failed", "success", null, "running", "planned"]);
  expect(calendar.map(failureShare)).toEqual([0, 0.25, 0, 0, 0, 0]);
  expect(calendar.map(dayText)).toEqual([
    ...["no run", "1 failed, 3 success", "5 success", "no run", "1 running, 1 success", "2 planned"],
  ]);
});
