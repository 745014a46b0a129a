/**
 * Two schedulers under a load of random tasks that share pools and limits. Every 100 ms, in one snapshot: no pool and no
 * limit of a task, a run or a DAG is exceeded, and the stored pools match the task states. Afterwards, by the times in the
 * rows: within a pool no task was queued while a better one of the same width had been ready for longer than a turn, and
 * wide tasks did not starve. TRADEWIND_FAULT_SCALE makes it longer.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { adhoc, type Database } from "../../src/store/database/database.ts";
import { SchedulerRig } from "../support/scheduler-rig.ts";

const SCALE = Math.max(1, Number(process.env.TRADEWIND_FAULT_SCALE ?? 1));
const EVERY_MS = 100;
/**
 * A turn: the time in which one scheduler learns of the waiting tasks of the other through the database. It depends on the
 * load of the machine; a violated order shows up as waits as long as the longest.
 */
const turnMs = ({ longest }: Waits) => Math.max(1_000, longest / 4);
const POOLS = { narrow: 2, middle: 3, wide: 6 } as const;
const FREE = Math.round(110 * SCALE);

const SOURCE = `
import { dag } from "tradewind";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let seed = 42;
const random = (n) => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed % n; };
const pools = ${JSON.stringify(Object.entries(POOLS))};
const some = (most) => {
  const [pool, slots] = pools[random(pools.length)];
  return { pool, poolSlots: 1 + random(Math.min(most, slots)), priority: random(5), weightRule: "absolute" };
};
const work = (ms) => async () => { await pause(ms); };
// Only the pools limit its tasks: the order of these is checked.
export const free = dag("free", { maxActiveTasks: 10_000, defaults: { weightRule: "absolute" } }, (d) => {
  for (let i = 0; i < ${FREE}; i++) d.task("n" + i, { ...some(6) }, work(20 + random(60)));
});
export const limited = dag("limited", { maxActiveTasks: 2, maxActiveTasksPerDag: 3 }, (d) => {
  for (let i = 0; i < 14; i++)
    d.task("n" + i, { ...some(2), priority: 3 + random(3), ...(i % 3 === 0 && { maxActivePerDag: 1 }) }, work(20 + random(60)));
});
// Becomes ready while the others wait, and starts before them.
export const urgent = dag("urgent", { maxActiveTasks: 10_000, defaults: { weightRule: "absolute" } }, (d) => {
  for (let i = 0; i < 12; i++) d.task("n" + i, { ...some(2), priority: 100 }, work(20));
});
`;

test("two schedulers under load exceed no limit and keep the order of each pool", {
  timeout: 180_000 * SCALE,
}, async () => {
  const rig = await SchedulerRig.open();
  for (const [name, slots] of Object.entries(POOLS))
    await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ($1, $2)"), [name, slots]);
  await rig.publish({ "load.ts": SOURCE });
  const audit = new LimitAudit(rig.db);
  // More room than in the pools: no executor limits admission.
  await rig.scheduler({ shared: false, parallelism: 24 });
  await rig.scheduler({ shared: false, parallelism: 24 });
  await rig.trigger("free", { runId: "warm" });

  const ids: number[] = [];
  for (let n = 0; n < 3; n++) {
    ids.push(await rig.trigger("free"), await rig.trigger("limited"), await rig.trigger("limited"));
    await sleep(400);
  }
  for (let n = 0; n < 4; n++) {
    ids.push(await rig.trigger("urgent"));
    await sleep(300);
  }
  for (const id of ids) expect(await rig.ended(id, 120_000 * SCALE)).toBe("success");
  await rig.until(async () => (await openRuns(rig.db)) === 0, "the end of all runs");
  await audit.stop();

  const waits = await readWaits(rig.db);
  console.log(JSON.stringify({ looks: audit.checks, full: audit.full, waits }));
  expect(audit.violations).toEqual([]);
  expect(await rig.poolsAreExact()).toBe(true);
  expect(await outOfTurn(rig.db, turnMs(waits))).toEqual([]);

  // Guards against vacuous success: the audit must have seen something.
  expect(audit.checks).toBeGreaterThan(20);
  for (const kind of ["pool narrow", "pool middle", "pool wide", "dag", "run", "task"])
    expect(audit.full[kind] ?? 0, kind).toBeGreaterThan(0);
  expect(await schedulersUsed(rig.db)).toBe(2);
  expect(waits.pairs).toBeGreaterThan(100);
  expect(waits.longest).toBeGreaterThan(2_000);
});

interface Reading {
  readonly kind: string;
  readonly name: string;
  readonly most: number;
  readonly taken: number;
}

const OCCUPYING = "t.state IN ('queued', 'running', 'restarting')";

