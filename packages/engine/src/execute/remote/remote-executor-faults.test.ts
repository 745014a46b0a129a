import { randomUUID } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { DatabaseFaults } from "../../../test/support/faulty-database.ts";
import { openTransaction } from "../../../test/support/open-transaction.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { LogFolder } from "../../log/log-folder.ts";
import { SecretBox } from "../../secret/secret-box.ts";
import { type Logger, silentLogger } from "../../service/logger.ts";
import { adhoc, type Database } from "../../store/database/database.ts";
import type { AttemptAssignment, ExecutorEvent } from "../contract.ts";
import type { Launcher, LaunchRequest } from "./launcher.ts";
import { RemoteExecutor } from "./remote-executor.ts";

/** A launcher that launches nothing. */
class Launches implements Launcher {
  readonly requests: LaunchRequest[] = [];
  async start(): Promise<void> {}
  launch(requests: readonly LaunchRequest[]): void {
    this.requests.push(...requests);
  }
  async stop(): Promise<void> {}
}

async function open(logger: Logger = silentLogger) {
  const { db } = await testDatabase();
  const faults = new DatabaseFaults(db);
  const launcher = new Launches();
  const events: ExecutorEvent[] = [];
  const executor = new RemoteExecutor({
    ...{
      name: "far",
      type: "module",
      logs: new LogFolder("/nowhere"),
      database: faults.database,
      launcher,
      parallelism: 3,
      logger,
    },
    secretBox: new SecretBox([Buffer.alloc(32, 7)]),
    onCancels: () => {},
  });
  await executor.start((event) => events.push(event));
  onTestFinished(() => executor.stop());
  return { db, events, executor, faults, launcher, run: await addRun(db) };
}

async function addRun(db: Database): Promise<number> {
  await db.rows(adhoc("INSERT INTO bundle (hash, code) VALUES ('hash', '')"));
  await db.rows(adhoc("INSERT INTO dag (dag_id, file, is_paused) VALUES ('d', 'd.ts', false)"));
  const [row] = await db.rows<{ id: number }>(
    adhoc(`WITH v AS (INSERT INTO dag_version (dag_id, number, bundle_hash, manifest, source)
                      VALUES ('d', 1, 'hash', '{"tasks": []}', '') RETURNING id)
           INSERT INTO dag_run (dag_id, run_id, run_type, state, conf, version_id, triggered_by, run_after)
           SELECT 'd', 'r', 'manual', 'running', '{}', v.id, 'rest_api', now() FROM v RETURNING id`),
  );
  return row!.id;
}

function assignment(dagRunId: number, more: Partial<AttemptAssignment> = {}): AttemptAssignment {
  const run = {
    ...{
      dagId: "d",
      runId: "r",
      runType: "manual",
      logicalDate: null,
      intervalStart: null,
      intervalEnd: null,
    },
    ...{ runAfter: "2026-01-01T00:00:00.000Z", startedAt: null, version: 1 },
  } as const;
  return {
    ...{ kind: "attempt", id: randomUUID(), dagRunId, taskId: "t", mapIndex: -1, tryNumber: 1, maxTries: 0 },
    ...{ bundleHash: "hash", queue: "default", priority: 1, resumePoint: null, elapsedMs: 0, inputs: {} },
    ...{ timeoutMs: null, memoryMb: null, isolation: "warm", logKey: "log", run, conf: {} },
    ...more,
  };
}

const until = async (holds: () => boolean | Promise<boolean>) => {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
};
const count = async (db: Database) =>
  (await db.one<{ n: number }>(adhoc("SELECT count(*)::int AS n FROM assignment")))!.n;

describe("a remote executor", () => {
  it("launches what is stored, and counts it until its end is stored", async () => {
    const { executor, launcher, run } = await open();
    const work = [assignment(run), assignment(run, { priority: 9 })];
    executor.submit(work);
    expect(executor.freeSlots()).toBe(1);
    expect(executor.isStored(work[0]!.id)).toBe(false);
    await until(() => launcher.requests.length === 2);
    expect(launcher.requests).toMatchObject(work.map(({ id, priority, queue }) => ({ id, priority, queue })));
    expect(executor.isStored(work[0]!.id)).toBe(true);
    executor.forget(work.map(({ id }) => id));
    expect(executor.freeSlots()).toBe(3);
  });

  it("stores the others when the database rejects one assignment", async () => {
    const { db, events, executor, launcher, run } = await open();
    const invalid = assignment(run, { taskId: "nul \u0000" });
    executor.submit([assignment(run), invalid, assignment(run)]);
    await until(() => events.length > 0);
    expect(events).toMatchObject([
      {
        type: "ended",
        attempt: invalid.id,
        outcome: { kind: "failed", error: { code: "TASK_NOT_DISPATCHED" } },
      },
    ]);
    await until(() => launcher.requests.length === 2);
    expect(await count(db)).toBe(2);
  });

  it("stores an assignment after an edit has kept its run locked for long", async () => {
    const retries = Promise.withResolvers<void>();
    const { db, events, executor, launcher, run } = await open({
      ...silentLogger,
      warn: () => retries.resolve(),
    });
    const edit = await openTransaction(db, (tx) =>
      tx.rows(adhoc("SELECT FROM dag_run WHERE id = $1 FOR UPDATE"), [run]),
    );
    executor.submit([assignment(run)]);
    await retries.promise;
    await edit.commit();
    await until(() => launcher.requests.length === 1);
    expect(events).toEqual([]);
  });

  it("ends an attempt that is cancelled before it is stored, and stores nothing", async () => {
    const { db, events, executor, faults, run } = await open();
    const insert = faults.holds("assignment-insert");
    const one = assignment(run);
    executor.submit([one]);
    await insert.held;
    executor.cancel(one.id, "test");
    await until(() => events.length > 0);
    expect(events).toMatchObject([{ attempt: one.id, outcome: { kind: "cancelled" } }]);
    insert.letThrough();
    await executor.stop();
    expect(await count(db)).toBe(0);
  });

  it("ends an attempt whose row is gone when it is cancelled", async () => {
    const { db, events, executor, launcher, run } = await open();
    const one = assignment(run);
    executor.submit([one]);
    await until(() => launcher.requests.length === 1);
    await db.rows(adhoc("DELETE FROM assignment"));
    executor.cancel(one.id, "test", { isLost: true });
    await until(() => events.length > 0);
    expect(events).toMatchObject([{ attempt: one.id, outcome: { kind: "lost", reason: "test" } }]);
  });

  it("reports as lost what it could not store until it was stopped", async () => {
    const { events, executor, faults, run } = await open();
    faults.kill();
    const one = assignment(run);
    executor.submit([one]);
    await executor.stop();
    expect(events).toMatchObject([{ type: "ended", attempt: one.id, outcome: { kind: "lost" } }]);
  });
});
