/** Schedulers on one database, as in separate processes: they share only the database. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DagProcessor } from "../../packages/engine/src/bundle/dag-processor.ts";
import { WakeUps } from "../../packages/engine/src/job/wake-up.ts";
import { LogFolder } from "../../packages/engine/src/log/log-folder.ts";
import { planNext } from "../../packages/engine/src/model/calendar/planner.ts";
import { openDatabase } from "../../packages/engine/src/process/parts/open-database.ts";
import { createScheduler } from "../../packages/engine/src/process/scheduler.ts";
import type { SchedulerJob } from "../../packages/engine/src/run/job/scheduler-job.ts";
import { SecretBox } from "../../packages/engine/src/secret/secret-box.ts";
import { resolveConfig } from "../../packages/engine/src/service/config.ts";
import { openHome } from "../../packages/engine/src/service/home.ts";
import { createLogger } from "../../packages/engine/src/service/logger.ts";
import { adhoc, type Database } from "../../packages/engine/src/store/database/database.ts";
import { migrate } from "../../packages/engine/src/store/database/migrate.ts";
import { createRuns } from "../rig.ts";
import { until } from "../until.ts";

export interface Crew {
  publish(files: Readonly<Record<string, string>>): Promise<void>;
  join(): Promise<void>;
  /** Stops the last scheduler that joined, and kills its tasks. */
  leave(): Promise<void>;
  /** Queues runs while the DAG is paused, then unpauses it. */
  queue(dagId: string, count: number): Promise<number[]>;
  ended(ids: readonly number[]): Promise<void>;
  stop(): Promise<void>;
}

const SET_PAUSED = adhoc("UPDATE dag SET is_paused = $2 WHERE dag_id = $1");
const OPEN = adhoc("SELECT count(*) AS n FROM dag_run WHERE id = ANY($1) AND state IN ('queued', 'running')");

export async function openCrew(slots: number): Promise<Crew> {
  const root = await mkdtemp(join(tmpdir(), "tradewind-bench-"));
  const folder = join(root, "dags");
  await mkdir(folder);
  const config = resolveConfig(
    { home: join(root, "home"), dags: folder, parallelism: slots },
    { DATABASE_URL: process.env.DATABASE_URL },
  );
  const home = await openHome(config.home);
  const logger = createLogger({ level: "warn", format: "pretty" });
  const { connect, database, stop } = await openDatabase(config, { applicationName: "tradewind bench" });
  await migrate(database);
  const secretBox = await SecretBox.load(home.secretKey);
  const wakeUps = new WakeUps(database);
  const logs = new LogFolder(home.logs);
  const members: { job: SchedulerJob; database: Database; wakeUps: WakeUps }[] = [];
  const processor = new DagProcessor({ database, folder, logger, plan: planNext, isPausedAtCreation: false });
  const leave = async () => {
    const member = members.pop();
    await member?.job.stop(0);
    await member?.wakeUps.close();
    await member?.database.close();
  };
  return {
    leave,
    async publish(files) {
      for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
      const { failed } = await processor.runOnce();
      if (failed > 0) throw new Error(`${failed} DAG files failed`);
    },
    async join() {
      const own = connect("tradewind bench scheduler");
      const news = new WakeUps(own);
      const job = createScheduler({ config, database: own, home, logger, logs, secretBox, wakeUps: news });
      await job.start();
      members.push({ job, database: own, wakeUps: news });
    },
    async queue(dagId, count) {
      await database.rows(SET_PAUSED, [dagId, true]);
      const ids = await createRuns(
        database,
        Array.from({ length: count }, () => dagId),
      );
      await database.rows(SET_PAUSED, [dagId, false]);
      wakeUps.send("dags");
      return ids;
    },
    async ended(ids) {
      await until("all runs have ended", async () => {
        await sleep(20);
        return (await database.one<{ n: number }>(OPEN, [ids]))?.n === 0;
      });
    },
    async stop() {
      while (members.length > 0) await leave();
      await processor.stop();
      await wakeUps.close();
      await stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}
