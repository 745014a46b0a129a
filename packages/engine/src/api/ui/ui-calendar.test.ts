/** The runs of a DAG by day. */
import { beforeAll, describe, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

const HOUR = 3_600_000;
const schedule = {
  kind: "cron",
  expression: "0 0,12 * * *",
  timezone: "Europe/Berlin",
  style: "trigger",
} as const;
const when = (iso: string) => new Date(iso);

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("daily", [{ taskId: "a" }], { schedule }));
  const add = (runId: string, state: string, logical: string | null, hours: number | null, due = logical) => {
    const start = when(due!);
    const ended = hours !== null && { endedAt: new Date(start.getTime() + hours * HOUR) };
    const dates = {
      runAfter: start,
      startedAt: start,
      ...(logical !== null && { logicalDate: when(logical) }),
    };
    return tw.addRun("daily", { runId, state, ...dates, ...ended });
  };
  // The clocks of Berlin go forward on 29 March 2026: 22:30Z on the 28th is 23:30, on the 29th 00:30 of the next day.
  await add("before", "success", "2026-03-28T22:30:00Z", 1);
  await add("first", "success", "2026-03-28T23:00:00Z", 2);
  await add("second", "failed", "2026-03-29T10:00:00Z", 3);
  await add("third", "success", "2026-03-29T21:59:59Z", 0.5);
  await add("after", "running", "2026-03-29T22:30:00Z", null);
  await add("manual", "success", null, 4, "2026-03-29T12:00:00Z");
  await add("late", "queued", "2026-03-30T10:00:00Z", null, "2026-05-01T00:00:00Z");
  await tw.sql(
    "UPDATE dag SET next_logical_date = $1, next_interval_start = $1, next_interval_end = $1, next_run_after = $1 WHERE dag_id = 'daily'",
    [when("2099-12-30T11:00:00Z")],
  );
});

const calendar = async (query: string, dag = "daily") => tw.call("GET", `/ui/dags/${dag}/calendar${query}`);

describe("/ui/dags/{dag_id}/calendar", () => {
  it("counts the runs of each day in the zone of the schedule, by logical date", async () => {
    expect((await calendar("?from=2026-03-28&to=2026-03-30")).json()).toEqual({
      zone: "Europe/Berlin",
      days: ["2026-03-28", "2026-03-29", "2026-03-30"],
      queued: [0, 0, 1],
      running: [0, 0, 1],
      success: [1, 3, 0],
      failed: [0, 1, 0],
      longest: [HOUR, 4 * HOUR, null],
      run_ids: ["before", "second", "late"],
      planned: [0, 0, 0],
      is_partial: false,
    });
  });

  it("counts them in another zone", async () => {
    const answer = (await calendar("?from=2026-03-28&to=2026-03-30&zone=utc")).json();
    expect(answer).toMatchObject({ zone: "UTC", success: [2, 2, 0], failed: [0, 1, 0], running: [0, 1, 0] });
  });

  it("shows planned runs", async () => {
    const answer = (await calendar("?from=2099-12-29&to=2100-01-01")).json();
    expect(answer.planned).toEqual([0, 1, 2, 2]);
    await tw.addDag(manifestOf("by_hand", [{ taskId: "a" }]));
    const { days, planned } = (await calendar("", "by_hand")).json();
    expect([days.length, new Set(planned)]).toEqual([365, new Set([0])]);
  });

  it("rejects ranges and zones that it cannot show", async () => {
    for (const query of [
      "?from=2026-01-02&to=2026-01-01",
      "?from=2020-01-01&to=2026-01-01",
      "?from=2026-02-30",
      "?from=2026-01-01T10:00:00Z",
      "?zone=Mars/Olympus",
    ])
      expect([query, (await calendar(query)).statusCode]).toEqual([query, 422]);
    expect((await calendar("", "none")).statusCode).toBe(404);
  });
});
