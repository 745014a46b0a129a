/**
 * A million cold triggers must not slow a triggerer. Each statement is executed once, on the only connection of its kind,
 * and its plan is then read by its name.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { seedDag, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { nodes, type Plan, type PlanRow, planOf, plansOf } from "../../../test/support/query-plan.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { seedTriggerer } from "../../../test/support/trigger-seed.ts";
import { adhoc, call, type Database } from "../database/database.ts";
import { forgetEvents, storeEventRuns } from "../plan/event-runs.ts";
import { nextTimedRunIn, storeTimedRuns } from "../plan/timed-schedules.ts";
import { findCalls, findNewCalls, findRuns, findTasks } from "./engine-conditions.ts";
import {
  claimTriggers,
  deadOwners,
  ownedTriggers,
  postponeTriggers,
  releaseAllTriggers,
  releaseTriggers,
} from "./trigger-claim.ts";
import { fireDueTimed, fireTriggers } from "./trigger-fire.ts";
import {
  countFree,
  dagsOfRuns,
  deleteUnwaited,
  deleteUnwaitedCold,
  livePeersOf,
  nextColdIn,
  nextTimedIn,
  recordPolls,
  subscribersOf,
  triggersOf,
  unwaitedTriggers,
  waitEndsOf,
} from "./triggers.ts";

const COLD = 100_000;

describe("a database with 100,000 cold triggers, as many timed ones and their waits", () => {
  let db: Database;
  let jobId: number;

  beforeAll(async () => {
    ({ db } = await testDatabase({ max: 1, maxPipelines: 1 }));
    jobId = await seedTriggerer(db);
    const dead = await seedTriggerer(db, 0);
    await seedDag(db, "dag");
    const [runId] = await seedRuns(db, "dag", { state: "running", count: 5_000 });
    // Far in the future; a few hundred are due, and some of those are running.
    await db.rows(
      adhoc(`INSERT INTO trigger (fingerprint, kind, args, queue, replicas, wake_at, timed, owner_job)
             SELECT sha256(i::text::bytea), 'k', '{}', CASE WHEN i % 10 = 0 THEN 'slow' ELSE 'default' END,
                    CASE WHEN i % 50 = 0 THEN 2 ELSE 1 END,
                    CASE WHEN i % 500 = 0 THEN now() - interval '1 minute' ELSE now() + i * interval '1 minute' END,
                    CASE WHEN i % 2 = 1 THEN '{"payload":1}'::json END,
                    CASE WHEN i % 2000 = 0 THEN $1::bigint WHEN i % 3000 = 0 THEN $2::bigint END
             FROM generate_series(1, 2 * ${COLD}) AS i`),
      [jobId, dead],
    );
    await db.rows(
      adhoc(`INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, waits_on, kind, kwargs,
                                   on_timeout, on_failure)
             SELECT gen_random_uuid(), $1, 't' || id, -1, 1, id, id, 'k', '{}', 'fail', 'fail' FROM trigger WHERE id % 7 > 0`),
      [runId],
    );
    await db.rows(
      adhoc(`INSERT INTO signal (namespace, key, value, sender)
             SELECT CASE WHEN i % 10 = 0 THEN 'webhook' ELSE 'task' END, 'name' || i % 100, '{}', 'x'
             FROM generate_series(1, 20000) AS i`),
    );
    for (const table of ["job", "dag", "dag_run", "trigger", "deferral", "signal"])
      await db.rows(adhoc(`ANALYZE ${table}`));
    await runEverything(db, jobId);
  }, 120_000);

  it.each([
    ["trigger-peers", "(1)"],
    ["trigger-peer-loads", "('{1,2}')"],
    ["trigger-dead-owners", "(1)"],
    ["trigger-owned", "(1)"],
    ["trigger-dags-of-runs", "('{1,2}')"],
    ["trigger-wait-ends", "('{00000000-0000-0000-0000-000000000000}')"],
    ["trigger-lock-due", "(1000)"],
    ["timed-next-run", ""],
  ])("is not scanned by %s", async (name, values) => {
    for (const [mode, plan] of await plansOf(db, name, values)) expectShort(plan, `${mode} ${name}`);
  });

  it.each([
    ["trigger-next-timed", ""],
    ["trigger-next-cold", "('{default,slow}', 250)"],
    ["trigger-count-free", "('{default,slow}', 250, 20000)"],
    ["trigger-promote", "(1, '{2}')"],
    ["trigger-claim", "(1, '{default,slow}', 1000, 250, '{2}')"],
    ["trigger-claim-standby", "(1, '{default,slow}', 1000, 250, '{2}')"],
    ["trigger-lock", "('{1,2}')"],
    ["trigger-release", "(1, '{1,2}')"],
    ["trigger-release-standby", "(1, '{1,2}')"],
    ["trigger-lock-owned", "(1)"],
    ["trigger-release-all", "(1)"],
    ["trigger-release-all-standby", "(1)"],
    ["trigger-postpone", "(1, '{1,2}', 1000)"],
    ["trigger-fire", `(1, '{1,2}', '{"{}","{}"}', '{event,event}')`],
    ["trigger-note-polls", "(1, '{1,2}')"],
    ["trigger-subscribers", "('{1,2}', 50)"],
    ["trigger-unwaited", "(1)"],
    ["trigger-delete-unwaited", "(1, '{1,2}')"],
    ["trigger-unwaited-cold", "(100, 1000)"],
    ["trigger-delete-cold", "('{1,2}')"],
    ["event-lock-dags", "('{1,2}')"],
    ["event-lock-triggers", "('{1,2}')"],
    ["event-store-runs", `(1, '{1,2}', '{a,b}', '{"{}","{}"}', '{t,f}')`],
    ["event-forget", "(1, '{1,2}')"],
    ["signal-lock-schedules", "('{1,2}')"],
    ["timed-lock-dags", ""],
    ["timed-lock-keys", ""],
    ["timed-store-runs", ""],
    ["engine-find-runs", "('{1}', '{dag}', '{x}', '{NULL}')"],
    ["engine-find-tasks", "('{1}', '{dag}', '{x}', '{NULL}', '{t}', '{NULL}')"],
    ["engine-find-calls", "('{1}', '{name10}', '{2026-01-01}', '{1}')"],
    ["engine-find-new-calls", "('{1}', '{name10}', 100)"],
  ])("is read by key in %s", async (name, values) => {
    const [rows = []] = await db.pipeline([call(adhoc(`EXPLAIN (FORMAT JSON) EXECUTE "${name}"${values}`))]);
    expectShort(planOf(rows as PlanRow[]), name);
  });

  it("claims due triggers without reading others", async () => {
    const sql = `EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE "trigger-claim"(1, '{default,slow}', 50, 250, '{}')`;
    const [rows = []] = await db.pipeline([call(adhoc(sql))]);
    const read = nodes(planOf(rows as PlanRow[]))
      .filter((node) => node["Relation Name"] === "trigger")
      .map((node) => {
        const facts = node as unknown as Record<string, number | undefined>;
        return (
          ((facts["Actual Rows"] ?? 0) + (facts["Rows Removed by Filter"] ?? 0)) *
          (facts["Actual Loops"] ?? 1)
        );
      });
    expect(read.length).toBeGreaterThan(0);
    expect(Math.max(...read)).toBeLessThan(1_000);
  });
});

async function runEverything(db: Database, jobId: number): Promise<void> {
  const queues = ["default", "slow"];
  await nextTimedIn(db);
  await nextColdIn(db, queues, 250);
  await countFree(db, { queues, horizonMs: 250, limit: 10 });
  await livePeersOf(db, jobId);
  await triggersOf(db, [jobId]);
  const dead = await deadOwners(db, jobId);
  await ownedTriggers(db, jobId);
  await dagsOfRuns(db, [1]);
  await claimTriggers(db, { jobId, queues, limit: 1_000, horizonMs: 250, dead });
  await recordPolls(db, jobId, [1]);
  await subscribersOf(db, [1], 50);
  await waitEndsOf(db, ["00000000-0000-0000-0000-000000000000"]);
  await unwaitedTriggers(db, jobId);
  await deleteUnwaited(db, jobId, [-1]);
  await deleteUnwaitedCold(db, 0, 10);
  await fireTriggers(db, jobId, [{ id: -1, outcome: { kind: "event", payload: 1 } }]);
  await fireDueTimed(db, 5);
  await storeEventRuns(db, jobId, [{ triggerId: -1, runId: "x", payload: 1 }]);
  await forgetEvents(db, jobId, [-1]);
  await nextTimedRunIn(db);
  await storeTimedRuns(db);
  await findRuns(db, [{ id: 1, args: { dagId: "x", runId: "x", logicalDate: null, states: [] } }]);
  const task = {
    dagId: "x",
    runId: "x",
    logicalDate: null,
    taskId: "t",
    mapIndex: null,
    states: [],
    failedStates: [],
  };
  await findTasks(db, [{ id: 1, args: task }]);
  await findCalls(db, [{ id: 1, args: { name: "x", after: "2026-01-01", trigger: 1 } }]);
  await findNewCalls(db, [{ id: 1, args: { name: "x" } }], 10);
  await postponeTriggers(db, jobId, { ids: [-1], delayMs: 1 });
  await releaseTriggers(db, jobId, [-1]);
  await releaseAllTriggers(db, -1);
}

const LARGE = new Set(["trigger", "deferral", "signal", "dag_run", "task_instance"]);

function expectShort(plan: Plan, what: string): void {
  const long = nodes(plan).filter(
    (node) =>
      LARGE.has(node["Relation Name"] ?? "") &&
      (node["Node Type"] === "Seq Scan" || (node["Index Name"]?.endsWith("_pkey") && !node["Index Cond"])),
  );
  expect(long, `${what}: ${JSON.stringify(plan)}`).toEqual([]);
}
