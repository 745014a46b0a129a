import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { seedJob } from "../../../test/support/catalogue-seed.ts";
import { artefactHash } from "../../code/artefact-hash.ts";
import { BundleCache } from "../../code/bundle-cache.ts";
import { TimetableDates } from "../../plan/timetable-dates.ts";
import { readLatestFacts } from "../../store/plan/latest-run.ts";
import { createApi } from "../server/api.ts";

let tw: Installation;

const day = (n: number) => new Date(Date.UTC(2020, 0, n));

beforeAll(async () => {
  tw = await Installation.open();
  const schedule = { kind: "cron", expression: "0 0 * * *", timezone: "UTC", style: "trigger" } as const;
  await tw.addDag(
    manifestOf("daily", [{ taskId: "a" }, { taskId: "b" }], {
      schedule,
      paramsSchema: { type: "object", properties: { region: { type: "string" } } },
    }),
  );
  await tw.addDag(manifestOf("chained", [{ taskId: "a", dependsOnPast: true }], { schedule }));
  await tw.addDag(
    manifestOf("minutely", [{ taskId: "a" }], { schedule: { ...schedule, expression: "* * * * *" } }),
  );
  await tw.addDag(manifestOf("manual", [{ taskId: "a" }]));
  await tw.addRun("daily", { runId: "good", state: "success", logicalDate: day(2) });
  await tw.addRun("daily", { runId: "bad", state: "failed", logicalDate: day(3) });
  await tw.addRun("daily", { runId: "busy", state: "running", logicalDate: day(4) });
});

const body = { dag_id: "daily", from_date: "2020-01-01T00:00:00Z", to_date: "2020-01-05T00:00:00Z" };
const make = async (more: object = {}) => (await tw.call("POST", "/backfills", { ...body, ...more })).json();

