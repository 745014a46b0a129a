/** Edits end waits in the API server. The triggers that have no waiters left run in a triggerer. */
import { randomUUID } from "node:crypto";
import { beforeEach, expect, it } from "vitest";
import { seedTrigger, triggerRow } from "../../test/support/trigger-seed.ts";
import { LONG_LEASE, type RunningTriggerer, TriggererRig } from "../../test/support/triggerer-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { type ClearEdit, clearTasks } from "../store/edit/clear-tasks.ts";
import { cancelRun } from "../store/edit/end-run.ts";
import { markTasks } from "../store/edit/mark-tasks.ts";

let rig: TriggererRig;
let running: RunningTriggerer;
beforeEach(async () => {
  rig = await TriggererRig.open();
  running = await rig.triggerer({ lease: LONG_LEASE });
  return () => rig.close();
});

const NEVER = "await new Promise((resolve) => host.abort.addEventListener('abort', resolve));";

/** A deferred task that waits for the trigger. */
async function waits(taskId: string, triggerId: number): Promise<void> {
  const attempt = randomUUID();
  await rig.db.rows(
    adhoc(`INSERT INTO task_instance (dag_run_id, task_id, map_index, state, attempt, try_number, max_tries, pool,
                                      pool_slots, queue, priority_weight, operator)
           VALUES ($1, $2, -1, 'deferred', $3, 1, 0, 'default_pool', 1, 'default', 1, 'test')`),
    [rig.runId, taskId, attempt],
  );
  await rig.db.rows(
    adhoc(`INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, waits_on, kind, kwargs,
                                 on_timeout, on_failure)
           VALUES ($1, $2, $3, -1, 1, $4, $4, 'demo.never', '{}', 'fail', 'fail')`),
    [attempt, rig.runId, taskId, triggerId],
  );
}

async function twoWaits(): Promise<{ shared: number; own: number }> {
  const bundle = await rig.bundle("demo.never", NEVER);
  const add = async () => {
    const id = await seedTrigger(rig.db, { kind: "demo.never" });
    await rig.db.rows(adhoc("UPDATE trigger SET bundle_hash = $2 WHERE id = $1"), [id, bundle]);
    return id;
  };
  const [shared, own] = [await add(), await add()];
  await waits("a", shared);
  await waits("b", shared);
  await waits("c", own);
  await rig.notify("triggers");
  await rig.until(() => running.job.size === 2, "the triggers to run");
  return { shared, own };
}

const only = (tasks: readonly string[]) => [
  { dagRunId: rig.runId, tasks: tasks.map((taskId) => ({ taskId, mapIndex: null })) },
];
const clear = (tasks: readonly string[]): ClearEdit => ({
  ...{ runs: only(tasks), only: "any", resetRuns: true, latestVersion: false },
  ...{ refuseRunning: false, dryRun: false },
});

it("stops the triggers of a cancelled run within a second", async () => {
  await twoWaits();
  const begun = performance.now();
  await rig.db.transaction((tx) => cancelRun(tx, rig.runId, "cancelled"));
  await rig.until(() => running.job.size === 0, "both triggers to be stopped", 5_000);
  expect(performance.now() - begun).toBeLessThan(1_000);
});

it("stops the trigger of a marked or cleared task, and keeps a trigger that another task waits for", async () => {
  const { own, shared } = await twoWaits();
  await rig.db.transaction((tx) =>
    markTasks(tx, { runs: only(["a", "c"]), state: "success", dryRun: false }),
  );
  await rig.until(async () => (await triggerRow(rig.db, own)) === undefined, "its trigger to go", 5_000);
  expect(await triggerRow(rig.db, shared)).toMatchObject({ owner_job: running.job.jobId });
  expect(running.job.size).toBe(1);
  await rig.db.transaction((tx) => clearTasks(tx, clear(["b"])));
  await rig.until(async () => (await triggerRow(rig.db, shared)) === undefined, "the other to go", 5_000);
});
