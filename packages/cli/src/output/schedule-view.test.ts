import { afterEach, expect, it } from "vitest";
import type { DagDetails } from "../client/resources.ts";
import { assetLines, catchupText, nextRunLines, scheduleWords } from "./schedule-view.ts";
import { showDatesIn } from "./when.ts";

afterEach(() => showDatesIn("UTC"));

const details = (more: Partial<DagDetails>) =>
  ({
    is_paused: false,
    is_stale: false,
    schedule_error: null,
    asset_expression: null,
    next_dagrun_run_after: null,
    next_runs: [],
    start_date: null,
    catchup: false,
    timezone: "UTC",
    timetable_summary: null,
    timetable_description: null,
    ...more,
  }) as DagDetails;

it("shows a schedule as written and in words", () => {
  const cron = {
    timezone: "Europe/Berlin",
    timetable_summary: "0 2 * * 1-5",
    timetable_description: "At 02:00, Monday to Friday, Europe/Berlin",
  };
  expect(scheduleWords(details(cron))).toBe(
    "0 2 * * 1-5 (Europe/Berlin)\nAt 02:00, Monday to Friday, Europe/Berlin",
  );
  expect(scheduleWords(details({}))).toBe("none: runs are started manually or by other DAGs");
});

it("lists the next dates in the time zone of --tz, with a note while the DAG is paused", () => {
  const next_runs = ["2126-01-01T01:00:00.000Z", "2126-01-02T01:00:00.000Z"].map((run_after) => ({
    run_after,
    logical_date: run_after,
  }));
  expect(nextRunLines(details({ next_runs }))).toBe(
    "2126-01-01 01:00:00Z  2126-01-01\n2126-01-02 01:00:00Z  2126-01-02",
  );
  showDatesIn("Europe/Berlin");
  expect(nextRunLines(details({ next_runs, is_paused: true }))).toBe(
    "none while it is paused; the dates of its schedule:\n2126-01-01 02:00:00+01:00\n2126-01-02 02:00:00+01:00",
  );
  expect(nextRunLines(details({}))).toBeNull();
});

it("shows the logical date and the due time if they differ", () => {
  const next_runs = [{ logical_date: "2126-01-01T00:00:00.000Z", run_after: "2126-01-02T00:00:00.000Z" }];
  expect(nextRunLines(details({ next_runs }))).toBe(
    "2126-01-01 00:00:00Z  due 2126-01-02 00:00:00Z  2126-01-02",
  );
  const passed = { logical_date: "2026-01-01T00:00:00.000Z", run_after: "2026-01-02T00:00:00.000Z" };
  expect(nextRunLines(details({ next_runs: [passed] }))).toMatch(/ {2}now$/);
});

it("shows the start of the dates and the catchup setting", () => {
  const start_date = "2026-01-01T00:00:00.000Z";
  const timetable_summary = "@daily";
  expect(catchupText(details({ timetable_summary, start_date, catchup: true }))).toBe(
    "from 2026-01-01 00:00:00Z, catchup: one run for each missed date",
  );
  expect(catchupText(details({ timetable_summary, start_date }))).toBe(
    "from 2026-01-01 00:00:00Z, no catchup",
  );
  expect(catchupText(details({ start_date }))).toBeNull();
});

it("shows which assets of a condition have changed since the last run", () => {
  const orders = { asset: { uri: "s3://orders" } };
  const customers = { asset: { uri: "s3://customers" } };
  const asset_expression = {
    any: [{ all: [orders, customers] }, { time: {} }, { alias: { name: "extracts" } }],
  };
  const created_at = new Date(Date.now() - 120_000).toISOString();
  const queued = [{ uri: "s3://orders", events: 3, created_at }];
  expect(assetLines(details({ asset_expression }), queued)).toBe(`any of
  all of
    ✓ s3://orders  arrived 2 m ago (3 events)
    … s3://customers
  … its time
  … alias extracts`);
  expect(assetLines(details({ asset_expression: { all: [orders] } }), [])).toBe("… s3://orders");
  expect(assetLines(details({}), [])).toBeNull();
});