describe("backfills", () => {
  test("are created, listed and read with Airflow's and additional fields", async () => {
    const made = await tw.call("POST", "/backfills", body);
    expect(made.statusCode).toBe(200);
    expect(made.json()).toMatchObject({
      dag_id: "daily",
      from_date: "2020-01-01T00:00:00.000Z",
      to_date: "2020-01-05T00:00:00.000Z",
      dag_run_conf: null,
      is_paused: false,
      reprocess_behavior: "none",
      max_active_runs: 10,
      completed_at: null,
      dag_display_name: "daily",
      state: "running",
      run_backwards: false,
      stop_on_failure: false,
      run_on_latest_version: true,
      total_runs: 5,
      created_by: "admin",
    });
    const { id } = made.json();
    expect(tw.changes.at(-1)).toEqual({ kind: "backfill_changed", backfillId: id });
    const { first_date, last_date, ...shown } = made.json();
    expect([first_date, last_date]).toEqual([shown.from_date, shown.to_date]);
    expect((await tw.call("GET", `/backfills/${id}`)).json()).toEqual(shown);
    const listed = (await tw.call("GET", "/backfills?dag_id=daily&active=true&order_by=-id")).json();
    expect(listed.backfills[0]).toEqual(shown);
    expect((await tw.call("GET", "/backfills?dag_id=chained")).json().total_entries).toBe(0);
    expect((await tw.call("GET", `/backfills/${id}/progress`)).json()).toMatchObject({
      backfill: { id },
      runs: { total: 5, finished: 0 },
      tasks: { total: 10, finished: 0 },
      percent: 0,
      eta: null,
    });
  });

  test("are created once per Idempotency-Key", async () => {
    const key = { "idempotency-key": "january" };
    const [one, two] = [
      await tw.call("POST", "/backfills", body, key),
      await tw.call("POST", "/backfills", body, key),
    ];
    expect(two.json()).toEqual(one.json());
    expect(two.headers["idempotency-replayed"]).toBe("true");
  });

  test.each([
    ["none", ["created", "kept", "kept", "awaited", "created"]],
    ["failed", ["created", "kept", "cleared", "awaited", "created"]],
    ["completed", ["created", "cleared", "cleared", "awaited", "created"]],
  ])("previews each date in a dry run with reprocess %s", async (reprocess, actions) => {
    const answer = await tw.call("POST", "/backfills/dry_run", { ...body, reprocess_behavior: reprocess });
    const { backfills, total_entries } = answer.json();
    expect(total_entries).toBe(5);
    expect(backfills.map((each: { action: string }) => each.action)).toEqual(actions);
    expect(backfills[0]).toMatchObject({
      logical_date: "2020-01-01T00:00:00.000Z",
      partition_key: null,
      partition_date: null,
    });
  });

  test("begins a backwards dry run with the last date", async () => {
    const { backfills } = (
      await tw.call("POST", "/backfills/dry_run", { ...body, run_backwards: true })
    ).json();
    expect(backfills[0].logical_date).toBe("2020-01-05T00:00:00.000Z");
  });

  test("are paused, resumed, changed and cancelled", async () => {
    const { id } = await make({ dag_run_conf: { region: "eu" } });
    expect((await tw.call("PUT", `/backfills/${id}/pause`)).json()).toMatchObject({
      is_paused: true,
      state: "paused",
      waits_because: "the backfill is paused",
    });
    expect((await tw.call("PUT", `/backfills/${id}/unpause`)).json().is_paused).toBe(false);
    const changed = await tw.call("PATCH", `/backfills/${id}`, { max_active_runs: 2, stop_on_failure: true });
    expect(changed.json()).toMatchObject({ max_active_runs: 2, stop_on_failure: true });
    const cancelled = await tw.call("PUT", `/backfills/${id}/cancel`);
    expect(cancelled.json()).toMatchObject({ state: "cancelled", completed_at: expect.any(String) });
    for (const [method, to] of [
      ["PUT", "/pause"],
      ["PUT", "/cancel?let_finish=true"],
      ["PATCH", ""],
    ] as const) {
      const answer = await tw.call(method, `/backfills/${id}${to}`, method === "PATCH" ? {} : undefined);
      expect(answer.statusCode).toBe(409);
      expect(answer.json().detail).toContain(`Backfill ${id} is cancelled`);
    }
    const deeds = (await tw.call("GET", "/eventLogs?dag_id=daily&order_by=-id&limit=5")).json().event_logs;
    expect(deeds.map((each: { event: string }) => each.event)).toEqual([
      "cancel_backfill",
      "patch_backfill",
      "unpause_backfill",
      "pause_backfill",
      "create_backfill",
    ]);
  });

  test("include whole days in the time zone of the schedule", async () => {
    const expression = "30 23 * * *";
    const schedule = { kind: "cron", expression, timezone: "America/New_York", style: "trigger" } as const;
    await tw.addDag(manifestOf("late", [{ taskId: "a" }], { schedule }));
    const range = { dag_id: "late", from_date: "2020-01-01", to_date: "2020-01-02" };
    const dry = (await tw.call("POST", "/backfills/dry_run", range)).json();
    expect(dry).toMatchObject({
      total_entries: 2,
      from_date: "2020-01-01T05:00:00.000Z",
      to_date: "2020-01-03T04:59:59.999Z",
      first_date: "2020-01-02T04:30:00.000Z",
      last_date: "2020-01-03T04:30:00.000Z",
    });
    expect((await tw.call("POST", "/backfills", range)).json()).toMatchObject({
      from_date: dry.from_date,
      to_date: dry.to_date,
      total_runs: 2,
    });
    const wrong = await tw.call("POST", "/backfills", { ...range, to_date: "2020-02-30" });
    expect(wrong.json().detail).toMatchObject([
      { loc: ["body", "to_date"], msg: expect.stringContaining("ISO 8601") },
    ]);
  });

  test("names the reason if no runs start", async () => {
    const { id } = await make();
    expect((await tw.call("GET", `/backfills/${id}`)).json().waits_because).toMatch(
      /no scheduler has picked it up/,
    );
    await tw.call("PATCH", "/dags/daily", { is_paused: true });
    expect((await tw.call("GET", `/backfills/${id}`)).json().waits_because).toBe("the DAG is paused");
    await tw.call("PATCH", "/dags/daily", { is_paused: false });
  });

  test("names the run that it waits for", async () => {
    const { id } = await make();
    const reason = async () => (await tw.call("GET", `/backfills/${id}`)).json().waits_because;
    await tw.sql("UPDATE backfill SET owner_job = $2 WHERE id = $1", [id, await seedJob(tw.database)]);
    await tw.sql(
      `INSERT INTO backfill_date (backfill_id, ordinal, logical_date, action, dag_run_id)
       SELECT $1, 0, logical_date, 'awaited', id FROM dag_run WHERE run_id = 'busy'`,
      [id],
    );
    expect(await reason()).toBe(null);
    await tw.sql("UPDATE backfill SET next_date = NULL WHERE id = $1", [id]);
    expect(await reason()).toBe(
      "run busy, started outside of the backfill, is running; see `tradewind runs show daily busy`",
    );
  });

  test.each([
    [{ dag_id: "missing" }, 404, /missing/],
    [{ dag_id: "manual" }, 422, /manual.* has no time-based schedule/],
    [{ to_date: "2019-01-01T00:00:00Z" }, 422, /ends before it starts/],
    [{ from_date: "2020-01-01T01:00:00Z", to_date: "2020-01-01T02:00:00Z" }, 422, /no date in this range/],
    [{ from_date: "2100-01-01T00:00:00Z", to_date: "2100-02-01T00:00:00Z" }, 422, /no date in this range/],
    [{ dag_id: "chained", run_backwards: true }, 422, /cannot be backfilled backwards/],
    [{ max_active_runs: 0 }, 422, /./],
    [{ reprocess_behavior: "all" }, 422, /./],
    [{ dag_run_conf: { region: 7 } }, 422, /string/],
  ])("rejects %j with %i", async (wrong, status, why) => {
    for (const to of ["/backfills", "/backfills/dry_run"]) {
      const answer = await tw.call("POST", to, { ...body, ...wrong });
      expect(answer.statusCode).toBe(status);
      expect(JSON.stringify(answer.json().detail)).toMatch(why);
    }
  });

  test("rejects a range with too many dates", async () => {
    const wrong = { dag_id: "minutely", to_date: "2021-01-01T00:00:00Z" };
    const answer = await tw.call("POST", "/backfills", { ...body, ...wrong });
    expect(answer.statusCode).toBe(422);
    expect(JSON.stringify(answer.json())).toMatch(/more than 100000 dates/);
  });

  test("returns 404 for unknown backfills", async () => {
    for (const [method, to] of [
      ["GET", ""],
      ["GET", "/progress"],
      ["PUT", "/pause"],
      ["PUT", "/cancel"],
    ] as const)
      expect((await tw.call(method, `/backfills/999999${to}`)).statusCode).toBe(404);
  });
});

