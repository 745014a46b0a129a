import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../test/support/test-database.ts";
import type { Database } from "../store/database/database.ts";
import { expireDeadJobs, liveDrivers } from "../store/job/job-lease.ts";
import { Lease } from "./lease.ts";

describe("a job's lease", () => {
  let db: Database;
  const who = { kind: "scheduler", hostname: "here", pid: 1, version: "0" } as const;
  const open = async (ttlMs: number) => {
    const lease = new Lease(db, who, { ttlMs, renewMs: ttlMs / 3, marginMs: ttlMs / 4 });
    await lease.acquire();
    return lease;
  };

  beforeAll(async () => {
    db = (await testDatabase()).db;
  });

  it("is trusted for less than its duration", async () => {
    const lease = await open(2_000);
    expect(lease.isTrusted()).toBe(true);
    await sleep(1_510);
    expect(lease.isTrusted()).toBe(false);
    expect(await lease.renew()).toBe(true);
    expect(lease.isTrusted()).toBe(true);
    expect(lease.mayJudge()).toBe(true);
  });

  it("continues after an unnoticed lapse, but declares no job dead for a while", async () => {
    const lease = await open(1_000);
    await sleep(1_050);
    expect(await lease.renew()).toBe(true);
    expect(lease.mayJudge()).toBe(false);
    await sleep(1_010);
    expect(lease.mayJudge()).toBe(true);
  });

  it("is lost permanently after another job declared it dead", async () => {
    const lease = await open(1_000);
    const other = await open(60_000);
    expect(await liveDrivers(db, other.jobId)).toContain(lease.jobId);
    await sleep(1_050);
    expect((await expireDeadJobs(db)).map((job) => job.id)).toContain(lease.jobId);
    expect(await lease.renew()).toBe(false);
    const former = lease.jobId;
    await lease.acquire();
    expect(lease.jobId).not.toBe(former);
    expect(await lease.renew()).toBe(true);
  });

  it("follows the database's clock", async () => {
    const lease = await open(60_000);
    expect(Math.abs(lease.now() - Date.now())).toBeLessThan(2_000);
  });
});
