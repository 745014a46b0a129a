/**
 * Four schedulers that catch up with a DAG's dates, and two backfills over the same dates, one from each end, while the
 * processes are killed and stopped. Every date must get exactly one run, no snapshot may exceed a limit, and the figures of
 * both backfills must be exact at the end. TRADEWIND_FAULT_SCALE makes it longer.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { backfillProgress, type DueRun } from "../../src/model/index.ts";
import { countBackfill } from "../../src/store/backfill/backfills.ts";
import { adhoc } from "../../src/store/database/database.ts";
import { seedBackfill } from "../support/seed-backfill.ts";
import { testDatabase } from "../support/test-database.ts";
import { readLog } from "./component-process.ts";
import { FaultInstallation } from "./installation.ts";
import type { SchedulerPlace, SchedulerProcess } from "./scheduler-process.ts";
import type { ScriptedTask } from "./scripted-dag.ts";
import { BACKFILLS, PoolWatch, TakeoverWatch, Watch } from "./watches.ts";

const SCALE = Number(process.env.TRADEWIND_FAULT_SCALE ?? 1);
const DATES = Math.round(180 * Math.max(1, SCALE));
const HOUR = 3_600_000;
const DAG = "dates";
const DAG_LIMIT = 4;
const SCHEDULERS = 4;
const LIMITS = [3, 2] as const;
/** Milliseconds: time to live, renewal, margin. */
const LEASE = [1_500, 400, 400] as const;

test("four schedulers and two backfills over the same dates create one run per date despite kills and stops", {
  timeout: 180_000 * Math.max(1, SCALE),
}, async () => {
  const { url } = await testDatabase();
  const installation = await FaultInstallation.open(url);
  const start = Math.floor(Date.now() / HOUR) * HOUR - DATES * HOUR;
  const end = start + (DATES - 1) * HOUR;
  await installation.addPools({ narrow: 3 });
  await installation.publish([
    {
      id: DAG,
      tasks: [task("first", []), task("second", ["first"], { pool: "narrow", maxActivePerDag: 2 })],
      every: { duration: "1h", start: new Date(start).toISOString() },
      maxActiveRuns: DAG_LIMIT,
    },
  ]);
  const range = { dagId: DAG, from: new Date(start).toISOString(), to: new Date(end).toISOString() };
  const ids = [
    await seedBackfill(installation.db, { ...range, maxActive: LIMITS[0] }),
    // Its dates are a list, as from a timetable.
    await seedBackfill(installation.db, {
      ...range,
      maxActive: LIMITS[1],
      isReverse: true,
      listed: hours(start),
    }),
  ];
  const pools = new PoolWatch(installation);
  const limits = new LimitWatch(installation);
  const takeovers = new TakeoverWatch(installation, BACKFILLS);
  const storm = new BackfillStorm(installation, takeovers);

  await storm.startAll();
  await storm.deal();
  const isOver = async () => (await open(installation, new Date(end))) === 0;
  await installation.until("all dates and both backfills", isOver, 90_000 * Math.max(1, SCALE));
  await Promise.all([pools.stop(), limits.stop(), takeovers.stop()]);

  const { checks: looks, full } = limits;
  console.log(JSON.stringify({ ...storm.counts, longest: Math.round(takeovers.longest()), looks, full }));
  expect(await datesWithout(installation, { start, end })).toEqual([]);
  expect(limits.violations).toEqual([]);
  expect(pools.violations).toEqual([]);
  expect(await unwitnessed(installation)).toEqual([]);
  for (const id of ids) await expectExact(installation, id);
  expect(installation.crashes()).toEqual([]);
  expect(storm.places.flatMap(readLog).filter(({ level }) => level === "error" || level === "crash")).toEqual(
    [],
  );
  expect(takeovers.isWaiting).toBe(false);
  expect(takeovers.longest()).toBeLessThan(10_000);

  // Guards against vacuous success: the faults must have hit.
  expect(storm.counts.killed).toBeGreaterThanOrEqual(2);
  expect(storm.counts.stopped).toBeGreaterThanOrEqual(1);
  expect(storm.counts.schedulersKilled).toBeGreaterThanOrEqual(2);
  expect(takeovers.taken.length).toBeGreaterThanOrEqual(2);
  expect(looks).toBeGreaterThan(50);
  expect(full).toBeGreaterThan(5);
});

