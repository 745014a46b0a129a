/** The timeline of a run in the REST API. Its rules are tested with the model, and its reading with the web UI. */
import { beforeAll, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

const START = Date.parse("2026-03-01T00:00:00Z");
const at = (second: number) => new Date(START + second * 1000);
const iso = (second: number) => at(second).toISOString();
const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
const inMap = (mapId: string, parent: string | null, over: object) =>
  ({ mapId, parent, over, limit: null }) as never;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(
    manifestOf(
      "etl",
      [
        { taskId: "a" },
        { taskId: "outer.b", upstream: ["a"], map: "outer", group: "outer" },
        { taskId: "outer.c", upstream: ["outer.b"], map: "outer.c", group: "outer" },
        { taskId: "d", upstream: ["outer.c"] },
      ],
      {
        groups: [{ groupId: "outer", parent: null, docs: null }],
        maps: [
          inMap("outer", null, { kind: "output", taskId: "a" }),
          inMap("outer.c", "outer", { kind: "output", taskId: "outer.b" }),
        ],
      },
    ),
  );
  const run = await tw.addRun("etl", { runId: "r", state: "failed", startedAt: at(0), endedAt: at(100) });
  const add = async (taskId: string, [from, to]: [number, number], facts: object = {}) => {
    const attempt = uuid(from * 1000 + to);
    const times = { startedAt: at(from), endedAt: at(to) };
    await tw.addInstance(run, taskId, { state: "success", tryNumber: 1, attempt, ...times, ...facts });
    await tw.sql("UPDATE task_instance SET scheduled_at = $2, queued_at = $2 WHERE attempt = $1", [
      attempt,
      at(from),
    ]);
  };
  await add("a", [0, 10]);
  // The items of the inner map of item 0 are 0 and 1, those of item 1 are 2 and 3.
  await tw.sql(
    `INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length)
     VALUES ($1, 'outer', -1, 0, 2), ($1, 'outer.c', 0, 0, 2), ($1, 'outer.c', 1, 2, 2)`,
    [run],
  );
  await add("outer.b", [10, 40], { mapIndex: 0 });
  await add("outer.b", [11, 20], { mapIndex: 1 });
  await add("outer.c", [41, 50], { mapIndex: 0 });
  await add("outer.c", [41, 51], { mapIndex: 1 });
  await add("outer.c", [20, 90], { mapIndex: 2 });
  await add("outer.c", [22, 30], { mapIndex: 3 });
  await add("d", [92, 99], { state: "failed" });
  await tw.addRun("etl", { runId: "waiting", state: "queued" });
});

const timeline = async (run: string, query = "") =>
  (await tw.call("GET", `/dags/etl/dagRuns/${run}/timeline${query}`)).json();

it("shows the critical path through maps in maps, in seconds", async () => {
  const answer = await timeline("r");
  expect(answer).toMatchObject({
    ...{ dag_id: "etl", dag_run_id: "r", state: "failed", start_date: iso(0), end_date: iso(100) },
    ...{ usual: null, usual_runs: 0, projection: null },
    time: { work: 10 + 9 + 70 + 7, queue: 0, wait: 0, overhead: 1 + 2 + 1 },
  });
  const step = (task_id: string, map_index: number, [from, to]: number[], overhead: number) => ({
    ...{ task_id, map_index, start_date: iso(from!), end_date: iso(to!), queue: 0, wait: 0, overhead },
    work: to! - from! - overhead,
  });
  expect(answer.critical_path).toMatchObject([
    { ...step("a", -1, [0, 10], 0), after: "run" },
    { ...step("outer.b", 1, [10, 20], 1), after: "upstream" },
    step("outer.c", 2, [20, 90], 0),
    step("d", -1, [90, 99], 2),
  ]);
});

it("shows the intervals of instances in topological order", async () => {
  const { task_instances: instances, tasks } = await timeline("r");
  expect(tasks.map((task: { task_id: string; instances: number }) => [task.task_id, task.instances])).toEqual(
    [
      ["a", 1],
      ["outer.b", 2],
      ["outer.c", 4],
      ["d", 1],
    ],
  );
  expect(tasks[2]).toMatchObject({ start_date: iso(20), end_date: iso(90), usual: null });
  expect(
    instances.map((each: { task_id: string; map_index: number }) => `${each.task_id} ${each.map_index}`),
  ).toEqual([
    ...["a -1", "outer.b 0", "outer.b 1", "outer.c 0", "outer.c 1", "outer.c 2", "outer.c 3", "d -1"],
  ]);
  expect(instances.at(-1)).toEqual({
    ...{ task_id: "d", map_index: -1, rendered_map_index: null, state: "failed", try_number: 1 },
    intervals: [
      { state: "running", try_number: 1, start_date: iso(92), end_date: iso(99), next_state: "failed" },
    ],
  });
});

it("shows some instances of large maps, and always the one that ended last", async () => {
  const { critical_path: path, task_instances: instances } = await timeline("r", "?map_limit=1");
  expect(
    instances.map((each: { task_id: string; map_index: number }) => `${each.task_id} ${each.map_index}`),
  ).toEqual([...["a -1", "outer.b 0", "outer.c 0", "outer.c 2", "d -1"]]);
  expect(path.at(-2)).toMatchObject({ task_id: "outer.c", map_index: 2 });
  expect((await tw.call("GET", "/dags/etl/dagRuns/r/timeline?map_limit=3000")).statusCode).toBe(422);
});

it("has no times for a run that has not started", async () => {
  expect(await timeline("waiting")).toMatchObject({
    ...{ start_date: null, time: null, critical_path: [], task_instances: [] },
    projection: { path: ["a", "outer.b", "outer.c", "d"] },
  });
  expect((await tw.call("GET", "/dags/etl/dagRuns/none/timeline")).statusCode).toBe(404);
});
