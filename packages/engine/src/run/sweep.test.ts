import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import { pgProxy } from "../../test/support/pg-proxy.ts";
import { testDatabase } from "../../test/support/test-database.ts";
import { BundleCache } from "../code/bundle-cache.ts";
import { type Topic, WakeUps } from "../job/wake-up.ts";
import { LogFolder } from "../log/log-folder.ts";
import { silentLogger } from "../service/logger.ts";
import { adhoc, Database } from "../store/database/database.ts";
import { SchedulerJob } from "./job/scheduler-job.ts";

const RENEW_MS = 50;

describe("a scheduler without wake-ups", () => {
  const undo: (() => Promise<void>)[] = [];

  afterEach(async () => {
    for (const each of undo.splice(0).reverse()) await each();
  });

  it("sweeps at every fifth heartbeat, and does not look for expired jobs", async () => {
    const { heartbeats, asked } = await scheduler();
    await heartbeats(15);
    expect(asked("job-bury")).toBe(0);
    for (const name of ["job-peers", "claim-take-over"]) {
      expect(asked(name), name).toBeGreaterThanOrEqual(2);
      expect(asked(name), name).toBeLessThanOrEqual(5);
    }
  });

  it.each([
    ["has an expired lease", "running", "-1 s"],
    ["was just marked as dead by another job", "dead", "-1 s"],
    ["has just stopped", "stopped", "-1 s"],
  ])("looks for orphans at every heartbeat when a job %s", async (_, state, ago) => {
    const { db } = await testDatabase();
    const { heartbeats, asked } = await scheduler({ db });
    await heartbeats(1);
    await db.rows(
      adhoc(`INSERT INTO job (kind, state, hostname, pid, version, lease_until, ended_at)
             VALUES ('scheduler', $1, 'h', 1, 'test', now() + $2::interval, CASE WHEN $1 <> 'running' THEN now() END)`),
      [state, ago],
    );
    await heartbeats(8);
    expect(asked("job-bury")).toBeGreaterThanOrEqual(7);
    expect(asked("claim-take-over")).toBeGreaterThanOrEqual(7);
  });

  it("stops looking for orphans when a job ended longer ago than a lease lasts", async () => {
    const { db } = await testDatabase();
    await db.rows(
      adhoc(`INSERT INTO job (kind, state, hostname, pid, version, lease_until, ended_at)
             VALUES ('scheduler', 'dead', 'h', 1, 'test', now() - interval '7 s', now() - interval '7 s')`),
    );
    const { heartbeats, asked } = await scheduler({ db });
    await heartbeats(10);
    expect(asked("job-bury")).toBe(0);
  });

  it("sweeps at every heartbeat when wake-ups are disabled", async () => {
    const { heartbeats, asked } = await scheduler({ enabled: false });
    await heartbeats(6);
    expect(asked("job-peers")).toBeGreaterThanOrEqual(5);
  });

  it("sweeps at every heartbeat while the listening connection is down", async () => {
    const { db, url } = await testDatabase();
    const proxy = await pgProxy(url);
    const remote = Database.connect(proxy.url);
    undo.push(async () => {
      await remote.close();
      await proxy.close();
    });
    // Only the listening connection goes through the proxy.
    const { heartbeats, asked } = await scheduler({ db, listener: remote });
    proxy.set({ kind: "cut" });
    await heartbeats(6);
    expect(asked("job-peers")).toBeGreaterThanOrEqual(5);
  });

  it("sweeps at the heartbeat after a wake-up", async () => {
    const { heartbeats, asked, hear } = await scheduler();
    await heartbeats(4, () => hear("run:1"));
    expect(asked("job-peers")).toBeGreaterThanOrEqual(3);
  });

  async function scheduler(options: { enabled?: boolean; db?: Database; listener?: Database } = {}) {
    const db = options.db ?? (await testDatabase()).db;
    const wakeUps = new WakeUps(db, { enabled: options.enabled ?? true });
    if (options.listener) {
      const through = new WakeUps(options.listener);
      wakeUps.listen = (onTopic) => through.listen(onTopic);
    }
    const rows = vi.spyOn(db, "rows");
    const pipelines = vi.spyOn(db, "pipeline");
    const asked = (name: string) =>
      [
        ...rows.mock.calls.map(([statement]) => statement),
        ...pipelines.mock.calls.flatMap(([calls]) => calls.map(({ statement }) => statement)),
      ].filter((statement) => statement.name === name).length;
    const job = new SchedulerJob({
      database: db,
      executors: [],
      bundles: new BundleCache("/nowhere", async () => ({ code: "", sharedChunk: null })),
      logs: new LogFolder("/nowhere"),
      logger: silentLogger,
      wakeUps,
      version: "test",
      timetables: () => ({ poll: () => {}, stop: async () => {} }),
      lease: { ttlMs: 6_000, renewMs: RENEW_MS, marginMs: 1_000 },
    });
    await job.start();
    undo.push(async () => {
      await job.stop(0);
      await wakeUps.close();
    });
    /** Counts from the first heartbeat, without the queries at the start. */
    const heartbeats = async (count: number, between = () => {}) => {
      while (asked("job-renew") === 0) await sleep(5);
      rows.mockClear();
      for (let seen = 0; seen < count; seen = asked("job-renew")) {
        between();
        await sleep(5);
      }
      await sleep(RENEW_MS / 2);
    };
    return { heartbeats, asked, hear: (topic: Topic) => wakeUps.send(topic) };
  }
});
