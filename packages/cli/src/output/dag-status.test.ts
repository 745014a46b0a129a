import { expect, it } from "vitest";
import type { Dag } from "../client/resources.ts";
import { dagStatus, lastRunText, scheduleText } from "./dag-status.ts";

const dag = (more: Partial<Dag>) =>
  ({ is_paused: false, is_stale: false, schedule_error: null, last_run: null, ...more }) as Dag;
const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();

it("names the status of a DAG", () => {
  expect(dagStatus(dag({}))).toBe("active");
  expect(dagStatus(dag({ is_paused: true }))).toBe("paused");
  expect(dagStatus(dag({ is_paused: true, is_stale: true }))).toBe("removed");
});

it("shows the time zone of a schedule unless it is UTC", () => {
  expect(scheduleText(dag({ timetable_summary: "0 2 * * *", timezone: "Asia/Tokyo" }))).toBe(
    "0 2 * * * (Asia/Tokyo)",
  );
  expect(scheduleText(dag({ timetable_summary: "0 2 * * *", timezone: "UTC" }))).toBe("0 2 * * *");
  expect(scheduleText(dag({ timetable_summary: null, timezone: "UTC" }))).toBeNull();
});

it("shows the age of the latest run's state", () => {
  const run = { dag_run_id: "r", queued_at: ago(7200), start_date: ago(600), end_date: ago(300) };
  expect(lastRunText(dag({ last_run: { ...run, state: "failed" } }))).toBe("failed 5 m ago");
  expect(lastRunText(dag({ last_run: { ...run, state: "running", end_date: null } }))).toBe("running 10 m");
  const queued = { ...run, state: "queued", start_date: null, end_date: null };
  expect(lastRunText(dag({ last_run: queued }))).toBe("queued 2 h ago");
  expect(lastRunText(dag({}))).toBeNull();
});
