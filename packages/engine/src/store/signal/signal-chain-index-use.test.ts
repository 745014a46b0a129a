/** Effects, counts, causes and histograms read a few rows of long tables. As index-use.test.ts. */
import { beforeAll, describe, expect, it } from "vitest";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { nodes, type Plan, plansOf } from "../../../test/support/query-plan.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { signalHistogram } from "../ui/signal-histogram.ts";
import { causesOf, countEffects, effectsOf, findSignal, recipientsOf } from "./signal-chain.ts";
import { versionBefore } from "./signals-time.ts";

let db: Database;
const SIGNALS = 100_000;
const start = Date.UTC(2026, 0, 1);

beforeAll(async () => {
  ({ db } = await testDatabase({ max: 1, maxPipelines: 1 }));
  await seedDag(db, "dag", {});
  // Prepared while the tables are empty: the generic plans must remain good.
  await findSignal(db, 1);
  await effectsOf(db, 1, 10);
  await countEffects(db, [1], 10);
  await recipientsOf(db, 1, 10);
  await causesOf(db, { dagRunId: 1, task: null, limit: 10 });
  await versionBefore(db, new Date());
  await db.rows(
    adhoc(`INSERT INTO signal (namespace, key, sender, created_at)
           SELECT CASE WHEN n % 2 = 0 THEN 'task' ELSE 'default' END, 'k' || n % 7 || '.' || n, 's', to_timestamp($1::float8 / 1000 + n)
           FROM generate_series(1, ${SIGNALS}) AS n`),
    [start],
  );
  await db.rows(
    adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, version_id, triggered_by)
           SELECT 'dag', 'r' || n, 'signal_triggered', v.id, 'signal' FROM generate_series(1, 2000) AS n, dag_version v`),
  );
  await db.rows(
    adhoc(`INSERT INTO signal_effect (signal_id, dag_run_id, task_id, try_number, kind)
           SELECT s, r.id, 't', s, 'start' FROM dag_run r, generate_series(1, 20) AS s`),
  );
  await db.rows(
    adhoc(`INSERT INTO task_instance (dag_run_id, task_id, pool, pool_slots, queue, priority_weight, operator)
           SELECT id, 't', 'default_pool', 1, 'default', 1, 'function' FROM dag_run`),
  );
  await db.rows(
    adhoc(`INSERT INTO signal_dead_letter (listener, signal_id, tx, namespace, key, sender, sent_at, error, attempts)
           SELECT 'l', n, '1', 'default', 'k', 's', now(), 'e', 1 FROM generate_series(1, 20000) AS n`),
  );
  await db.rows(adhoc("ANALYZE"));
}, 120_000);

const LARGE = new Set(["signal", "signal_effect", "signal_dead_letter", "dag_run", "task_instance"]);
const scans = (plan: Plan) =>
  nodes(plan).filter((node) => node["Node Type"] === "Seq Scan" && LARGE.has(node["Relation Name"] ?? ""));

describe("long tables", () => {
  it.each([
    ["chain-signal", "(7)"],
    ["chain-effects", "(7, 100)"],
    ["chain-counts", "('{7,8,9}', 100)"],
    ["chain-recipients", "(7, 100)"],
    ["chain-causes", "(7, 't', -1, 10, 20)"],
    ["signal-version-at", "(now())"],
  ])("are not scanned by %s", async (name, values) => {
    for (const [mode, plan] of await plansOf(db, name, values)) expect(scans(plan), mode).toEqual([]);
  });
});

it("finds the last version before a time, also at the ends of the log", async () => {
  const at = (second: number) => new Date(start + second * 1_000 + 1);
  expect(await versionBefore(db, at(-5))).toBe(0);
  expect(await versionBefore(db, at(1))).toBe(1);
  expect(await versionBefore(db, at(54_321))).toBe(54_321);
  expect(await versionBefore(db, at(SIGNALS + 5))).toBe(SIGNALS);
  await db.rows(adhoc("DELETE FROM signal WHERE id BETWEEN 40000 AND 49999"));
  expect(await versionBefore(db, at(45_000))).toBeGreaterThanOrEqual(39_999);
  expect(await versionBefore(db, at(45_000))).toBeLessThan(50_000);
});

const histogram = (more: Partial<Parameters<typeof signalHistogram>[1]> = {}) =>
  signalHistogram(db, {
    ...{ namespace: "default", keys: ["%"], from: new Date(start + 1), to: new Date(start + 1_000_001) },
    ...{ buckets: 10, versions: [0, 1_000], limit: 10_000, names: 3, ...more },
  });

it("counts the signals of a range per bucket and first part of the key, the rare ones together", async () => {
  const { completeSince, rows } = await histogram();
  expect(completeSince).toBeNull();
  expect(rows.reduce((sum, { amount }) => sum + amount, 0)).toBe(500);
  expect(new Set(rows.map(({ bucket }) => bucket))).toEqual(new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
  expect(rows.filter(({ bucket }) => bucket === 0).reduce((sum, { amount }) => sum + amount, 0)).toBe(50);
  expect(new Set(rows.map(({ name }) => name)).size).toBe(4);
  const one = await histogram({ keys: ["k3.3"] });
  expect(one.rows).toEqual([{ bucket: 0, name: "k3", amount: 1, total: 1, oldest: expect.any(Date) }]);
  const namespaces = await histogram({ namespace: "%" });
  expect(new Set(namespaces.rows.map(({ name }) => name))).toEqual(new Set(["default", "task"]));
});

it("reads a limited number of signals, the newest, and says since when it is complete", async () => {
  const { completeSince, rows } = await histogram({ limit: 200 });
  expect(rows.reduce((sum, { amount }) => sum + amount, 0)).toBe(100);
  expect(completeSince).toEqual(new Date(start + 801_000));
});