function hours(start: number): DueRun[] {
  return Array.from({ length: DATES }, (_, n) => {
    const at = start + n * HOUR;
    return { logicalDate: at, intervalStart: at, intervalEnd: at, runAfter: at };
  });
}

function task(id: string, after: string[], options: Record<string, unknown> = {}): ScriptedTask {
  return {
    id,
    kind: "task",
    after,
    inputs: [],
    options,
    tries: ["success"],
    chosen: [],
    own: 1,
    workMs: id === "second" ? 120 : 5,
    isBusy: false,
  };
}

/** Kills and stops the owner of a backfill, and a scheduler, one after the other, each time until another takes over. */
class BackfillStorm {
  readonly counts = { killed: 0, stopped: 0, schedulersKilled: 0 };
  readonly places: SchedulerPlace[];
  readonly #installation: FaultInstallation;
  readonly #takeovers: TakeoverWatch;
  readonly #up = new Map<SchedulerPlace, SchedulerProcess>();

  constructor(installation: FaultInstallation, takeovers: TakeoverWatch) {
    this.#installation = installation;
    this.#takeovers = takeovers;
    const place = (name: string, job: "scheduler" | "backfill") =>
      installation.place(name, { lease: LEASE, parallelism: 2, job });
    this.places = [
      ...Array.from({ length: SCHEDULERS }, (_, n) => place(`scheduler-${n + 1}`, "scheduler")),
      place("backfill-1", "backfill"),
      place("backfill-2", "backfill"),
    ];
  }

  async startAll(): Promise<void> {
    await Promise.all(this.places.map((place) => this.#replace(place)));
  }

  async deal(): Promise<void> {
    for (let round = 0; round < SCALE; round++) {
      await Promise.all([this.#killOwner(), this.#killScheduler()]);
      await this.#stopOwner();
      await Promise.all([this.#killScheduler(), this.#killOwner()]);
    }
  }

  async #killOwner(): Promise<void> {
    const found = await this.#owner();
    if (!found) return;
    await found.process.kill();
    this.counts.killed++;
    await this.#takeovers.ownerFell(found.process, "kill -9");
    await this.#takenOver();
    await this.#replace(found.place);
  }

  /** Longer than its lease: it resumes when another process drives its backfills. */
  async #stopOwner(): Promise<void> {
    const found = await this.#owner();
    if (!found) return;
    found.process.pause();
    this.counts.stopped++;
    await this.#takeovers.ownerFell(found.process, "SIGSTOP");
    await this.#takenOver();
    found.process.resume();
    await sleep(300);
  }

  async #killScheduler(): Promise<void> {
    const place = this.places[this.counts.schedulersKilled % SCHEDULERS]!;
    await this.#up.get(place)?.kill();
    this.counts.schedulersKilled++;
    await sleep(500);
    await this.#replace(place);
  }

  /** The process that owns the newest backfill, as soon as it has active runs. */
  async #owner(): Promise<{ place: SchedulerPlace; process: SchedulerProcess } | undefined> {
    const sql = `SELECT j.pid, count(*) AS runs FROM backfill b JOIN job j ON j.id = b.owner_job
                 JOIN dag_run r ON r.backfill_id = b.id AND r.state = 'running'
                 WHERE b.state = 'running' AND j.state = 'running' GROUP BY j.pid ORDER BY runs DESC, j.pid`;
    for (const deadline = performance.now() + 5_000; performance.now() < deadline; await sleep(20)) {
      const rows = await this.#installation.sql<{ pid: number }>(sql);
      for (const { pid } of rows)
        for (const [place, process] of this.#up) if (process.pid === pid) return { place, process };
    }
    return undefined;
  }

  async #replace(place: SchedulerPlace): Promise<void> {
    this.#up.set(place, await this.#installation.start(place));
  }

  async #takenOver(): Promise<void> {
    await this.#installation.until("another takes over", () => !this.#takeovers.isWaiting);
  }
}

/** In one snapshot: active runs of each backfill against its limit, and the DAG's other runs against the DAG's limit. */
class LimitWatch extends Watch {
  checks = 0;
  full = 0;
  readonly violations: string[] = [];

