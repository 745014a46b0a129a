/** Triggerers with real trigger runners on a test database. Triggers are written as source text; waits are rows. */

import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Json } from "@tradewind/sdk/manifest";
import { artefactHash } from "../../src/code/artefact-hash.ts";
import { BundleCache } from "../../src/code/bundle-cache.ts";
import { WakeUps } from "../../src/job/wake-up.ts";
import { LogFolder } from "../../src/log/log-folder.ts";
import type { LogLine } from "../../src/log/task-log.ts";
import { fetchBundle } from "../../src/process/parts/fetch-bundle.ts";
import { SecretMask } from "../../src/secret/mask.ts";
import { createLogger, silentLogger } from "../../src/service/logger.ts";
import { adhoc, Database } from "../../src/store/database/database.ts";
import { TriggerRunner } from "../../src/trigger/process/trigger-runner.ts";
import { TriggererJob } from "../../src/trigger/triggerer/triggerer-job.ts";
import type { TriggererOptions } from "../../src/trigger/triggerer/triggerer-options.ts";
import { triggerText } from "../trigger/runner-under-test.ts";
import { afterFile } from "./after-file.ts";
import { seedDag, seedRuns } from "./catalogue-seed.ts";
import { testDatabase } from "./test-database.ts";
import { seedTrigger, seedWait, type TriggerSeed, waitRow } from "./trigger-seed.ts";

export interface RunningTriggerer {
  readonly job: TriggererJob;
  readonly runner: TriggerRunner;
  stop(): Promise<void>;
}

/** Short enough for a test, long enough for a busy machine. */
const SHORT_LEASE = { ttlMs: 2_000, renewMs: 400, marginMs: 400 };
/** Heartbeats have no effect during a test. */
export const LONG_LEASE = { ttlMs: 120_000, renewMs: 60_000, marginMs: 5_000 };

export class TriggererRig {
  readonly db: Database;
  readonly url: string;
  readonly root: string;
  readonly runId: number;
  readonly #running = new Set<RunningTriggerer>();

  static async open(): Promise<TriggererRig> {
    const { db, url } = await testDatabase();
    await seedDag(db, "dag");
    const [runId = 0] = await seedRuns(db, "dag", { state: "running" });
    const rig = new TriggererRig({
      db,
      url,
      runId,
      root: await mkdtemp(join(tmpdir(), "tradewind-triggerer-")),
    });
    opened.push(rig);
    return rig;
  }

  private constructor(parts: { db: Database; url: string; root: string; runId: number }) {
    this.db = parts.db;
    this.url = parts.url;
    this.root = parts.root;
    this.runId = parts.runId;
  }

