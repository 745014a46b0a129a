import { afterEach, expect, it, vi } from "vitest";
import { waitingForLock } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { silentLogger } from "../../service/logger.ts";
import { adhoc, type Database } from "../../store/database/database.ts";
import { JobHeartbeat } from "./job-heartbeat.ts";

afterEach(() => {
  vi.useRealTimers();
});

it("registers a new job after its job was declared dead", async () => {
  const { db } = await testDatabase();
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const heartbeat = new JobHeartbeat("api", db, silentLogger);
  await heartbeat.start();
  await db.rows(adhoc("UPDATE job SET state = 'dead'"));
  vi.advanceTimersByTime(10_000);
  await heartbeat.stop();
  expect(await states(db)).toEqual(["dead"]);

  const second = new JobHeartbeat("api", db, silentLogger);
  await second.start();
  await db.rows(adhoc("UPDATE job SET state = 'dead'"));
  vi.advanceTimersByTime(10_000);
  await vi.waitFor(async () => expect(await states(db)).toEqual(["dead", "dead", "running"]));
  await second.stop();
  expect(await states(db)).toEqual(["dead", "dead", "stopped"]);
});

it("registers no job after stop, even with a beat in progress", async () => {
  const { db } = await testDatabase();
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const heartbeat = new JobHeartbeat("api", db, silentLogger);
  await heartbeat.start();
  const stopping = await db.transaction(async (tx) => {
    await tx.rows(adhoc("UPDATE job SET state = 'dead'"));
    vi.advanceTimersByTime(30_000);
    await waitingForLock(db);
    return { done: heartbeat.stop() };
  });
  await stopping.done;
  expect(await states(db)).toEqual(["dead"]);
});

async function states(db: Database): Promise<string[]> {
  return (await db.rows<{ state: string }>(adhoc("SELECT state FROM job ORDER BY id"))).map(
    (row) => row.state,
  );
}
