/**
 * What the pages of runs and tasks read does not grow with history. Each statement is executed once, on the only connection,
 * and its plan is then read by its name: it is the production statement, not a copy.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { nodes, type Plan, type PlanRow, planOf } from "../../../test/support/query-plan.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Connection, type Database } from "../database/database.ts";
import { readCalendar } from "../ui/calendar.ts";
import { search } from "../ui/search.ts";
import { findFailedTry, readTaskFailures } from "../ui/task-failures.ts";
import { latestRuns, readTaskOutcomes } from "../ui/trends.ts";
import { findTimelineRun, previousRunId, readRunTimes, readTimelineMaps } from "./run-timeline.ts";
import { readUsualTimes } from "./usual-times.ts";

const RUNS = 20_000;
const DAGS = 3;
const DAY = 86_400_000;

describe(`a database with ${DAGS * RUNS} ended runs`, () => {
  let db: Database;
  let last: number;

  beforeAll(async () => {
    ({ db } = await testDatabase({ max: 1 }));
    for (let i = 0; i < DAGS; i++) await seedDag(db, `dag${i}`, { taskCount: 2 });
    await seedOthers(db, 10_000);
    await db.rows(
      adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, state, run_after, logical_date, version_id, triggered_by, started_at, ended_at)
             SELECT d.dag_id, 'run' || i, 'manual', CASE WHEN i % 10 = 0 THEN 'failed' ELSE 'success' END, t.at, CASE WHEN i % 2 = 0 THEN t.at END,
               d.version_id, 'cli', t.at, t.at + interval '1 minute'
             FROM dag d, generate_series(1, $1) AS i, LATERAL (SELECT now() - ($1 - i) * interval '1 hour' AS at) AS t
             WHERE d.dag_id LIKE 'dag%' ORDER BY i`),
      [RUNS],
    );
    await db.rows(
      adhoc(`INSERT INTO task_instance (dag_run_id, task_id, state, attempt, pool, pool_slots, queue, priority_weight, operator, started_at, ended_at, reason)
             SELECT r.id, 't' || k, r.state, gen_random_uuid(), 'default_pool', 1, 'default', 1, 'task', r.started_at, r.ended_at, 'Error: ' || r.id
             FROM dag_run r, generate_series(0, 1) AS k`),
    );
    await db.rows(
      adhoc(`INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, started_at, ended_at, reason)
             SELECT gen_random_uuid(), r.id, 't0', -1, 1, 'failed', r.started_at, r.ended_at, 'Error: once' FROM dag_run r`),
    );
    for (const table of [
      "dag_run",
      "task_instance",
      "task_attempt",
      "deferral",
      "map_expansion",
      "map_label",
    ])
      await db.rows(adhoc(`ANALYZE ${table}`));
    const run = (await findTimelineRun(db, "dag1", `run${RUNS}`))!;
    last = run.id;
    expect(await previousRunId(db, run)).toBe(`run${RUNS - 1}`);
    await readTimelineMaps(db, run, 200);
    const range = { from: -1, to: 99, also: [] };
    expect((await readRunTimes(db, [last], range)).instances).toHaveLength(2);
    const runs = await latestRuns(db, "dag1", 100);
    const ids = runs.map(({ id }) => id);
    expect((await readRunTimes(db, ids, { ...range, taskId: "t0" })).attempts).toHaveLength(100);
    expect((await readUsualTimes(db, "dag1", { runId: last, instances: 2 })).runs).toBe(20);
    expect(await readTaskOutcomes(db, ids, ["t0", "t1"])).toHaveLength(200);
    const midnight = Math.floor(run.now / DAY) * DAY;
    const starts = Array.from({ length: 31 }, (_, day) => new Date(midnight - (30 - day) * DAY));
    const counted = await readCalendar(db, "dag1", starts);
    expect(counted.reduce((sum, day) => sum + day.success + day.failed, 0)).toBe(30 * 24);
    expect(await readTaskFailures(db, { dagId: "dag1", runId: last, taskId: "t0", runs: 30 })).toHaveLength(
      30,
    );
    await findFailedTry(db, { runId: last, taskId: "t0", mapIndex: -1, tryNumber: null });
  }, 180_000);

  it.each([
    ["timeline-run", () => `('dag1', 'run${RUNS}')`],
    ["timeline-previous-run", () => `(${last})`],
    ["timeline-maps", () => `(${last})`],
    ["timeline-instances", () => `('{${last}}', -1, 99, '{}')`],
    ["timeline-attempts", () => `('{${last}}', -1, 99, '{}')`],
    ["timeline-waits", () => `('{${last}}', -1, 99, '{}')`],
    ["timeline-task-instances", () => `('{${last},${last - 1}}', -1, 99, '{}', 't0')`],
    ["timeline-task-attempts", () => `('{${last},${last - 1}}', -1, 99, '{}', 't0')`],
    ["timeline-task-waits", () => `('{${last},${last - 1}}', -1, 99, '{}', 't0')`],
    ["usual-run-times", () => `('dag1', ${last}, 20)`],
    ["usual-task-times", () => `('dag1', ${last}, 20)`],
    ["ui-trend-runs", () => "('dag1', 100)"],
    ["ui-task-outcomes", () => `('{${last},${last - 1}}', '{t0,t1}')`],
    ["ui-task-failures", () => `('dag1', ${last}, 't0', 30)`],
    ["ui-failed-try", () => `(${last}, 't0', -1, NULL)`],
    ["ui-calendar-days", () => "('dag1', ARRAY[now() - interval '1 day'], now() - interval '1 day', now())"],
  ])("%s reads few rows", async (name, values) => {
    for (const mode of ["force_custom_plan", "force_generic_plan"]) {
      await db.rows(adhoc(`SET plan_cache_mode = ${mode}`));
      const explained = adhoc(`EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE "${name}"${values()}`);
      const plan = planOf(await db.rows<PlanRow>(explained));
      const read = nodes(plan).reduce((sum, node) => sum + rowsRead(node), 0);
      expect(read, `${mode}: ${JSON.stringify(plan)}`).toBeLessThan(1_000);
    }
  });

  it("searches only recent runs, of all DAGs and of those that are named", async () => {
    await db.rows(adhoc("SET plan_cache_mode = auto"));
    const names = async (...words: string[]) => [
      ...new Set((await search(db, words)).map(({ name }) => name)),
    ];
    expect(await names("dag1", `run${RUNS - 1}`)).toEqual([`run${RUNS - 1}`]);
    expect(await names("dag1", "run5000")).toEqual([]);
    expect(await names("other99", "orders_7")).toContain("extract_orders_7");
    for (const words of [["run"], ["dag", "run"], ["other", "orders"]]) {
      const read = await db.transaction(async (tx) => {
        const before = await runsRead(tx);
        await search(oneByOne(tx), words);
        return (await runsRead(tx)) - before;
      });
      expect(read).toBeLessThan(4_000);
    }
  });
});

/** Rows of dag_run that this session has read; the counter may include those of transactions before this one. */
async function runsRead(tx: Connection): Promise<number> {
  const counter =
    "SELECT seq_tup_read + idx_tup_fetch AS rows FROM pg_stat_xact_user_tables WHERE relname = 'dag_run'";
  return (await tx.one<{ rows: number }>(adhoc(counter)))?.rows ?? 0;
}

