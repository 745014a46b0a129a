/**
 * Retention next to an active scheduler: thousands of old runs are deleted while others are active, some of the old ones are
 * cleared in between, and the cleaning process is killed repeatedly. Active runs must end normally, cleared runs must run
 * again, all other old runs must be deleted, and no recent one. TRADEWIND_FAULT_SCALE makes it longer.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, test } from "vitest";
import { adhoc } from "../../src/store/database/database.ts";
import { clearRun } from "../support/run-edits.ts";
import { SchedulerRig } from "../support/scheduler-rig.ts";

const SCALE = Math.max(1, Number(process.env.TRADEWIND_FAULT_SCALE ?? 1));
const OLD = Math.round(6_000 * SCALE);
const KILLS = 3;
const LIVE = 24;
const DAY = 86_400_000;
const PROGRAM = join(import.meta.dirname, "clean-program.ts");

const SOURCE = `
import { dag } from "tradewind";
export const steps = dag("steps", (d) => {
  const one = d.task("one", async () => { await new Promise((r) => setTimeout(r, 30)); return 1; });
  const two = d.task("two", { inputs: { one } }, ({ one }) => one + 1);
  d.task("three", { inputs: { two } }, ({ two }) => two + 1);
});
`;

const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

test("cleaning next to a scheduler, killed and restarted, deletes old runs and nothing else", {
  timeout: 120_000 * SCALE,
}, async () => {
  const rig = await SchedulerRig.open();
  await rig.publish({ "steps.ts": SOURCE });
  const old = await seedOld(rig);
  await rig.scheduler({ parallelism: 4 });

  const live: number[] = [];
  const cleared: number[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    const cleaner = new Cleaner(rig.url, { batch: 60, restMs: 80 });
    await cleaner.batches(3);
    for (let n = 0; n < LIVE / KILLS; n++) live.push(await rig.trigger("steps"));
    cleared.push(...(await clearSome(rig)));
    await cleaner.batches(6);
    await cleaner.kill();
  }
  const before = await countOld(rig, old);
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThan(OLD);
  const last = new Cleaner(rig.url, { batch: 60, restMs: 0 });
  const counts = await last.done();
  expect(counts.runs).toBeGreaterThan(0);

  for (const id of [...live, ...cleared]) expect(await rig.ended(id, 60_000)).toBe("success");
  for (const id of live) expect(await rig.output(id, "three")).toBe(3);
  expect(cleared.length).toBeGreaterThan(0);
  expect(await ids(rig)).toEqual([...cleared, ...live].sort((a, b) => a - b));
  expect(await rig.poolsAreExact()).toBe(true);
});

/** Ended 40 days ago, with tasks, outputs and an earlier attempt each. */
async function seedOld(rig: SchedulerRig): Promise<number[]> {
  const runs = await rig.db.rows<{ id: number }>(
    adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, state, run_after, version_id, triggered_by, started_at, ended_at)
           SELECT d.dag_id, 'old_' || i, 'manual', 'success', t.at, d.version_id, 'cli', t.at, t.at
           FROM dag d, generate_series(1, $1) AS i,
                LATERAL (SELECT now() - interval '40 days' + i * interval '1 second' AS at) AS t RETURNING id`),
    [OLD],
  );
  await rig.db.rows(
    adhoc(`INSERT INTO task_instance (dag_run_id, task_id, state, try_number, pool, pool_slots, queue, priority_weight, operator)
           SELECT r.id, t, 'success', 1, 'default_pool', 1, 'default', 1, 'task'
           FROM dag_run r, unnest('{one,two,three}'::text[]) AS t`),
  );
  await rig.db.rows(
    adhoc(`INSERT INTO xcom (dag_run_id, task_id, key, value)
           SELECT dag_run_id, task_id, 'return_value', '0' FROM task_instance`),
  );
  await rig.db.rows(
    adhoc(`INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state)
           SELECT gen_random_uuid(), dag_run_id, task_id, map_index, 1, 'failed' FROM task_instance`),
  );
  return runs.map(({ id }) => id);
}

/** Clears the runs that are deleted next: some of them are deleted before they can be cleared. */
async function clearSome(rig: SchedulerRig): Promise<number[]> {
  const rows = await rig.db.rows<{ id: number }>(
    adhoc("SELECT id FROM dag_run WHERE ended_at < now() - interval '30 days' ORDER BY ended_at LIMIT 8"),
  );
  const cleared: number[] = [];
  for (const { id } of rows) {
    const result = await rig.db.transaction((tx) => clearRun(tx, id));
    if (result.kind === "cleared" && result.affected.length === 3) cleared.push(id);
    rig.wakeUps.send("runs");
  }
  return cleared;
}

async function countOld(rig: SchedulerRig, old: readonly number[]): Promise<number> {
  const left = new Set(await ids(rig));
  return old.filter((id) => left.has(id)).length;
}

async function ids(rig: SchedulerRig): Promise<number[]> {
  return (await rig.db.rows<{ id: number }>(adhoc("SELECT id FROM dag_run ORDER BY id"))).map(({ id }) => id);
}

class Cleaner {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(url: string, how: { readonly batch: number; readonly restMs: number }) {
    const args = [url, 30 * DAY, how.batch, how.restMs].map(String);
    this.#child = spawn(process.execPath, ["--conditions=source", PROGRAM, ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(this.#child);
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]();
  }

  /** Waits for this many further batches; none of them may have been completed before. */
  async batches(count: number): Promise<void> {
    for (let n = 0; n < count; n++) expect((await this.#next()).what).toBe("batch");
  }

  async done(): Promise<{ readonly runs: number }> {
    for (;;) {
      const { what, counts } = await this.#next();
      if (what === "done") return counts;
    }
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }

  async #next(): Promise<{ what: string; counts: { runs: number } }> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the cleaning process has ended");
    return JSON.parse(value);
  }
}
