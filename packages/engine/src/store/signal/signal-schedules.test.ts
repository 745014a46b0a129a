/**
 * Moving schedules, and the cost of reading the log for schedules and waits, which must not depend on its length. Each
 * statement is executed once, on the only connection of its kind, and its plan is then read by its name.
 */
import { randomUUID } from "node:crypto";
import type { SignalCondition } from "@tradewind/sdk/manifest";
import { beforeAll, describe, expect, it } from "vitest";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, call, type Database } from "../database/database.ts";
import { logHead, positionsOf, readKeys, versionsBefore } from "../trigger/engine-conditions-signals.ts";
import { moveSchedule, passSchedules, readSchedules, scanLog } from "./signal-schedules.ts";
import { sendSignals } from "./signals.ts";
import { startNow } from "./signals-position.ts";

const WHEN: SignalCondition = {
  ...{ kind: "signal", namespace: "default", key: "k1", where: null, equals: null, inRun: false },
};

let db: Database;

beforeAll(async () => {
  ({ db } = await testDatabase({ max: 1, maxPipelines: 1 }));
  await seedDag(db, "dag", { schedule: { kind: "signal", when: WHEN, route: null } });
}, 60_000);

const row = async () => (await readSchedules(db, ["dag:dag"]))[0]!;
const runs = () => db.rows<{ run_id: string }>(adhoc("SELECT run_id FROM dag_run ORDER BY id"));
const move = (runId: string) => ({ state: null, received: 1, runs: [{ runId, conf: {} }] });

describe("moving a schedule", () => {
  it("succeeds only from the position that it was computed from", async () => {
    const from = await row();
    const to = { tx: from.position.tx, id: 7 };
    const both = await Promise.all([
      moveSchedule(db, from, { ...move("signal__1"), to }),
      moveSchedule(db, from, { ...move("signal__2"), to }),
    ]);
    expect(both.filter((each) => each !== null)).toEqual([{ added: 1, dropped: [] }]);
    expect(await moveSchedule(db, from, { ...move("signal__3"), to })).toBeNull();
    expect(await runs()).toHaveLength(1);
    expect((await row()).position).toEqual(to);
  });

  it("requires the current revision and a DAG that is not paused", async () => {
    const from = await row();
    const to = { tx: from.position.tx, id: 8 };
    const former = { ...from, revision: randomUUID() };
    expect(await moveSchedule(db, former, { ...move("signal__4"), to })).toBeNull();
    await db.rows(adhoc("UPDATE dag SET is_paused = true"));
    expect(await moveSchedule(db, from, { ...move("signal__4"), to })).toBeNull();
    await db.rows(adhoc("UPDATE dag SET is_paused = false"));
    // A run with this id exists: the signal is processed, and no second run is created.
    const existing = (await runs())[0]!.run_id;
    expect(await moveSchedule(db, from, { ...move(existing), to })).toEqual({
      added: 0,
      dropped: [existing],
    });
  });

  it("only moves forward when no signal matched", async () => {
    const { position, revision } = await row();
    const later = { tx: `${BigInt(position.tx) + 5n}`, id: 0 };
    await passSchedules(db, [{ name: "dag:dag", revision: randomUUID() }], later, 0);
    expect((await row()).position).toEqual(position);
    await passSchedules(db, [{ name: "dag:dag", revision }], later, 0);
    expect((await row()).position).toEqual(later);
    await passSchedules(db, [{ name: "dag:dag", revision }], position, 0);
    expect((await row()).position).toEqual(later);
  });
});

describe("a long signal log", () => {
  beforeAll(async () => {
    await db.rows(
      adhoc(`INSERT INTO signal (namespace, key, value, sender, created_at)
             SELECT CASE WHEN i % 10 = 0 THEN 'default' ELSE 'task' END, 'k' || i % 100, '{}', 'x',
                    now() - (50000 - i) * interval '1 second'
             FROM generate_series(1, 50000) AS i`),
    );
    await db.rows(adhoc("ANALYZE signal"));
    const { position } = await startNow(db);
    await logHead(db);
    await positionsOf(db, [1]);
    await readKeys(db, [{ namespace: "default", key: "k1", after: 0 }], 10);
    await versionsBefore(db, [{ namespace: "default", key: "k1", since: new Date() }]);
    await scanLog(db, position, ["default"], 100);
  }, 60_000);

  it("is read for one key from shortly before a moment, without older signals", async () => {
    const [start = 0] = await versionsBefore(db, [
      { namespace: "default", key: "k10", since: new Date(Date.now() - 3_600_000) },
    ]);
    const [sent] = await sendSignals(db, [{ namespace: "default", key: "k10", value: 1, sender: "x" }]);
    const [rows = []] = await readKeys(db, [{ namespace: "default", key: "k10", after: start }], 100);
    expect(rows.at(-1)?.id).toBe(sent!.id);
    // One hour and five minutes, with one signal of this key every 100 s.
    expect(rows.length).toBeGreaterThan(30);
    expect(rows.length).toBeLessThan(50);
  });

  it.each([
    ["engine-signal-starts", "('{0}', '{default}', '{k10}', '{2026-01-01}')", "signal_key"],
    ["engine-read-keys", "('{0}', '{default}', '{k10}', '{100}', 10)", "signal_key"],
    ["engine-signal-head", "(NULL, NULL)", "signal_position"],
    ["schedule-scan", "('1', 1, '{default}', 100, NULL, NULL)", "signal_position"],
  ])("serves %s %s by index %s", async (name, values, index) => {
    const [rows = []] = await db.pipeline([call(adhoc(`EXPLAIN (FORMAT JSON) EXECUTE "${name}"${values}`))]);
    const plan = JSON.stringify(rows);
    expect(plan).toContain(`"${index}"`);
    expect(plan).not.toContain("Seq Scan");
    expect(plan).not.toContain('"Sort Key":["s.id');
  });
});
