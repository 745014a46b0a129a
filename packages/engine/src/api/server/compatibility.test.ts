/** Parameters of Airflow's documented API: accepted, and applied where they have a meaning. */
import { beforeAll, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  const tasks = [{ taskId: "b", retries: 2 }, { taskId: "a", retries: 3 }, { taskId: "c" }];
  await tw.addDag(
    manifestOf("daily", tasks, {
      tags: ["alpha", "beta"],
      schedule: { kind: "cron", expression: "0 2 * * *", timezone: "UTC", style: "trigger" },
    }),
  );
  await tw.addDag(manifestOf("manual", tasks));
  const day = (n: number) => new Date(Date.UTC(2026, 0, n));
  const ended = await tw.addRun("daily", {
    runId: "r1",
    state: "success",
    startedAt: day(2),
    endedAt: day(3),
  });
  await tw.sql("UPDATE dag_run SET created_at = $2, queued_at = $2 WHERE id = $1", [ended, day(1)]);
  await tw.addInstance(ended, "a", {
    state: "success",
    startedAt: day(2),
    endedAt: day(3),
    pool: "gpu_pool",
  });
  await tw.addInstance(ended, "b", { state: "success", mapIndex: 7, startedAt: day(2), endedAt: day(2) });
  await tw.addRun("manual", { runId: "r2", state: "running" });
  await tw.addJob("scheduler");
  await tw.call("POST", "/pools", { name: "gpu/a", slots: 1 });
  await tw.call("POST", "/variables", { key: "team/url", value: "x" });
});

const KEYS: Readonly<Record<string, string>> = {
  dags: "dag_id",
  dag_runs: "dag_run_id",
  dag_versions: "dag_id",
  event_logs: "event",
  import_errors: "filename",
  jobs: "job_type",
  task_instances: "task_id",
  tasks: "task_id",
};

async function found(path: string): Promise<unknown> {
  const response = await tw.call("GET", path);
  if (response.statusCode !== 200) return `${response.statusCode}: ${response.body}`;
  const [name, rows] = Object.entries(response.json()).find(([, value]) => Array.isArray(value))!;
  return (rows as Record<string, unknown>[]).map((row) => (name === "tags" ? row : row[KEYS[name]!]));
}

const INSTANCES = "/dags/~/dagRuns/~/taskInstances";

test.each<[string, unknown[]]>([
  ["/dags?bundle_name=dags-folder", ["daily", "manual"]],
  ["/dags?bundle_name=other", []],
  ["/dags?bundle_version=none-such", []],
  ["/dags?has_asset_schedule=true", []],
  ["/dags?has_asset_schedule=false", ["daily", "manual"]],
  ["/dags?asset_dependency=s3", []],
  ["/dags?asset_dependency=", ["daily", "manual"]],
  ["/dags?is_favorite=true", []],
  ["/dags?timetable_type=cron", ["daily"]],
  ["/dags?timetable_type=airflow.timetables.trigger.CronTriggerTimetable", ["daily"]],
  ["/dags?timetable_type=airflow.timetables.interval.CronDataIntervalTimetable", []],
  ["/dags?timetable_type=NullTimetable&timetable_type=cron", ["daily", "manual"]],
  ["/dags?timetable_type=AssetTriggeredTimetable", []],
  ["/dags?order_by=-state", ["daily", "manual"]],
  ["/dags?dag_id_prefix_pattern=man|nothing", ["manual"]],
  ["/dags?dag_id_prefix_pattern=~", ["daily", "manual"]],
  ["/dagTags?tag_name_prefix_pattern=al", ["alpha"]],
  ["/dags/~/dagRuns?updated_at_lte=2026-01-04T00:00:00.000000%2B0000", ["r1"]],
  ["/dags/~/dagRuns?updated_at_gt=2026-01-04", ["r2"]],
  ["/dags/~/dagRuns?order_by=-updated_at", ["r2", "r1"]],
  ["/dags/~/dagRuns?order_by=conf&order_by=-partition_date", ["r1", "r2"]],
  ["/dags/~/dagRuns?partition_key_pattern=x", []],
  ["/dags/~/dagRuns?partition_date_gte=2026-01-01", []],
  ["/dags/~/dagRuns?consuming_asset_pattern=x", []],
  ["/dags/daily/dagVersions?bundle_name=other", []],
  ["/dags/daily/dagVersions?order_by=bundle_name", ["daily"]],
  [`${INSTANCES}?pool_name_prefix_pattern=gpu`, ["a"]],
  [`${INSTANCES}?queue_name_prefix_pattern=def&operator_name_prefix_pattern=ta`, ["a", "b"]],
  [`${INSTANCES}?rendered_map_index_pattern=7`, ["b"]],
  [`${INSTANCES}?rendered_map_index_prefix_pattern=-`, []],
  [`${INSTANCES}?updated_at_gte=2026-01-03`, ["a"]],
  ["/dags/daily/dagRuns/r1/taskInstances/b/listMapped?updated_at_lt=2026-01-03", ["b"]],
  ["/dags/daily/tasks?order_by=-retries", ["a", "b", "c"]],
  ["/dags/daily/tasks?order_by=-task_id", ["c", "b", "a"]],
  ["/importErrors?order_by=-bundle_name&bundle_name=dags-folder", []],
  ["/jobs?executor_class=LocalExecutor", []],
  ["/jobs?order_by=unixname&job_type=SchedulerJob", ["SchedulerJob"]],
  ["/eventLogs?event_prefix_pattern=create_v&order_by=extra", ["create_variable"]],
  ["/eventLogs?try_number=1", []],
  ["/eventLogs?dag_id_prefix_pattern=d&owner_prefix_pattern=a&order_by=logical_date", []],
])("returns for %s: %j", async (path, expected) => {
  expect(await found(path)).toEqual(expected);
});

