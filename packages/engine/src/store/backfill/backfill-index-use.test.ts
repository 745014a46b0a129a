/** The periodic queries of a backfill job cost the same, however many dates the backfill has completed. */
import { beforeAll, describe, expect, it } from "vitest";
import { seedDag, seedJob } from "../../../test/support/catalogue-seed.ts";
import { NO_TASKS } from "../../../test/support/no-tasks.ts";
import { seedBackfill } from "../../../test/support/seed-backfill.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { makeWayInBackfills } from "../run/run-slots.ts";
import { adoptBackfill, hasFreeBackfill, startBackfillRuns, takeOverBackfillRuns } from "./backfill-claim.ts";
import { planBackfill } from "./backfill-plan.ts";
import { endBackfills } from "./backfills.ts";

const DONE = 20_000;

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly Plans?: readonly Plan[];
}

describe(`a backfill with ${DONE} completed dates`, () => {
  let db: Database;
  let id: number;
  let jobId: number;

  beforeAll(async () => {
    ({ db } = await testDatabase({ max: 1 }));
    jobId = await seedJob(db);
    await seedDag(db, "d", { schedule: { kind: "interval", everyMs: 60_000, style: "trigger" } });
    id = await seedBackfill(db, { dagId: "d", from: "2020-01-01T00:00:00Z", to: "2020-01-20T00:00:00Z" });
    await db.rows(
      adhoc(`WITH made AS (
               INSERT INTO dag_run (dag_id, run_id, run_type, state, logical_date, run_after, version_id, triggered_by,
                                    backfill_id, started_at, ended_at)
               SELECT 'd', i::text, 'backfill', 'success', timestamptz '2020-01-01Z' + i * interval '1 minute', now(),
                      d.version_id, 'backfill', $1, now(), now()
               FROM dag d, generate_series(0, $2 - 1) AS i RETURNING id, run_id, logical_date
             )
             INSERT INTO backfill_date (backfill_id, ordinal, logical_date, action, dag_run_id)
             SELECT $1, run_id::int, logical_date, 'created', id FROM made`),
      [id, DONE],
    );
    await db.rows(
      adhoc(`UPDATE backfill SET next_ordinal = $2::int, next_date = timestamptz '2020-01-01Z' + $2::int * interval '1 minute'
             WHERE id = $1`),
      [id, DONE],
    );
    for (const table of ["job", "dag", "dag_run", "backfill", "backfill_date"])
      await db.rows(adhoc(`ANALYZE ${table}`));
    expect(await hasFreeBackfill(db)).toBe(true);
    await adoptBackfill(db, { jobId, has: 0, mayJudge: true });
    expect((await planBackfill(db, id, jobId)).made).toBe(10);
    await takeOverBackfillRuns(db, jobId, 64);
    await startBackfillRuns(db, { jobId, limit: 64, columns: async () => NO_TASKS });
    await makeWayInBackfills(db, { jobId, columns: async () => NO_TASKS });
    await endBackfills(db, [id]);
  }, 60_000);

  it.each([
    ["backfill-any-free", () => "(NULL)"],
    ["backfill-any-free", () => "('{d}')"],
    ["backfill-plan-lock", () => `(${id}, ${jobId})`],
    ["backfill-plan-count", () => `(${id})`],
    ["backfill-plan-existing", () => "('d', '{2020-01-05}')"],
    ["backfill-take-over-runs", () => `(${jobId}, 64, 20000)`],
    ["backfill-start-runs", () => `(${jobId}, '{${id}}', 64, 20000)`],
    ["places-lock-backfills", () => `(16, ${jobId})`],
    ["backfill-settle", () => `('{${id}}')`],
  ])("%s reads no completed date", async (name, values) => {
    for (const mode of ["force_custom_plan", "force_generic_plan"]) {
      await db.rows(adhoc(`SET plan_cache_mode = ${mode}`));
      const [row] = await db.rows<{ "QUERY PLAN": [{ Plan: Plan }] }>(
        adhoc(`EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE "${name}"${values()}`),
      );
      const plan = row?.["QUERY PLAN"][0].Plan;
      if (!plan) throw new Error(`no plan of ${name}`);
      const read = nodes(plan)
        .filter((node) => ["dag_run", "backfill_date"].includes(node["Relation Name"] ?? ""))
        .map((node) => (node["Actual Rows"] ?? 0) * (node["Actual Loops"] ?? 1));
      expect(Math.max(0, ...read), `${mode}: ${JSON.stringify(plan)}`).toBeLessThan(100);
      expect(nodes(plan).filter(isScan), `${mode}: ${JSON.stringify(plan)}`).toEqual([]);
    }
  });

  function isScan(node: Plan): boolean {
    return (
      node["Node Type"] === "Seq Scan" && ["dag_run", "backfill_date"].includes(node["Relation Name"] ?? "")
    );
  }
});

function nodes(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}
