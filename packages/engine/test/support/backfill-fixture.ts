/** Backfills on a scheduler rig: created like in the API, driven by a host, inspected. */

import { join } from "node:path";
import { LogFolder } from "../../src/log/log-folder.ts";
import { type BackfillProgress, backfillProgress } from "../../src/model/index.ts";
import { createBackfillHost } from "../../src/process/backfill.ts";
import type { BackfillHost } from "../../src/run/job/backfill-host.ts";
import { resolveConfig } from "../../src/service/config.ts";
import { openHome } from "../../src/service/home.ts";
import { createLogger, silentLogger } from "../../src/service/logger.ts";
import {
  type BackfillEdit,
  cancelBackfill,
  countBackfill,
  findBackfill,
  pauseBackfill,
  setBackfillLimits,
} from "../../src/store/backfill/backfills.ts";
import { adhoc, type Connection } from "../../src/store/database/database.ts";
import { afterFile } from "./after-file.ts";
import type { SchedulerRig } from "./scheduler-rig.ts";
import { type BackfillRequest, seedBackfill } from "./seed-backfill.ts";

export interface BackfillRunRow {
  readonly id: number;
  readonly run_id: string;
  readonly run_type: string;
  readonly state: string;
  readonly clear_number: number;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
}

export class BackfillFixture {
  readonly #rig: SchedulerRig;

  constructor(rig: SchedulerRig) {
    this.#rig = rig;
  }

  /** Drives backfills like `tradewind backfill serve`. */
  async host(how: { listens?: boolean; idleMs?: number } = {}): Promise<BackfillHost> {
    const { db, root, secretBox, wakeUps } = this.#rig;
    const config = resolveConfig({ home: join(root, "home"), parallelism: 4 }, {});
    const logger = process.env.TRADEWIND_TEST_LOG ? createLogger({ level: "debug" }) : silentLogger;
    const home = await openHome(config.home);
    const logs = new LogFolder(home.logs);
    const parts = { config, database: db, home, logger, logs, secretBox, wakeUps };
    const host = createBackfillHost(parts, how);
    await host.start();
    hosts.push(host);
    return host;
  }

  async create(wish: BackfillRequest): Promise<number> {
    const id = await seedBackfill(this.#rig.db, wish);
    this.#rig.wakeUps.send("backfills");
    return id;
  }

  /** Waits for the end of the backfill; returns its state. */
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

  /** The highest number of runs of the DAG that were active at the same time. */
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

afterFile(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.stop(0)));
});