test.each([
  "/variables?order_by=_val&order_by=-is_encrypted",
  "/connections?order_by=-team_name",
  "/dags/~/dagRuns/~/taskInstances/~/xcomEntries?dag_display_name_pattern=d&dag_display_name_prefix_pattern=d&run_id_prefix_pattern=r&task_id_prefix_pattern=a",
])("accepts %s", async (path) => {
  expect((await tw.call("GET", path)).statusCode).toBe(200);
});

test("finds a run by the dates in its response", async () => {
  const id = await tw.addRun("manual", { runId: "precise" });
  await tw.sql(
    `UPDATE dag_run SET started_at = '2026-02-03T04:05:06.789123Z', ended_at = '2026-02-03T04:05:07.000999Z' WHERE id = $1`,
    [id],
  );
  const run = (await tw.call("GET", "/dags/manual/dagRuns/precise")).json();
  for (const name of ["start_date", "end_date"]) {
    const at = (bound: string) => found(`/dags/manual/dagRuns?${name}_${bound}=${run[name]}`);
    expect([await at("gte"), await at("lte")], name).toEqual([["precise"], ["precise"]]);
    expect([await at("gt"), await at("lt")], name).toEqual([[], []]);
  }
  await tw.sql("DELETE FROM dag_run WHERE id = $1", [id]);
});

test("shows Airflow's closest values for signal-started runs beside our own", async () => {
  for (const by of ["signal", "trigger"]) {
    const id = await tw.addRun("manual", { runId: by });
    await tw.sql("UPDATE dag_run SET run_type = 'signal_triggered', triggered_by = $2 WHERE id = $1", [
      id,
      by,
    ]);
    expect((await tw.call("GET", `/dags/manual/dagRuns/${by}`)).json()).toMatchObject({
      run_type: "asset_triggered",
      triggered_by: "asset",
      run_kind: "signal_triggered",
    });
  }
  expect(await found("/dags/~/dagRuns?run_type=asset_triggered")).toEqual(["signal", "trigger"]);
  expect(await found("/dags/~/dagRuns?run_kind=signal_triggered")).toEqual(["signal", "trigger"]);
  expect(await found("/dags/~/dagRuns?run_type=asset_materialization")).toEqual([]);
  expect(await found("/dags/~/dagRuns?run_kind=asset_triggered")).toEqual([]);
  await tw.sql("DELETE FROM dag_run WHERE run_type = 'signal_triggered'");
});

test("ignores and names unknown query parameters of reads, and rejects those of changes", async () => {
  const read = await tw.call("GET", "/dags?brand_new=1&limit=1&s%C3%BC%C3%9F=2");
  expect(read.statusCode).toBe(200);
  expect(read.json().dags).toHaveLength(1);
  expect(read.headers["tradewind-ignored-parameters"]).toBe("brand_new, s%C3%BC%C3%9F");
  expect((await tw.call("GET", "/dags?limit=1")).headers).not.toHaveProperty("tradewind-ignored-parameters");
  const changed = await tw.call("PATCH", "/dags/daily?update_mack=is_paused", { is_paused: false });
  expect(changed.json()).toMatchObject({ status: 422, detail: [{ loc: ["query", "update_mack"] }] });
});

test("accepts slashes in names of variables and pools, encoded or not", async () => {
  for (const path of ["/variables/team/url", "/variables/team%2Furl"]) {
    expect((await tw.call("GET", path)).json()).toMatchObject({ key: "team/url" });
  }
  expect((await tw.call("PATCH", "/pools/gpu/a?update_mask=slots", { slots: 4 })).json().slots).toBe(4);
  expect((await tw.call("DELETE", "/pools/gpu/a")).statusCode).toBe(204);
});

