/** The groups of waits cost the same for any number of waits and triggers. */
import { beforeAll, describe, expect, it } from "vitest";
import { seedDag, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { nodes, type PlanRow, planOf } from "../../../test/support/query-plan.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { waitGroups } from "./wait-groups.ts";

const WAITS = 150_000;
const READ = 50_001;

describe("a database with 150,000 waits and as many triggers", () => {
  let db: Database;

  beforeAll(async () => {
    ({ db } = await testDatabase({ max: 1 }));
    await seedDag(db, "dag");
    const [runId] = await seedRuns(db, "dag", { state: "running", count: 1_000 });
    await waitGroups(db, null);
    await db.rows(
      adhoc(`INSERT INTO trigger (fingerprint, kind, args, queue, replicas, wake_at)
             SELECT sha256(i::text::bytea), CASE WHEN i % 3 = 0 THEN 'tradewind.file' ELSE 'tradewind.signal' END,
                    json_build_object('namespace', 'default', 'key', 'order.' || i % 7), 'default', 1, now()
             FROM generate_series(1, ${WAITS}) AS i`),
    );
    await db.rows(
      adhoc(`INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, waits_on, kind, kwargs,
                                   on_timeout, on_failure, deferred_at)
             SELECT gen_random_uuid(), $1, 't', id, 1, id, id, kind, '{}', 'fail', 'fail', now() - id * interval '1 second'
             FROM trigger`),
      [runId],
    );
    for (const table of ["dag", "dag_run", "trigger", "deferral"]) await db.rows(adhoc(`ANALYZE ${table}`));
  }, 120_000);

  it.each(["force_custom_plan", "force_generic_plan"])("is not scanned with %s", async (mode) => {
    await db.rows(adhoc(`SET plan_cache_mode = ${mode}`));
    for (const dag of ["NULL", "'dag'"]) {
      const rows = await db.rows<PlanRow>(
        adhoc(`EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE "ui-wait-groups"(${dag})`),
      );
      const plan = nodes(planOf(rows)) as (ReturnType<typeof planOf> & Actual)[];
      const large = plan.filter((node) => ["trigger", "deferral"].includes(node["Relation Name"] ?? ""));
      expect(large.map((node) => node["Index Name"]).sort(), JSON.stringify(plan)).toEqual([
        "deferral_since",
        "trigger_pkey",
      ]);
      expect(
        Math.max(...large.map((node) => node["Actual Rows"] * node["Actual Loops"])),
      ).toBeLessThanOrEqual(READ);
    }
  });

  it("is counted up to a limit, the longest waits first", async () => {
    const { groups, ...totals } = await waitGroups(db, "dag");
    expect(totals).toEqual({ totalGroups: 8, totalWaiting: READ - 1, isPartial: true });
    expect(groups[0]).toMatchObject({ kind: "tradewind.file", signal: null, waiting: 16_667 });
    expect(groups.slice(1).map(({ signal }) => signal)).toContain("default/order.6");
    expect(await waitGroups(db, "none")).toEqual({
      groups: [],
      totalGroups: 0,
      totalWaiting: 0,
      isPartial: false,
    });
  });
});

interface Actual {
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
}