/** Pools by the slots of their tasks; runs, DAGs and tasks by their numbers; each against its limit in the manifest. */
const AUDIT = adhoc(`
  WITH active AS MATERIALIZED (
    SELECT t.task_id, t.pool, t.pool_slots, r.id AS run, r.dag_id, v.manifest
    FROM task_instance t JOIN dag_run r ON r.id = t.dag_run_id JOIN dag_version v ON v.id = r.version_id
    WHERE r.state = 'running' AND ${OCCUPYING})
  SELECT 'pool ' || p.name AS kind, p.name, p.slots AS most, sum(a.pool_slots)::int AS taken
  FROM pool p JOIN active a ON a.pool = p.name GROUP BY p.name, p.slots
  UNION ALL
  SELECT 'run', a.run::text, (a.manifest->>'maxActiveTasks')::int, count(*)::int FROM active a GROUP BY a.run, a.manifest
  UNION ALL
  SELECT 'dag', a.dag_id, (a.manifest->>'maxActiveTasksPerDag')::int, count(*)::int
  FROM active a WHERE a.manifest ? 'maxActiveTasksPerDag' GROUP BY a.dag_id, a.manifest
  UNION ALL
  SELECT 'task', a.dag_id || '/' || a.task_id, (k->>'maxActivePerDag')::int, count(*)::int
  FROM active a, jsonb_array_elements(a.manifest->'tasks') AS k
  WHERE k->>'taskId' = a.task_id AND k->>'maxActivePerDag' IS NOT NULL GROUP BY a.dag_id, a.task_id, k
  UNION ALL
  SELECT 'counter', p.name, p.occupied, coalesce((
    SELECT sum(CASE WHEN t.pool = p.name THEN t.pool_slots ELSE 1 END)::int FROM task_instance t
    WHERE ${OCCUPYING} AND (t.pool = p.name OR p.name = ANY(string_to_array(t.limit_key, E'\\n')))), 0)
  FROM pool p`);

class LimitAudit {
  checks = 0;
  /** Snapshots with a limit reached: without those, none could have been exceeded. */
  readonly full: Record<string, number> = {};
  readonly violations: string[] = [];
  #isOver = false;
  readonly #work: Promise<void>;

  constructor(db: Database) {
    this.#work = this.#run(db);
    this.#work.catch(() => {});
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#work;
  }

  async #run(db: Database): Promise<void> {
    for (; !this.#isOver; await sleep(EVERY_MS)) {
      const rows = await db.rows<Reading>(AUDIT);
      this.checks++;
      for (const row of rows) {
        if (row.kind === "counter") {
          if (row.most !== row.taken) this.violations.push(`miscounted ${JSON.stringify(row)}`);
        } else if (row.taken > row.most) this.violations.push(`exceeded ${JSON.stringify(row)}`);
        else if (row.taken === row.most) this.full[row.kind] = (this.full[row.kind] ?? 0) + 1;
      }
    }
  }
}

/** Of tasks limited only by their pool: those that waited while a lower-ranked task of the same width was queued. */
const OUT_OF_TURN = `
  SELECT h.dag_run_id AS run, h.task_id AS waited, h.pool, h.pool_slots AS slots, l.task_id AS went,
         (extract(epoch FROM l.queued_at - h.scheduled_at) * 1000)::int AS "readyForMs"
  FROM task_instance h JOIN dag_run hr ON hr.id = h.dag_run_id AND hr.dag_id IN ('free', 'urgent')
  JOIN task_instance l ON l.pool = h.pool AND l.pool_slots = h.pool_slots AND l.priority_weight < h.priority_weight
   AND l.queued_at > h.scheduled_at + $1 * interval '1 millisecond' AND l.queued_at < h.queued_at
  LIMIT 10`;

function outOfTurn(db: Database, ms: number): Promise<object[]> {
  return db.rows(adhoc(OUT_OF_TURN), [ms]);
}

interface Waits {
  /** Milliseconds from ready to queued: wide tasks, narrow tasks, all tasks. */
  readonly wide: number;
  readonly narrow: number;
  readonly longest: number;
  /** The longest time that a task had been ready when a lower-ranked one of its width was queued. */
  readonly passed: number;
  /** The number of pairs in which a task was queued before a lower-ranked ready one of its width. */
  readonly pairs: number;
}

async function readWaits(db: Database): Promise<Waits> {
  const row = await db.one<Omit<Waits, "longest">>(
    adhoc(`
      WITH wait AS MATERIALIZED (
        SELECT t.*, r.dag_id, extract(epoch FROM t.queued_at - t.scheduled_at) * 1000 AS ms
        FROM task_instance t JOIN dag_run r ON r.id = t.dag_run_id)
      SELECT (SELECT max(ms) FROM wait WHERE pool_slots > 1)::float8 AS wide,
             (SELECT max(ms) FROM wait WHERE pool_slots = 1)::float8 AS narrow,
             (SELECT coalesce(max(extract(epoch FROM l.queued_at - h.scheduled_at)), 0) * 1000 FROM wait h JOIN wait l USING (pool, pool_slots)
              WHERE h.dag_id <> 'limited' AND l.priority_weight < h.priority_weight
                AND l.queued_at > h.scheduled_at AND l.queued_at < h.queued_at)::float8 AS passed,
             (SELECT count(*) FROM wait h JOIN wait l USING (pool, pool_slots)
              WHERE l.priority_weight < h.priority_weight AND l.scheduled_at < h.queued_at
                AND l.queued_at > h.queued_at)::int AS pairs`),
  );
  if (!row) throw new Error("no row");
  return { ...row, longest: Math.max(row.wide, row.narrow) };
}

async function openRuns(db: Database): Promise<number> {
  const row = await db.one<{ n: number }>(adhoc("SELECT count(*) AS n FROM dag_run WHERE ended_at IS NULL"));
  return row?.n ?? 0;
}

async function schedulersUsed(db: Database): Promise<number> {
  const row = await db.one<{ n: number }>(
    adhoc("SELECT count(DISTINCT executor_job) AS n FROM task_instance"),
  );
  return row?.n ?? 0;
}
