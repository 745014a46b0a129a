/** Backfills on a scheduler rig: made as the API makes them, driven by a host, looked at. */
import { join } from "node:path";
import { afterAll } from "vitest";
import {
  type BackfillProgress,
  backfillDates,
  backfillProgress,
  backfillRange,
} from "../../src/model/index.ts";
import { createBackfillHost } from "../../src/processes/backfill.ts";
import type { BackfillHost } from "../../src/schedule/backfill-host.ts";
import { resolveConfig } from "../../src/service/config.ts";
import { openHome } from "../../src/service/home.ts";
import { createLogger, silentLogger } from "../../src/service/logger.ts";
import {
  type BackfillEdit,
  cancelBackfill,
  countBackfill,
  createBackfill,
  findBackfill,
  type NewBackfill,
  pauseBackfill,
  setBackfillLimits,
} from "../../src/store/backfills.ts";
import { loadVersion } from "../../src/store/dag-catalogue.ts";
import { adhoc, type Connection, type Database } from "../../src/store/database.ts";
import type { SchedulerRig } from "./scheduler-rig.ts";

export interface BackfillWish
  extends Partial<Pick<NewBackfill, "reprocess" | "isReverse" | "maxActive" | "stopOnFailure" | "conf">> {
  readonly dagId: string;
  readonly from: string;
  readonly to: string;
}

/** As the API does it, without its checks of what was sent. */
export async function seedBackfill(db: Database, wish: BackfillWish): Promise<number> {
  const dag = await db.one<{ version_id: number }>(adhoc("SELECT version_id FROM dag WHERE dag_id = $1"), [
    wish.dagId,
  ]);
  const version = await loadVersion(db, dag?.version_id ?? 0);
  if (!version) throw new Error(`no DAG ${wish.dagId}`);
  const now = new Date();
  const [from, to] = [new Date(wish.from), new Date(wish.to)];
  const { isReverse = false } = wish;
  const request = { from: from.getTime(), to: to.getTime(), now: now.getTime(), isReverse };
  const { schedule, range } = backfillRange(version.manifest, request);
  const dates = [...backfillDates(schedule, range)];
  return db.transaction((tx) =>
    createBackfill(tx, {
      dagId: wish.dagId,
      schedule,
      anchor: range.anchor === null ? null : new Date(range.anchor),
      versionId: null,
      from,
      to,
      reprocess: wish.reprocess ?? "none",
      isReverse,
      maxActive: wish.maxActive ?? 10,
      conf: wish.conf ?? null,
      stopOnFailure: wish.stopOnFailure ?? false,
      totalRuns: dates.length,
      firstDate: new Date(dates[0]?.logicalDate ?? 0),
      now,
      createdBy: "test",
    }),
  );
}

export interface BackfillRunRow {
  readonly id: number;
  readonly run_id: string;
  readonly run_type: string;
  readonly state: string;
  readonly clear_number: number;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
}

export class BackfillDesk {
  readonly #rig: SchedulerRig;

  constructor(rig: SchedulerRig) {
    this.#rig = rig;
  }

  /** Looks after backfills as `tradewind backfill run` does. */
  async host(how: { listens?: boolean; idleMs?: number } = {}): Promise<BackfillHost> {
    const { db, root, secretBox, wakeUps } = this.#rig;
    const config = resolveConfig({ home: join(root, "home"), parallelism: 4 }, {});
    const logger = process.env.TRADEWIND_TEST_LOG ? createLogger({ level: "debug" }) : silentLogger;
    const parts = { config, database: db, home: await openHome(config.home), logger, secretBox, wakeUps };
    const host = createBackfillHost(parts, how);
    await host.start();
    hosts.push(host);
    return host;
  }

  async create(wish: BackfillWish): Promise<number> {
    const id = await seedBackfill(this.#rig.db, wish);
    this.#rig.wakeUps.send("backfills");
    return id;
  }

  /** The state in which it ended. */
  async over(id: number, withinMs = 60_000): Promise<string> {
    const isOver = async () => (await this.#find(id)).ended_at !== null;
    await this.#rig.until(isOver, `the end of backfill ${id}`, withinMs);
    return (await this.#find(id)).state;
  }

  async progress(id: number): Promise<BackfillProgress> {
    const counted = await countBackfill(this.#rig.db, id);
    if (!counted) throw new Error(`no backfill ${id}`);
    return backfillProgress(counted);
  }

  isOwned(id: number): Promise<boolean> {
    return this.#find(id).then((row) => row.is_owned);
  }

  pause(id: number, isPaused: boolean): Promise<void> {
    return this.#edit((tx) => pauseBackfill(tx, id, isPaused));
  }

  set(id: number, limits: { maxActive?: number; stopOnFailure?: boolean }): Promise<void> {
    return this.#edit((tx) => setBackfillLimits(tx, id, limits));
  }

  cancel(id: number, letFinish: boolean): Promise<void> {
    return this.#edit((tx) => cancelBackfill(tx, id, letFinish));
  }

  /** By logical date. */
  runsOf(dagId: string): Promise<BackfillRunRow[]> {
    return this.#rig.db.rows(adhoc("SELECT * FROM dag_run WHERE dag_id = $1 ORDER BY logical_date"), [dagId]);
  }

  /** How many runs of the DAG were ever under way at the same time. */
  async mostAtOnce(dagId: string): Promise<number> {
    const runs = await this.runsOf(dagId);
    const at = (run: BackfillRunRow, moment: Date | null) =>
      moment !== null &&
      run.started_at !== null &&
      run.started_at <= moment &&
      (run.ended_at ?? moment) > moment;
    return Math.max(0, ...runs.map(({ started_at }) => runs.filter((run) => at(run, started_at)).length));
  }

  async #find(id: number) {
    const row = await findBackfill(this.#rig.db, id);
    if (!row) throw new Error(`no backfill ${id}`);
    return row;
  }

  async #edit(work: (tx: Connection) => Promise<BackfillEdit>): Promise<void> {
    const result = await this.#rig.db.transaction(work);
    if (result.kind !== "done") throw new Error(JSON.stringify(result));
    for (const id of result.runIds) this.#rig.wakeUps.send(`run:${id}`);
    this.#rig.wakeUps.send("backfills");
  }
}

const hosts: BackfillHost[] = [];

afterAll(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.stop(0)));
});
