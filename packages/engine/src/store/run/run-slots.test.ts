/** Which runs yield a run slot, and the races. With whole schedulers: run/yielded-runs.test.ts. */
import type { TaskManifest } from "@tradewind/sdk/manifest";
import { beforeEach, expect, it } from "vitest";
import { seedDag, seedJob } from "../../../test/support/catalogue-seed.ts";
import { interleaved } from "../../../test/support/interleaved.ts";
import { NO_TASKS } from "../../../test/support/no-tasks.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { startQueuedRuns } from "./run-claim.ts";
import { makeWay } from "./run-slots.ts";

let db: Database;
let jobId: number;
let owner: number;

const TASKS = [
  { taskId: "up", upstream: [] },
  { taskId: "gated", upstream: ["up"], dependsOnPast: true },
] as unknown as TaskManifest[];

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  jobId = await seedJob(db);
  owner = await seedJob(db);
  await seedDag(db, "d", { tasks: TASKS, maxActiveRuns: 2 });
  return () => test.close();
});

/** A run of that day; a running one has completed `up` and waits. */
async function run(day: number, state: "queued" | "running", dagId = "d"): Promise<number> {
  const row = await db.one<{ id: number }>(
    adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, state, logical_date, version_id, triggered_by, owner_job, started_at)
           SELECT $1, $2::int::text, 'manual', $3, timestamptz '2020-01-01Z' + $2::int * interval '1 day', d.version_id, 'cli',
                  CASE WHEN $3 = 'running' THEN $4::bigint END, CASE WHEN $3 = 'running' THEN now() END
           FROM dag d WHERE d.dag_id = $1 RETURNING id`),
    [dagId, day, state, owner],
  );
  if (!row) throw new Error(`no run of ${dagId}`);
  if (state === "running")
    await db.rows(
      adhoc(`INSERT INTO task_instance (dag_run_id, task_id, state, pool, pool_slots, queue, priority_weight, operator)
             SELECT $1, t.task, t.state, 'default_pool', 1, 'default', 1, 'task'
             FROM (VALUES ('up', 'success'), ('gated', 'pending')) AS t(task, state)`),
      [row.id],
    );
  return row.id;
}

const way = async (on: Pick<Database, "transaction"> = db) => {
  const { started, wentBack } = await makeWay(on as Database, { jobId, columns: async () => NO_TASKS });
  return { started: started.map(({ id }) => id), wentBack };
};
const NOBODY = { started: [], wentBack: [] };
const setTask = (id: number, state: string) =>
  db.rows(adhoc("UPDATE task_instance SET state = $2 WHERE dag_run_id = $1 AND task_id = 'up'"), [id, state]);

it("gives the run slots of the latest runs to the earliest, fences their owner, and stops there", async () => {
  const running = [await run(7, "running"), await run(6, "running")];
  const queued = [await run(8, "queued"), await run(3, "queued")];
  expect(await way()).toEqual({ started: [queued[1]], wentBack: [running[0]] });
  const [back, started] = await db.rows(
    adhoc(
      "SELECT state, owner_job, generation, started_at IS NOT NULL AS began FROM dag_run WHERE id = ANY($1) ORDER BY id",
    ),
    [[running[0], queued[1]]],
  );
  expect(back).toMatchObject({ state: "queued", owner_job: null, generation: 1, began: true });
  expect(started).toMatchObject({ state: "running", owner_job: jobId, generation: 1 });
  expect(await way()).toEqual(NOBODY);
  expect(await startQueuedRuns(db, { jobId, limit: 10, columns: async () => NO_TASKS })).toEqual([]);
});

it("yields no run slot without need, nor of a run with active tasks", async () => {
  const [a, b] = [await run(6, "running"), await run(7, "running")];
  await run(8, "queued");
  expect(await way()).toEqual(NOBODY);
  const early = await run(3, "queued");
  const busy = "scheduled queued running restarting deferred up_for_retry up_for_reschedule".split(" ");
  for (const state of busy) {
    for (const id of [a, b]) await setTask(id, state);
    expect(await way(), state).toEqual(NOBODY);
  }
  await setTask(a, "success");
  expect(await way()).toEqual({ started: [early], wentBack: [a] });
});

it("ignores DAGs without tasks that depend on the past, paused DAGs, and DAGs below their limit", async () => {
  await seedDag(db, "free", { tasks: [TASKS[0] as TaskManifest], maxActiveRuns: 1 });
  await seedDag(db, "roomy", { tasks: TASKS, maxActiveRuns: 2 });
  await seedDag(db, "paused", { tasks: TASKS, maxActiveRuns: 1 });
  await db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id = 'paused'"));
  for (const dagId of ["free", "roomy", "paused"]) {
    await run(6, "running", dagId);
    await run(3, "queued", dagId);
  }
  expect(await way()).toEqual(NOBODY);
});

it("checks again under the lock: a run whose owner has stored a task meanwhile keeps its run slot", async () => {
  const [a, b] = [await run(6, "running"), await run(7, "running")];
  const early = await run(3, "queued");
  const meanwhile = interleaved(db, {
    before: async (statement) => {
      if (statement === "places-locked") await setTask(b, "queued");
    },
  });
  expect(await way(meanwhile)).toEqual({ started: [early], wentBack: [a] });
});

it("skips locked rows and does not wait", async () => {
  const [a, b] = [await run(6, "running"), await run(7, "running")];
  const early = await run(3, "queued");
  const holding = (id: number, meanwhile: () => Promise<void>) =>
    db.transaction(async (tx) => {
      await tx.rows(adhoc("SELECT 1 FROM dag_run WHERE id = $1 FOR SHARE"), [id]);
      await meanwhile();
    });
  await holding(early, async () => expect(await way()).toEqual(NOBODY));
  await holding(b, async () => expect(await way()).toEqual({ started: [early], wentBack: [a] }));
});

it("yields one run slot to concurrent calls", async () => {
  await run(6, "running");
  const late = await run(7, "running");
  const early = await run(3, "queued");
  const all = await Promise.all(Array.from({ length: 6 }, () => way()));
  expect(all.flatMap(({ started }) => started)).toEqual([early]);
  expect(all.flatMap(({ wentBack }) => wentBack)).toEqual([late]);
});

it("returns the surplus runs, and one more, to the queue after the limit was lowered", async () => {
  const running = [await run(6, "running"), await run(7, "running")];
  const early = await run(3, "queued");
  await seedDag(db, "d", { tasks: TASKS, maxActiveRuns: 1 });
  expect(await way()).toEqual({ started: [early], wentBack: [...running].reverse() });
  await seedDag(db, "d", { tasks: TASKS, maxActiveRuns: 0 });
  await run(1, "queued");
  expect(await way()).toEqual(NOBODY);
});

it("yields no run slot of another job's run, nor in DAGs that the job does not serve", async () => {
  const request = { jobId, columns: async () => NO_TASKS };
  const [own] = [await run(7, "running"), await run(6, "running")];
  const early = await run(3, "queued");
  expect(await makeWay(db, { ...request, dags: ["other"] })).toEqual(NOBODY);
  expect(await makeWay(db, { ...request, isOfOwnRuns: true })).toEqual(NOBODY);
  await db.rows(adhoc("UPDATE dag_run SET owner_job = $2 WHERE id = $1"), [own, jobId]);
  const { started, wentBack } = await makeWay(db, { ...request, dags: ["d"], isOfOwnRuns: true });
  expect([started.map(({ id }) => id), wentBack]).toEqual([[early], [own]]);
});