describe("backfill of a custom timetable", () => {
  /** Every 36 hours after the last run; throws for unknown dates. */
  const program = `export default { [Symbol.for("tradewind.program")]: { protocol: 1, describe: () => ({ dagId: "own" }),
    async due({ last, start, end }) {
      const at = (last?.logicalDate ?? start) + ${36 * 3_600_000};
      if (at > Date.UTC(2020, 5)) return { ok: false, error: { name: "Error", message: "no calendar", stack: null, code: "NO_CALENDAR" } };
      return { ok: true, due: at > end ? null : { logicalDate: at, intervalStart: at, intervalEnd: at, runAfter: at } };
    } } };`;
  let folder: string;
  let timetables: TimetableDates;
  let app: Awaited<ReturnType<typeof createApi>>;
  let post: (to: string, body: object) => Promise<{ status: number; json: Record<string, unknown> }>;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tradewind-backfills-"));
    timetables = new TimetableDates({
      bundles: new BundleCache(folder, async () => ({ code: program, sharedChunk: null })),
    });
    app = await createApi({ ...tw.options, timetables });
    const schedule = { kind: "timetable", name: "Own", args: null } as const;
    await tw.addDag(manifestOf("own", [{ taskId: "a" }], { schedule }), "", artefactHash(program));
    await tw.addRun("own", {
      runId: "last",
      state: "success",
      logicalDate: new Date("2019-12-30T07:00:00Z"),
    });
    await tw.sql("UPDATE dag_run SET run_type = 'scheduled' WHERE run_id = 'last'");
    const headers = { authorization: `Bearer ${tw.token}` };
    post = async (to, payload) => {
      const answer = await app.inject({ method: "POST", url: `/api/v2/backfills${to}`, headers, payload });
      return { status: answer.statusCode, json: answer.json() };
    };
  });
  afterAll(async () => {
    await app.close();
    await timetables.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test("continues after the last scheduled run and stores its dates", async () => {
    const wish = { ...body, dag_id: "own", run_backwards: true };
    const dates = ["2020-01-03T19:00:00.000Z", "2020-01-02T07:00:00.000Z"];
    const dry = (await post("/dry_run", wish)).json as { backfills: { logical_date: string }[] };
    expect(dry.backfills.map((date) => date.logical_date)).toEqual(dates);
    const made = (await post("", wish)).json;
    expect(made).toMatchObject({ dag_id: "own", total_runs: 2, run_backwards: true });
    const [row] = await tw.sql<{ schedule: { dues: number[][] }; next_date: Date }>(
      "SELECT * FROM backfill WHERE id = $1",
      [made.id],
    );
    expect(row?.next_date.toISOString()).toBe(dates[0]);
    expect(row?.schedule.dues).toEqual(dates.map((date) => [Date.parse(date)]));
    expect(made).toMatchObject({ first_date: dates[1], last_date: dates[0] });
    const hasLater = async (date = "") => {
      const run = await tw.addRun("own", { logicalDate: new Date(date) });
      await tw.sql("UPDATE dag_run SET backfill_id = $2 WHERE id = $1", [run, made.id]);
      return (await readLatestFacts(tw.database, run))?.has_later;
    };
    expect(await hasLater(dates[0])).toBe(false);
    expect(await hasLater(dates[1])).toBe(true);
  });

  test("is rejected with the error code, and if this server cannot evaluate timetables", async () => {
    const wish = { ...body, dag_id: "own", to_date: "2020-07-01T00:00:00Z" };
    const { status, json } = await post("/dry_run", wish);
    expect(status).toBe(422);
    expect(json.detail).toMatchObject([{ loc: ["body", "dag_id"], type: "NO_CALENDAR" }]);
    expect((await tw.call("POST", "/backfills", wish)).statusCode).toBe(409);
  });
});