  /** Every triggerer behaves like a separate process: connected by the database only. */
  async triggerer(
    options: Partial<TriggererOptions> & { readonly url?: string } = {},
  ): Promise<RunningTriggerer> {
    const database = Database.connect(options.url ?? this.url);
    const wakeUps = new WakeUps(database);
    const logger = process.env.TRADEWIND_TEST_LOG ? createLogger({ level: "debug" }) : silentLogger;
    const services = { variable: async () => undefined, connection: async () => undefined };
    const runner = new TriggerRunner({ services, logger });
    const job = new TriggererJob({
      database,
      runner,
      bundles: new BundleCache(join(this.root, "bundles"), (hash) => fetchBundle(database, hash)),
      logs: new LogFolder(join(this.root, "logs")),
      mask: new SecretMask(),
      logger,
      wakeUps,
      version: "0",
      capacity: 100,
      queues: ["default"],
      lease: SHORT_LEASE,
      announceAfterMs: 50,
      ...options,
    });
    await job.start();
    const running: RunningTriggerer = {
      job,
      runner,
      stop: async () => {
        if (!this.#running.delete(running)) return;
        await job.stop(1_000);
        await wakeUps.close();
        await database.close();
      },
    };
    this.#running.add(running);
    return running;
  }

  /** A bundle with one kind of trigger; `body` is that of `run(args, host)`. Returns the bundle's hash. */
  async bundle(kind: string, body: string, change = (code: string) => code): Promise<string> {
    const name = kind.replaceAll(/\W/g, "_");
    const code = `// ${crypto.randomUUID()}\n${change(triggerText(kind, body))}\nexport function tradewind$classes() { return [${name}]; }\n`;
    const hash = artefactHash(code);
    await this.db.rows(adhoc("INSERT INTO bundle (hash, code) VALUES ($1, $2)"), [hash, code]);
    return hash;
  }

  /** A trigger of that bundle; triggerers are notified. */
  async trigger(kind: string, bundle: string | null, seed: TriggerSeed = {}): Promise<number> {
    // In one transaction: a triggerer that polls now must not find it without its bundle.
    return await this.db.transaction(async (tx) => {
      const id = await seedTrigger(tx, { ...seed, kind });
      await tx.rows(adhoc("UPDATE trigger SET bundle_hash = $2 WHERE id = $1"), [id, bundle]);
      return id;
    });
  }

  /** A trigger with one wait; returns both. */
  async wait(
    kind: string,
    bundle: string | null,
    seed: TriggerSeed = {},
  ): Promise<{ triggerId: number; attempt: string }> {
    // In one transaction, as by an owner: a trigger without a wait would be swept.
    const ids = await this.db.transaction(async (tx) => {
      const triggerId = await seedTrigger(tx, { ...seed, kind });
      await tx.rows(adhoc("UPDATE trigger SET bundle_hash = $2 WHERE id = $1"), [triggerId, bundle]);
      return { triggerId, attempt: await seedWait(tx, { runId: this.runId, triggerId }) };
    });
    await this.notify("triggers");
    return ids;
  }

  async notify(topic: string): Promise<void> {
    await this.db.rows(adhoc("SELECT pg_notify('tradewind', $1)"), [topic]);
  }

  /** Waits for the outcome of the wait. */
  async outcome(attempt: string, withinMs = 20_000): Promise<Json> {
    await this.until(
      async () => (await waitRow(this.db, attempt)).fired_at !== null,
      "the trigger to fire",
      withinMs,
    );
    return (await waitRow(this.db, attempt)).outcome;
  }

  async owners(): Promise<(number | null)[]> {
    const sql = "SELECT owner_job FROM trigger ORDER BY id";
    return (await this.db.rows<{ owner_job: number | null }>(adhoc(sql))).map((row) => row.owner_job);
  }

  /** Waits until the job's lease was renewed this many times. */
  async heartbeats(jobId: number, count: number): Promise<void> {
    const seen = new Set<string>();
    await this.until(async () => {
      const row = await this.db.one<{ at: string }>(
        adhoc("SELECT heartbeat_at::text AS at FROM job WHERE id = $1"),
        [jobId],
      );
      seen.add(row?.at ?? "");
      return seen.size > count;
    }, `${count} heartbeats`);
  }

  /** The lines that triggers wrote to the logs of this wait. */
  async log(attempt: string): Promise<LogLine[]> {
    const folder = join(this.root, "logs", "dag", `${this.runId}`);
    const names = await readdir(folder, { recursive: true }).catch(() => []);
    const name = names.find((each) => each.endsWith(`-${attempt}.trigger.log`));
    if (name === undefined) return [];
    const text = await readFile(join(folder, name), "utf8");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as LogLine);
  }

  /** Polls for an external condition that has no event. */
  async until(holds: () => Promise<boolean> | boolean, what: string, withinMs = 20_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!(await holds())) {
      if (performance.now() > deadline)
        throw new Error(`timed out after ${withinMs} ms waiting for: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running].map((each) => each.stop()));
    await rm(this.root, { recursive: true, force: true });
  }
}

const opened: TriggererRig[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((rig) => rig.close()));
});