/** A transaction has one connection. */
function oneByOne(tx: Connection): Connection {
  let last: Promise<unknown> = Promise.resolve();
  const rows: Connection["rows"] = (statement, values) => {
    const result = last.then(() => tx.rows(statement, values));
    last = result;
    return result as never;
  };
  return { rows, one: tx.one };
}

/** DAGs with 20 tasks each, and no runs. */
async function seedOthers(db: Database, count: number): Promise<void> {
  const text = `WITH made AS (INSERT INTO dag (dag_id, file, is_paused) SELECT 'other' || i, 'x.ts', false FROM generate_series(1, $1) AS i RETURNING dag_id)
    INSERT INTO dag_version (dag_id, number, bundle_hash, manifest, source)
    SELECT m.dag_id, 1, (SELECT hash FROM bundle LIMIT 1), k.manifest, '' FROM made m,
      (SELECT jsonb_build_object('tasks', jsonb_agg(jsonb_build_object('taskId', 'extract_orders_' || t, 'upstream', '[]'::jsonb))) AS manifest
       FROM generate_series(1, 20) AS t) k`;
  await db.rows(adhoc(text), [count]);
  await db.rows(
    adhoc(
      "UPDATE dag d SET version_id = v.id FROM dag_version v WHERE v.dag_id = d.dag_id AND d.version_id IS NULL",
    ),
  );
  await db.rows(adhoc("ANALYZE dag, dag_version"));
}

const LONG = new Set(["dag_run", "task_instance", "task_attempt", "deferral"]);

function rowsRead(node: Plan): number {
  if (!LONG.has(node["Relation Name"] ?? "")) return 0;
  const facts = node as unknown as Record<string, number | undefined>;
  const each =
    (facts["Actual Rows"] ?? 0) +
    (facts["Rows Removed by Filter"] ?? 0) +
    (facts["Rows Removed by Index Recheck"] ?? 0);
  return each * (facts["Actual Loops"] ?? 1);
}
