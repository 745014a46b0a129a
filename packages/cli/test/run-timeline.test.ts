/** `runs show --timeline`, against a real server with rows written by the test. */
import { beforeAll, expect, it } from "vitest";
import { manifestOf } from "../../engine/test/api/installation.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

let served: ServedInstallation;

const START = Date.parse("2026-03-01T02:00:00Z");
const at = (second: number) => new Date(START + second * 1000);
const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
const map = {
  mapId: "load_part",
  parent: null,
  over: { kind: "output", taskId: "plan" },
  limit: null,
} as const;

beforeAll(async () => {
  served = await servedInstallation();
  const { server } = served;
  await server.addDag(
    manifestOf(
      "etl",
      [
        { taskId: "plan", retries: 1 },
        { taskId: "load_part", upstream: ["plan"], map: "load_part" },
        { taskId: "audit", upstream: ["plan"] },
        { taskId: "report_to_the_finance_department", upstream: ["load_part", "audit"] },
        { taskId: "escalate", upstream: ["audit"], rule: "oneFailed" },
      ],
      { maps: [map] },
    ),
  );
  const times = { runAfter: at(0), startedAt: at(0), endedAt: at(100) };
  const run = await server.addRun("etl", { runId: "first", state: "success", ...times });
  const add = async (
    taskId: string,
    [ready, queued, started, ended]: [number, number, number, number],
    mapIndex = -1,
  ) => {
    const attempt = uuid(started * 10 + mapIndex + 2);
    const facts = { mapIndex, state: "success", attempt, startedAt: at(started), endedAt: at(ended) };
    await server.addInstance(run, taskId, { ...facts, tryNumber: taskId === "plan" ? 2 : 1 });
    await server.sql("UPDATE task_instance SET scheduled_at = $2, queued_at = $3 WHERE attempt = $1", [
      ...[attempt, at(ready), at(queued)],
    ]);
    return attempt;
  };
  await add("plan", [30, 30, 30, 40]);
  await server.sql(
    `INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, scheduled_at, queued_at, started_at, ended_at, retry_at)
     VALUES ($1, $2, 'plan', -1, 1, 'failed', $3, $3, $3, $4, $5)`,
    [uuid(1), run, at(0), at(10), at(30)],
  );
  await server.sql(
    "INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length) VALUES ($1, 'load_part', -1, 0, 3)",
    [run],
  );
  for (const item of [0, 1, 2])
    await add("load_part", [40, 40 + 10 * item, 40 + 10 * item, 60 + 10 * item], item);
  const audit = await add("audit", [40, 41, 42, 75]);
  await server.sql(
    `INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, kind, kwargs, on_timeout, on_failure, deferred_at, ended_at)
     VALUES ($1, $2, 'audit', -1, 1, 7, 'test', '{}', 'fail', 'fail', $3, $4)`,
    [audit, run, at(50), at(75)],
  );
  await add("report_to_the_finance_department", [80, 90, 92, 100]);
  await server.addInstance(run, "escalate", { state: "skipped", endedAt: at(75) });
});

it("draws the intervals of each task, and says where the time went", async () => {
  const { code, stderr, stdout } = await served.on80Columns("runs", "show", "etl", "first", "--timeline");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.split("\n").every((line) => line.length <= 80)).toBe(true);
  expect(stdout).toMatchInlineSnapshot(`
    "took 1 m 40 s
    work 48.0 s 48 % · queue 32.0 s 32 % · wait 20.0 s 20 % · overhead 0 ms 0 %
    critical path: plan → load_part[2] → report_to_the_finance_department

    TASK                          0                            1 m 40 s       TOOK
    * plan                        xxxx~~~~~~~████                           40.0 s
    * load_part ×3                              █···████████████            40.0 s
      audit                                     ·████▒▒▒▒▒▒▒▒▒              35.0 s
    * report_to_the_finance_dep…                               ····░███     20.0 s
      escalate                                                             skipped
    · waits for a slot   ░ queued   ▒ deferred   ~ waits for a retry   █ ran
    x failed try   * on the critical path
    "
  `);
});

it("prints the API's answer as JSON", async () => {
  const { stdout } = await served.tw("runs", "show", "etl", "first", "--timeline", "--json");
  expect(JSON.parse(stdout)).toMatchObject({
    dag_run_id: "first",
    time: { work: 48, queue: 32, wait: 20, overhead: 0 },
    critical_path: [{ task_id: "plan" }, { task_id: "load_part", map_index: 2 }, { after: "upstream" }],
  });
});

it("shows what is expected of a run that has not ended", async () => {
  const { server } = served;
  const now = Date.now();
  const run = await server.addRun("etl", {
    runId: "second",
    state: "running",
    startedAt: new Date(now - 5000),
  });
  await server.addInstance(run, "plan", {
    ...{ state: "running", tryNumber: 1, attempt: uuid(7), startedAt: new Date(now - 4000) },
  });
  for (const taskId of ["load_part", "audit", "report_to_the_finance_department", "escalate"])
    await server.addInstance(run, taskId);
  const { stdout } = await served.on80Columns("runs", "show", "etl", "second", "--timeline");
  expect(stdout).toMatch(/^so far \d\.\d s, usually 1 m 40 s \(the last successful run\)$/m);
  expect(stdout).toMatch(/^expected end: .*Z or later$/m);
  expect(stdout).toMatch(/^\* plan {2,}▓+□+ +running$/m);
  expect(stdout).toMatch(/^ {2}report_to_the_finance_dep… +□+$/m);
  await server.addRun("etl", { runId: "third", state: "queued" });
  expect((await served.tw("runs", "show", "etl", "third", "--timeline")).stdout).toMatch(
    /^The run has not started\.\nexpected end: /,
  );
});
