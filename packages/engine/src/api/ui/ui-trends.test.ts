/** Durations of a DAG and of its tasks in the latest runs. */
import { beforeAll, describe, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

const START = Date.parse("2026-03-01T00:00:00Z");
const at = (second: number) => new Date(START + second * 1000);
const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

beforeAll(async () => {
  tw = await Installation.open();
  const map = { mapId: "part", parent: null, over: { kind: "list", items: [1, 2] }, limit: null } as const;
  const tasks = [{ taskId: "last", upstream: ["part"] }, { taskId: "part", map: "part" }, { taskId: "new" }];
  await tw.addDag(manifestOf("etl", tasks, { maps: [map] }));
  for (let n = 1; n <= 4; n++) {
    const start = n * 1000;
    const times = { runAfter: at(start - n), startedAt: at(start), endedAt: at(start + 100 * n) };
    const run = await tw.addRun("etl", { runId: `r${n}`, state: n === 4 ? "failed" : "success", ...times });
    await tw.sql("UPDATE dag_run SET queued_at = $2 WHERE id = $1", [run, at(start - n)]);
    for (const mapIndex of [0, 1])
      await tw.addInstance(run, "part", {
        ...{
          mapIndex,
          state: n === 4 && mapIndex === 1 ? "failed" : "success",
          tryNumber: 1,
          attempt: uuid(n * 10 + mapIndex),
        },
        ...{ startedAt: at(start + 1 + mapIndex), endedAt: at(start + 10 * n) },
      });
    if (n === 4) {
      await tw.addInstance(run, "last", { state: "upstream_failed", endedAt: at(start + 40) });
      continue;
    }
    const attempt = uuid(n * 10 + 5);
    await tw.addInstance(run, "last", {
      ...{
        state: "success",
        tryNumber: n === 2 ? 2 : 1,
        attempt,
        startedAt: at(start + 50),
        endedAt: at(start + 50 + n),
      },
    });
    await tw.sql("UPDATE task_instance SET scheduled_at = $2, queued_at = $3 WHERE attempt = $1", [
      ...[attempt, at(start + 45), at(start + 48)],
    ]);
    if (n === 2)
      await tw.sql(
        `INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, scheduled_at, queued_at, started_at, ended_at, retry_at)
         VALUES ($1, $2, 'last', -1, 1, 'failed', $3, $3, $3, $4, $5)`,
        [uuid(99), run, at(start + 20), at(start + 30), at(start + 45)],
      );
  }
});

const read = async (path: string) => (await tw.call("GET", `/ui/dags/${path}`)).json();
const bytesOf = (column: string, names: string[]) =>
  [...Buffer.from(column, "base64")].map((byte) => names[byte]);

describe("/ui/dags/{dag_id}/durations", () => {
  it("shows the latest runs, the oldest first", async () => {
    const answer = await read("etl/durations?runs=3");
    expect(answer).toMatchObject({
      run_ids: ["r2", "r3", "r4"],
      durations: [200_000, 300_000, 400_000],
      queue: [2000, 3000, 4000],
      work: [null, null, null],
      versions: [1, 1, 1],
    });
    expect(answer.run_after[0]).toBe(START + 1_998_000);
    expect(bytesOf(answer.states, answer.state_names)).toEqual(["success", "success", "failed"]);
  });

  it("shows what a task did in them, with all tries", async () => {
    const answer = await read("etl/durations?task_id=last");
    expect(answer).toMatchObject({
      run_ids: ["r1", "r2", "r3", "r4"],
      durations: [6000, 32_000, 8000, null],
      work: [1000, 12_000, 3000, null],
      queue: [5000, 5000, 5000, null],
      wait: [0, 15_000, 0, null],
    });
    expect(bytesOf(answer.states, answer.state_names)).toEqual([
      "success",
      "success",
      "success",
      "upstream_failed",
    ]);
    const part = await read("etl/durations?task_id=part");
    expect(part).toMatchObject({ durations: [9000, 19_000, 29_000, 39_000], work: [null, null, null, null] });
    expect(bytesOf(part.states, part.state_names).at(-1)).toBe("failed");
    expect(await read("etl/durations?task_id=new")).toMatchObject({ durations: [null, null, null, null] });
  });
});

describe("/ui/dags/{dag_id}/task-trends", () => {
  it("shows the durations and failures of each task", async () => {
    const answer = await read("etl/task-trends");
    expect(answer.run_ids).toEqual(["r1", "r2", "r3", "r4"]);
    const [part, last, fresh] = answer.tasks;
    expect(part).toMatchObject({
      ...{ task_id: "part", durations: [9000, 19_000, 29_000, 39_000], p50: 19_000, p95: 29_000 },
      ...{ ended: 4, failed: 1, retried: 0 },
    });
    expect(bytesOf(part.states, answer.task_states)).toEqual(["success", "success", "success", "failed"]);
    expect(last).toMatchObject({
      ...{
        task_id: "last",
        durations: [1000, 2000, 3000, null],
        p50: 2000,
        p95: 3000,
        ended: 3,
        failed: 0,
        retried: 1,
      },
    });
    expect(fresh).toMatchObject({ durations: [null, null, null, null], p50: null, ended: 0 });
    expect(bytesOf(fresh.states, answer.task_states)).toEqual(["none", "none", "none", "none"]);
  });

  it("answers 404 for an unknown DAG, and nothing for one without runs", async () => {
    expect((await tw.call("GET", "/ui/dags/none/task-trends")).statusCode).toBe(404);
    expect((await tw.call("GET", "/ui/dags/none/durations")).statusCode).toBe(404);
    await tw.addDag(manifestOf("idle", [{ taskId: "a" }]));
    expect(await read("idle/task-trends")).toMatchObject({
      run_ids: [],
      tasks: [{ task_id: "a", states: "" }],
    });
    expect(await read("idle/durations")).toMatchObject({ run_ids: [], durations: [] });
  });
});