  protected override async check(): Promise<void> {
    const rows = await this.installation.db.rows<{ id: number | null; most: number; running: number }>(
      adhoc(`SELECT b.id, coalesce(b.max_active, ${DAG_LIMIT}) AS most, count(*)::int AS running
             FROM dag_run r LEFT JOIN backfill b ON b.id = r.backfill_id
             WHERE r.state = 'running' GROUP BY b.id, b.max_active`),
    );
    this.checks++;
    for (const row of rows) {
      if (row.running === row.most) this.full++;
      if (row.running > row.most) this.violations.push(JSON.stringify(row));
    }
  }
}

/** The number of unfinished backfills and runs of dates in the range. */
async function open(installation: FaultInstallation, end: Date): Promise<number> {
  const [row] = await installation.sql<{ n: number }>(
    `SELECT (SELECT count(*) FROM backfill WHERE ended_at IS NULL)
          + (SELECT count(*) FROM dag_run WHERE state IN ('queued', 'running') AND logical_date <= $1)
          + (SELECT count(*) FROM dag WHERE next_logical_date <= $1) AS n`,
    [end],
  );
  return Number(row?.n ?? 1);
}

/** Dates without exactly one successful run. */
async function datesWithout(
  installation: FaultInstallation,
  range: { start: number; end: number },
): Promise<object[]> {
  return installation.sql(
    `SELECT d AS date, count(r.id)::int AS runs, min(r.state) AS state
     FROM generate_series($1::timestamptz, $2::timestamptz, interval '1 hour') AS d
     LEFT JOIN dag_run r ON r.dag_id = $3 AND r.logical_date = d
     GROUP BY d HAVING count(r.id) <> 1 OR min(r.state) <> 'success'`,
    [new Date(range.start), new Date(range.end), DAG],
  );
}

/** Tasks whose end the ledger does not confirm for the attempt in the database. */
async function unwitnessed(installation: FaultInstallation): Promise<string[]> {
  const rows = await installation.sql<{ attempt: string; state: string }>(
    `SELECT t.attempt, t.state FROM task_instance t JOIN dag_run r ON r.id = t.dag_run_id
     WHERE r.state IN ('success', 'failed')`,
  );
  const witnessed = installation.ledger.attempts();
  return rows
    .filter(({ attempt, state }) => state !== "success" || !witnessed.get(attempt)?.end)
    .map((row) => JSON.stringify(row));
}

async function expectExact(installation: FaultInstallation, id: number): Promise<void> {
  const counted = await countBackfill(installation.db, id);
  if (!counted) throw new Error(`backfill ${id} is gone`);
  const { runs, tasks, percent } = backfillProgress(counted);
  const own = DATES - runs.skipped;
  expect({ id, runs, tasks, percent }).toMatchObject({
    runs: { total: DATES, finished: DATES, succeeded: own, failed: 0, running: 0 },
    tasks: { total: 2 * own, finished: 2 * own, succeeded: 2 * own, skipped: 0, failed: 0, running: 0 },
    percent: 100,
  });
  const [row] = await installation.sql<{ state: string; dates: number }>(
    `SELECT b.state, (SELECT count(DISTINCT logical_date) FROM backfill_date WHERE backfill_id = b.id)::int AS dates
     FROM backfill b WHERE b.id = $1`,
    [id],
  );
  expect(row).toEqual({ state: "done", dates: DATES });
}
