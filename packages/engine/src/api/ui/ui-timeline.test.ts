/** The timeline of a run: what each task did when, in columns. */
import { beforeAll, describe, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;
let big: number;

const START = Date.parse("2026-03-01T00:00:00Z");
const at = (second: number) => new Date(START + second * 1000);
const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

beforeAll(async () => {
  tw = await Installation.open();
  const map = { mapId: "part", parent: null, over: { kind: "output", taskId: "a" }, limit: null } as const;
  await tw.addDag(
    manifestOf(
      "etl",
      [
        { taskId: "g.last", group: "g", upstream: ["part", "b"] },
        { taskId: "part", upstream: ["a"], map: "part" },
        { taskId: "b", upstream: ["a"], pool: "io" },
        { taskId: "a" },
      ],
      { groups: [{ groupId: "g", parent: null, docs: null }], maps: [map] },
    ),
  );
  const run = await tw.addRun("etl", { runId: "r1", state: "running", runAfter: at(0), startedAt: at(0) });
  await tw.addInstance(run, "a", { state: "success", tryNumber: 2, attempt: uuid(2), endedAt: at(30) });
  await tw.sql(
    `UPDATE task_instance SET scheduled_at = $2, queued_at = $2, started_at = $3, attempt_started_at = $3 WHERE dag_run_id = $1`,
    [run, at(20), at(21)],
  );
  await tw.sql(
    `INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, scheduled_at, queued_at, started_at, ended_at, retry_at)
     VALUES ($1, $2, 'a', -1, 1, 'failed', $3, $4, $4, $5, $6)`,
    [uuid(1), run, at(0), at(2), at(10), at(20)],
  );
  await tw.addInstance(run, "b", { state: "deferred", tryNumber: 1, attempt: uuid(3), startedAt: at(31) });
  await tw.sql(
    `INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, kind, kwargs, on_timeout, on_failure, scheduled_at, deferred_at)
     VALUES ($1, $2, 'b', -1, 1, 7, 'test', '{}', 'fail', 'fail', $3, $4)`,
    [uuid(3), run, at(30), at(31)],
  );
  await expand(run, 5);
  await tw.addInstance(run, "gone", { state: "skipped" });
  await tw.addInstance(run, "g.last");
  big = await tw.addRun("etl", { runId: "big", state: "success", startedAt: at(0), endedAt: at(900) });
  await expand(big, 3000);
});

async function expand(run: number, length: number): Promise<void> {
  await tw.sql(
    "INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length) VALUES ($1, 'part', -1, 0, $2)",
    [run, length],
  );
  await tw.sql(
    `INSERT INTO task_instance (dag_run_id, task_id, map_index, state, try_number, attempt, pool, pool_slots, queue, priority_weight,
       operator, scheduled_at, queued_at, started_at, attempt_started_at, ended_at)
     SELECT $1, 'part', i, CASE WHEN i = 1 THEN 'failed' ELSE 'success' END, 1, gen_random_uuid(), 'default_pool', 1, 'default', 1, 'task',
       t, t, t + interval '1 second', t + interval '1 second', t + interval '2 seconds' + CASE WHEN i = $2 - 2 THEN interval '1 hour' ELSE '0' END
     FROM generate_series(0, $2 - 1) AS i, LATERAL (SELECT $3::timestamptz + i * interval '1 second' AS t) AS b`,
    [run, length, at(40)],
  );
  if (length === 5)
    await tw.sql(
      "INSERT INTO map_label (dag_run_id, task_id, map_index, label) VALUES ($1, 'part', 0, 'eu')",
      [run],
    );
}

const bytesOf = (column: string) => [...Buffer.from(column, "base64")];
const timeline = async (query = "", run = "r1") =>
  (await tw.call("GET", `/ui/dags/etl/runs/${run}/timeline${query}`)).json();

/** The columns as rows. */
function rowsOf(answer: Awaited<ReturnType<typeof timeline>>) {
  const { instances, intervals, interval_kinds: kinds, task_states: states } = answer;
  const names = [...answer.tasks.map((task: { task_id: string }) => task.task_id), ...answer.removed];
  const [instanceStates, tries] = [bytesOf(instances.states), bytesOf(instances.tries)];
  const [kindBytes, next] = [bytesOf(intervals.kinds), bytesOf(intervals.next)];
  let place = 0;
  return instances.tasks.map((task: number, index: number) => ({
    task: names[task],
    map: instances.map_indexes[index],
    state: states[instanceStates[index]!],
    tries: tries[index],
    intervals: Array.from({ length: instances.intervals[index] }, () => {
      const row = [
        kinds[kindBytes[place]!],
        intervals.starts[place],
        intervals.ends[place],
        states[next[place]!],
      ];
      place++;
      return row;
    }),
  }));
}

describe("/ui/dags/{dag_id}/runs/{run_id}/timeline", () => {
  it("shows the intervals of all tries, the groups and the edges", async () => {
    const answer = await timeline();
    expect(answer).toMatchObject({
      origin: START,
      run: { run_id: "r1", state: "running", started: START, ended: null, version: 1 },
      removed: ["gone"],
      groups: [{ group_id: "g", parent: null }],
      more: false,
    });
    expect(answer.now).toBeGreaterThan(START);
    const names = answer.tasks.map(
      (task: { task_id: string; pool: string }) => `${task.task_id} ${task.pool}`,
    );
    expect(names).toEqual(["a default_pool", "part default_pool", "b io", "g.last default_pool"]);
    const edges = answer.edges.from.map((from: number, place: number) => `${from}-${answer.edges.to[place]}`);
    expect(edges.sort()).toEqual(["0-1", "0-2", "1-3", "2-3"]);
    const rows = rowsOf(answer);
    expect(rows[0]).toEqual({
      ...{ task: "a", map: -1, state: "success", tries: 2 },
      intervals: [
        ["scheduled", 0, 2000, "queued"],
        ["running", 2000, 10_000, "failed"],
        ["up_for_retry", 10_000, 20_000, "scheduled"],
        ["queued", 20_000, 21_000, "running"],
        ["running", 21_000, 30_000, "success"],
      ],
    });
    expect(rows.find(({ task }: { task: string }) => task === "b")?.intervals).toEqual([
      ["scheduled", 30_000, 31_000, "deferred"],
      ["deferred", 31_000, null, "none"],
    ]);
    expect(rows.filter(({ task }: { task: string }) => task === "part")).toHaveLength(5);
    expect(answer.instances.labels.filter(Boolean)).toEqual(["eu"]);
    expect(rows.slice(-2)).toMatchObject([
      { task: "g.last", state: "pending", intervals: [] },
      { task: "gone", state: "skipped", intervals: [] },
    ]);
    expect(answer.maps).toEqual([
      {
        at: 1,
        counts: [
          [10, 1],
          [9, 4],
        ],
        instances: 5,
        tries: 1,
        start: 40_000,
        end: 3_645_000,
        shown: 5,
      },
    ]);
  });

  it("shows the first instances of a large map, the one that ended last, and the others by task", async () => {
    const answer = await timeline("", "big");
    expect(answer.more).toBe(true);
    expect(answer.maps).toMatchObject([{ at: 1, instances: 3000, shown: 201 }]);
    const indexes = rowsOf(answer).map(({ map }: { map: number }) => map);
    expect(indexes).toEqual([...Array.from({ length: 200 }, (_, index) => index), 2998]);
    const rest = await timeline("?task_id=part&after=199&limit=2000", "big");
    expect(rowsOf(rest).map(({ map }: { map: number }) => map)).toEqual(
      Array.from({ length: 2000 }, (_, index) => index + 200),
    );
    expect(rowsOf(await timeline("?task_id=a"))).toMatchObject([{ task: "a", tries: 2 }]);
  });

  it("shows the latest attempts of a task with thousands of them", async () => {
    await tw.addInstance(big, "a", {
      state: "running",
      tryNumber: 4001,
      attempt: uuid(9),
      startedAt: at(8000),
    });
    await tw.sql(
      `INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, queued_at, started_at, ended_at)
       SELECT gen_random_uuid(), $1, 'a', -1, i, 'failed', t, t, t + interval '1 second'
       FROM generate_series(1, 4000) AS i, LATERAL (SELECT $2::timestamptz + i * interval '1 second' AS t) AS b`,
      [big, at(0)],
    );
    const [row] = rowsOf(await timeline("?task_id=a", "big"));
    expect(row.intervals).toHaveLength(101);
    expect(row.intervals[0][1]).toBe(3_901_000);
  });

  describe("of a run with a history", () => {
    let ids: number[] = [];

    /** a and b begin together, c follows them. */
    const addRun = async (n: number, [a, b, c]: [number, number, number | null], state = "success") => {
      const start = 1000 * n;
      const ended = c === null ? null : Math.max(a, b) + c;
      const times = {
        runAfter: at(start),
        startedAt: at(start),
        ...(ended !== null && { endedAt: at(start + ended) }),
      };
      const run = await tw.addRun("daily", { runId: `d${n}`, state, ...times });
      const add = async (taskId: string, from: number, to: number | null) => {
        await tw.addInstance(run, taskId, {
          ...{
            state: to === null ? "running" : "success",
            tryNumber: 1,
            attempt: uuid(run * 100 + from),
            startedAt: at(start + from),
          },
          ...(to !== null && { endedAt: at(start + to) }),
        });
        await tw.sql(
          "UPDATE task_instance SET scheduled_at = $3, queued_at = $3 WHERE dag_run_id = $1 AND task_id = $2",
          [run, taskId, at(start + from - 1)],
        );
      };
      await add("a", 2, a);
      await add("b", 3, b);
      if (c === null) await tw.addInstance(run, "c");
      else await add("c", Math.max(a, b) + 1, Math.max(a, b) + c);
      return run;
    };

    beforeAll(async () => {
      await tw.addDag(
        manifestOf("daily", [{ taskId: "a" }, { taskId: "b" }, { taskId: "c", upstream: ["a", "b"] }]),
      );
      ids = [];
      for (const [n, b] of [60, 50, 40].entries()) ids.push(await addRun(n + 1, [20, b, 11]));
      ids.push(await addRun(4, [30, 20, 5], "failed"));
    });
    const daily = async (run: string, query = "") =>
      (await tw.call("GET", `/ui/dags/daily/runs/${run}/timeline${query}`)).json();

    it("shows the critical path, whose parts add up to the time of the run", async () => {
      const { critical_path: path, projection } = await daily("d1");
      expect(projection).toBeNull();
      expect(path).toEqual({
        tasks: [1, 2],
        map_indexes: [-1, -1],
        after: ["run", "upstream"],
        starts: [0, 60_000],
        ends: [60_000, 71_000],
        work: [57_000, 10_000],
        queue: [1000, 1000],
        wait: [0, 0],
        overhead: [2000, 0],
        time: { work: 67_000, queue: 2000, wait: 0, overhead: 2000 },
      });
      const { time } = (await daily("d4")).critical_path;
      expect(time).toEqual({ work: 28_000 + 4000, queue: 2000, wait: 0, overhead: 1000 });
    });

    it("shows the usual times of the last successful runs, and another run to compare with", async () => {
      const answer = await daily("d4", "?compare=@previous");
      expect(answer.usual).toEqual({
        ...{ runs: 3, p50: 61_000, p95: 71_000 },
        tasks: [
          { p50: 18_000, p95: 18_000 },
          { p50: 47_000, p95: 57_000 },
          { p50: 10_000, p95: 10_000 },
        ],
      });
      expect(answer.compared).toEqual({
        ...{
          run_id: "d3",
          state: "success",
          version: 1,
          started: START + 3_000_000,
          ended: START + 3_051_000,
        },
        time: { work: 47_000, queue: 2000, wait: 0, overhead: 2000 },
        tasks: [19_000, 38_000, 11_000],
      });
      expect((await daily("d1", "?compare=@previous")).compared).toBeNull();
      expect((await daily("d1", "?compare=d2")).compared.run_id).toBe("d2");
      expect((await tw.call("GET", "/ui/dags/daily/runs/d1/timeline?compare=none")).statusCode).toBe(404);
    });

    it("projects the end of a run that has not ended", async () => {
      const now = Date.now();
      const run = await addRun(Math.floor((now - START) / 1_000_000) + 1, [20, 1, null], "running");
      await tw.sql(
        `UPDATE task_instance SET state = 'running', ended_at = NULL, started_at = now() - interval '7 seconds' WHERE dag_run_id = $1 AND task_id = 'b'`,
        [run],
      );
      await tw.sql("UPDATE dag_run SET started_at = now() - interval '30 seconds' WHERE id = $1", [run]);
      await tw.sql(
        `UPDATE task_instance SET scheduled_at = now() - interval '9 seconds', queued_at = now() - interval '9 seconds' WHERE dag_run_id = $1 AND task_id = 'b'`,
        [run],
      );
      const [{ run_id: runId }] = (await tw.sql<{ run_id: string }>(
        "SELECT run_id FROM dag_run WHERE id = $1",
        [run],
      )) as [{ run_id: string }];
      const { critical_path: path, now: asOf, origin, projection } = await daily(runId);
      const since = asOf - origin;
      expect(projection).toMatchObject({ tasks: [1, 2], path: [1, 2], unknown: 0 });
      expect(projection.starts[0]).toBe(since);
      const left = projection.ends[0] - since;
      expect(left).toBeGreaterThan(35_000);
      expect(left).toBeLessThanOrEqual(40_000);
      expect(projection.end).toBe(projection.ends[0] + 10_000);
      expect(projection.late_end).toBe(projection.end + 10_000);
      expect(path.tasks.at(-1)).toBe(1);
      expect(path.ends.at(-1)).toBe(since);
    });
  });

  it("answers 404 for an unknown run", async () => {
    expect((await tw.call("GET", "/ui/dags/etl/runs/none/timeline")).statusCode).toBe(404);
  });
});
