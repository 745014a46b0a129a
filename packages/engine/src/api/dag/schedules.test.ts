/** Schedules in the API, and their errors. */
import type { ScheduleManifest } from "@tradewind/sdk/manifest";
import { beforeAll, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

const berlin = {
  kind: "cron",
  expression: "0 9 * * *",
  timezone: "Europe/Berlin",
  style: "trigger",
} as const;
const tokyo = { ...berlin, timezone: "Asia/Tokyo" } as const;
const days = ["2027-01-01", "2027-02-01", "2027-03-01", "2027-04-01"].map((day) => `${day}T00:00:00.000Z`);
const SCHEDULES: Readonly<Record<string, ScheduleManifest>> = {
  closings: { kind: "dates", dates: days },
  single: { kind: "dates", dates: days.slice(0, 1) },
  markets: { kind: "several", of: [berlin, tokyo, { kind: "dates", dates: days.slice(0, 1) }] },
  one_zone: { kind: "several", of: [berlin, { ...berlin, expression: "0 17 * * *" }] },
  own: { kind: "timetable", name: "WorkingDays", args: { hour: 8 } },
};

beforeAll(async () => {
  tw = await Installation.open();
  for (const [dagId, schedule] of Object.entries(SCHEDULES))
    await tw.addDag(manifestOf(dagId, [{ taskId: "a" }], { schedule, pauseAfterFailures: 4 }));
});

test.each([
  ["closings", "4 dates", `At ${days.slice(0, 3).join(", ")} and 1 more`, true],
  ["single", days[0], `At ${days[0]}`, true],
  [
    "markets",
    `0 9 * * *, 0 9 * * *, ${days[0]}`,
    `At 09:00, every day, Europe/Berlin; or At 09:00, every day, Asia/Tokyo; or At ${days[0]}`,
    true,
  ],
  ["own", "WorkingDays", "By the timetable WorkingDays of its file", false],
])("shows %s as %s", async (dagId, summary, description, isBackfillable) => {
  expect((await tw.call("GET", `/dags/${dagId}`)).json()).toMatchObject({
    timetable_summary: summary,
    timetable_description: description,
    timetable_periodic: true,
    is_backfillable: isBackfillable,
    max_consecutive_failed_dag_runs: 4,
    pause_reason: null,
    schedule_error: null,
  });
});

test("shows the time zone if all schedules share it", async () => {
  expect((await tw.call("GET", "/dags/one_zone/details")).json().timezone).toBe("Europe/Berlin");
  expect((await tw.call("GET", "/dags/markets/details")).json().timezone).toBe("UTC");
});

test("filters DAGs by the kind of schedule, also by Airflow's names", async () => {
  const found = async (type: string) =>
    (await tw.call("GET", `/dags?timetable_type=${type}`))
      .json()
      .dags.map((dag: { dag_id: string }) => dag.dag_id);
  expect(await found("dates")).toEqual(["closings", "single"]);
  expect(await found("airflow.timetables.events.EventsTimetable")).toEqual(["closings", "single"]);
  expect(await found("timetable")).toEqual(["own"]);
  expect(await found("MultipleCronTriggerTimetable")).toEqual(["markets", "one_zone"]);
});

test("shows the error code of a timetable and the time of the next attempt", async () => {
  const error = { code: "NO_CALENDAR", message: "no calendar", at: "2026-01-01T00:00:00.000Z" };
  await tw.sql(
    `INSERT INTO dag_timetable (dag_id, failures, ask_at, error)
     VALUES ('own', 3, '2030-01-01T00:00:00Z', '${JSON.stringify(error)}')`,
  );
  const shown = { ...error, failures: 3, next_try: "2030-01-01T00:00:00.000Z" };
  expect((await tw.call("GET", "/dags/own")).json().schedule_error).toEqual(shown);
  const listed = (await tw.call("GET", "/dags?dag_id_prefix_pattern=own")).json().dags;
  expect(listed[0].schedule_error).toEqual(shown);
});

test("shows the pause reason until a user pauses or unpauses the DAG", async () => {
  await tw.sql("UPDATE dag SET is_paused = true, pause_reason = 'it failed' WHERE dag_id = 'own'");
  expect((await tw.call("GET", "/dags/own")).json()).toMatchObject({
    is_paused: true,
    pause_reason: "it failed",
  });
  const kept = (await tw.call("PATCH", "/dags?dag_id_prefix_pattern=own", { is_paused: true })).json().dags;
  expect(kept[0]).toMatchObject({ is_paused: true, pause_reason: "it failed" });
  const changed = (await tw.call("PATCH", "/dags?dag_id_prefix_pattern=own", { is_paused: false })).json()
    .dags;
  expect(changed[0]).toMatchObject({ is_paused: false, pause_reason: null });
  expect((await tw.call("GET", "/dags/own")).json()).toMatchObject({ is_paused: false, pause_reason: null });
});

test("names the pause reason of the DAG in `why`", async () => {
  await tw.addRun("single", { runId: "waiting", state: "queued" });
  await tw.sql("UPDATE dag SET is_paused = true, pause_reason = 'it failed' WHERE dag_id = 'single'");
  const why = (await tw.call("GET", "/dags/single/dagRuns/waiting/taskInstances/a/why")).json();
  expect(JSON.stringify(why)).toContain('DAG \\"single\\" is paused (it failed)');
});

test("accepts a backfill of date lists and several schedules", async () => {
  const dryRun = (dag_id: string) =>
    tw.call("POST", "/backfills/dry_run", {
      dag_id,
      from_date: "2026-06-01T00:00:00Z",
      to_date: "2026-06-02T00:00:00Z",
    });
  const listed = await dryRun("markets");
  expect(listed.statusCode).toBe(200);
  const dates = listed.json().backfills.map((date: { logical_date: string }) => date.logical_date);
  expect(dates).toEqual(["2026-06-01T00:00:00.000Z", "2026-06-01T07:00:00.000Z", "2026-06-02T00:00:00.000Z"]);
});

test("shows the next ten runs in the details", async () => {
  await tw.sql("UPDATE dag SET next_logical_date = $1, next_run_after = $1 WHERE dag_id = 'one_zone'", [
    new Date("2126-03-01T08:00:00Z"),
  ]);
  expect((await tw.call("GET", "/dags/one_zone/details")).json()).toMatchObject({
    timetable_description: "At 09:00, every day, Europe/Berlin; or At 17:00, every day, Europe/Berlin",
    next_runs: [
      { logical_date: "2126-03-01T08:00:00.000Z", run_after: "2126-03-01T08:00:00.000Z" },
      { run_after: "2126-03-01T16:00:00.000Z" },
      { run_after: "2126-03-02T08:00:00.000Z" },
      { run_after: "2126-03-02T16:00:00.000Z" },
      { run_after: "2126-03-03T08:00:00.000Z" },
      ...["03T16", "04T08", "04T16", "05T08", "05T16"].map((at) => ({
        run_after: `2126-03-${at}:00:00.000Z`,
      })),
    ],
  });
  expect((await tw.call("GET", "/dags/own/details")).json().next_runs).toEqual([]);
});