describe("pages of growing lists", () => {
  const ids = Array.from({ length: 10 }, (_, n) => `p${n}`);

  beforeAll(async () => {
    await tw.addDag(manifestOf("paged", [{ taskId: "t" }]));
    for (const [n, runId] of ids.entries()) {
      // Every third run has no start, and starts come in pairs: an order with nulls and ties.
      const startedAt = n % 3 === 0 ? undefined : new Date(Date.UTC(2026, 1, 1 + Math.floor(n / 4)));
      const id = await tw.addRun("paged", { runId, state: "success", startedAt });
      await tw.addInstance(id, "t", { state: "success" });
    }
  });

  interface Paged {
    readonly dag_runs: { dag_run_id: string }[];
    readonly total_entries: number | null;
    readonly next_cursor: string | null;
    readonly previous_cursor: string | null;
  }

  const page = async (path: string, cursor: string) =>
    (await tw.call("GET", `${path}&cursor=${cursor}`)).json() as Paged;
  const names = ({ dag_runs }: Paged) => dag_runs.map((run) => run.dag_run_id);

  test.each(["id", "-id", "start_date", "-start_date", "-duration", "state&order_by=-start_date"])(
    "returns the same rows by cursor as by offset, ordered by %s, in both directions",
    async (order) => {
      const path = `/dags/paged/dagRuns?order_by=${order}&limit=3`;
      const whole = names((await tw.call("GET", `/dags/paged/dagRuns?order_by=${order}`)).json());
      expect(whole.toSorted()).toEqual(ids);
      const first = await page(path, "");
      expect(first).toMatchObject({ total_entries: null, previous_cursor: null });
      let at = first;
      const forth = names(first);
      while (at.next_cursor !== null) {
        at = await page(path, at.next_cursor);
        forth.push(...names(at));
      }
      expect(forth).toEqual(whole);
      const back = names(at);
      while (at.previous_cursor !== null) {
        at = await page(path, at.previous_cursor);
        back.unshift(...names(at));
      }
      expect(back).toEqual(whole);
      expect(names(at)).toEqual(names(first));
    },
  );

  test("does not shift rows if a row is deleted between pages", async () => {
    const path = "/dags/paged/dagRuns/~/taskInstances?limit=4";
    const seen = async (cursor: string) => (await tw.call("GET", `${path}&cursor=${cursor}`)).json();
    const first = await seen("");
    await tw.sql("DELETE FROM dag_run WHERE dag_id = 'paged' AND run_id = 'p0'");
    const second = await seen(first.next_cursor);
    expect(second.task_instances.map((each: { dag_run_id: string }) => each.dag_run_id)).toEqual(
      ids.slice(4, 8),
    );
  });

  test("rejects a cursor of another order", async () => {
    const { next_cursor } = await page("/dags/paged/dagRuns?limit=2", "");
    const forged = Buffer.from(JSON.stringify(["next", ["id"], ["1; drop table dag"]])).toString("base64url");
    for (const query of ["cursor=x", `order_by=-id&cursor=${next_cursor}`, `cursor=${forged}`]) {
      expect([query, (await tw.call("GET", `/dags/paged/dagRuns?${query}`)).statusCode]).toEqual([
        query,
        422,
      ]);
    }
  });

  test("returns exact totals for few rows and estimates for many, never too low for paging", async () => {
    const many = 10_500;
    await tw.addDag(manifestOf("crowd", [{ taskId: "t" }]));
    const version = (
      await tw.sql<{ id: number }>("SELECT version_id AS id FROM dag WHERE dag_id = 'crowd'")
    )[0]!;
    await tw.sql(
      `INSERT INTO dag_run (dag_id, run_id, run_type, state, version_id, triggered_by)
       SELECT 'crowd', 'c' || n, 'manual', 'success', $1, 'rest_api' FROM generate_series(1, $2::int) n`,
      [version.id, many],
    );
    await tw.sql("ANALYZE dag_run");
    const total = async (query: string) =>
      (await tw.call("GET", `/dags/crowd/dagRuns?${query}`)).json().total_entries as number;
    expect(await total("run_id_pattern=c77")).toBe(111);
    const estimate = await total("limit=1");
    expect(estimate).toBeGreaterThan(10_000);
    expect(await total(`limit=1000&offset=${many - 1000}`)).toBeGreaterThan(many);
    expect(await total(`limit=1000&offset=${many - 900}`)).toBe(many);
    expect(await total(`limit=10&offset=${many}`)).toBeLessThanOrEqual(many);
  });
});
