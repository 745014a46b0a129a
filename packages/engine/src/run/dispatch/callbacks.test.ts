import { readFile, rename, writeFile } from "node:fs/promises";
import { Writable } from "node:stream";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { TryLogReader } from "../../api/task/log-files.ts";
import { artefactHash } from "../../code/artefact-hash.ts";
import { LogFolder } from "../../log/log-folder.ts";
import { createLogger } from "../../service/logger.ts";
import { adhoc } from "../../store/database/database.ts";
import type { TaskInstanceRow } from "../../store/list/task-instances.ts";
import { LEASE } from "../job/dag-run-job-options.ts";

describe("a callback whose owner lives", () => {
  let rig: SchedulerRig;
  let runId: number;
  let log = "";

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await writeFile(rig.ledger, "");
    await rig.publish({
      "told.ts": `
        import { dag } from "tradewind";
        import { appendFileSync } from "node:fs";
        export default dag("told", { onFailure: () => appendFileSync(${JSON.stringify(rig.ledger)}, "told\\n") }, (d) => {
          d.task("only", () => {});
        });
      `,
    });
    const stream = new Writable({
      write: (chunk, _, done) => {
        log += String(chunk);
        done();
      },
    });
    const logger = createLogger({ stream, format: "json" });
    // A sweep each second instead of each tenth.
    await rig.scheduler({ logger, lease: { ...LEASE, renewMs: 200 } });
    runId = await rig.trigger("told");
    await rig.ended(runId);
  });

  it("runs once, although the scheduler was not notified that its row was stored", async () => {
    await store();
    await rig.until(async () => (await stored()) === 0, "the callback's end", 15_000);
    expect(await told()).toBe(1);
  });

  it("runs at a later heartbeat if it could not be submitted", async () => {
    const bundles = `${rig.root}/home/bundles`;
    // A version of its own, whose code is not on this disk yet and cannot be put there.
    const whole = await rig.db.one<{ text: string }>(
      adhoc(
        "SELECT b.head || p.code || b.code || E'\\n' AS text FROM bundle b JOIN shared_chunk p ON p.hash = shared_chunk_hash",
      ),
    );
    await rig.db.rows(
      adhoc(`WITH b AS (INSERT INTO bundle (hash, head, shared_chunk_hash, code)
                        SELECT $1, head, shared_chunk_hash, code || E'\\n' FROM bundle LIMIT 1 RETURNING hash),
                  v AS (INSERT INTO dag_version (dag_id, number, bundle_hash, manifest, source)
                        SELECT v.dag_id, 2, b.hash, v.manifest, v.source FROM dag_version v, b LIMIT 1 RETURNING id)
             UPDATE dag_run SET version_id = v.id FROM v`),
      [artefactHash(whole?.text ?? "")],
    );
    await rename(bundles, `${bundles}.away`);
    await writeFile(bundles, "in the way");
    await store();
    await rig.until(
      async () => log.includes("callback could not be submitted, retrying"),
      "the submission to fail",
      15_000,
    );
    await rename(bundles, `${bundles}.gone`);
    await rename(`${bundles}.away`, bundles);
    await rig.until(async () => (await stored()) === 0, "the callback's end", 30_000);
    expect(await told()).toBe(2);
  });

  /** Like a batch whose answer was lost: the row is stored, and no process submits it. */
  async function store(): Promise<void> {
    await rig.db.rows(
      adhoc(`INSERT INTO callback (id, dag_run_id, event, owner_job, created_at)
             SELECT gen_random_uuid(), $1, 'failure', id, now() - interval '1 minute' FROM job
             WHERE kind = 'scheduler' AND state = 'running'`),
      [runId],
    );
  }

  async function stored(): Promise<number> {
    return (await rig.db.rows(adhoc("SELECT 1 FROM callback"))).length;
  }

  async function told(): Promise<number> {
    return (await readFile(rig.ledger, "utf8")).split("told").length - 1;
  }
});

describe("a run that takes too long", () => {
  it("fails what runs or waits for its next try, and calls their callbacks and the run's once each", async () => {
    const rig = await SchedulerRig.open();
    await writeFile(rig.ledger, "");
    await rig.publish({
      "late.ts": `
        import { dag } from "tradewind";
        import { appendFileSync } from "node:fs";
        import { setTimeout as sleep } from "node:timers/promises";
        const told = (ctx) => appendFileSync(${JSON.stringify(rig.ledger)}, [ctx.event, ctx.taskId ?? "run"].join(" ") + "\\n");
        export default dag("late", { runTimeout: "3s", onFailure: told, onSuccess: told }, (d) => {
          const slow = d.task("slow", { retries: 3, onFailure: told, onRetry: told }, () => sleep(60_000));
          d.task("never", { after: slow, onFailure: told }, () => {});
          d.task("flaky", { retries: 1, retryDelay: "1h", onFailure: told }, () => { throw new Error("flaked"); });
        });
      `,
    });
    await rig.scheduler();
    const id = await rig.trigger("late");
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.states(id)).toEqual({ slow: "failed", never: "skipped", flaky: "failed" });
    const lines = async () => (await readFile(rig.ledger, "utf8")).split("\n").filter(Boolean).sort();
    await rig.until(async () => (await lines()).length >= 3, "all callbacks");
    await rig.until(
      async () => (await rig.db.rows(adhoc("SELECT 1 FROM callback"))).length === 0,
      "the end of all callbacks",
    );
    expect(await lines()).toEqual(["failure flaky", "failure run", "failure slow"]);
  });
});

describe("what a callback does", () => {
  it("does not change the outcome it reports, and writes to the log of the try", async () => {
    const rig = await SchedulerRig.open();
    await writeFile(rig.ledger, "");
    await rig.publish({
      "after.ts": `
        import { dag } from "tradewind";
        import { appendFileSync } from "node:fs";
        import { setTimeout as sleep } from "node:timers/promises";
        const tell = (line) => appendFileSync(${JSON.stringify(rig.ledger)}, line + "\\n");
        export default dag("after", (d) => {
          const onFailure = (ctx) => tell("failed " + ctx.taskId);
          const late = { timeout: "1s", onFailure, onSuccess: async (ctx) => { ctx.log.info("slowly told"); await sleep(2_500); tell("late told"); } };
          const slow = d.task("slow", late, () => 1);
          d.task("exits", { onFailure, onSuccess: () => { tell("exits"); process.exit(1); } }, () => 2);
          d.task("floats", { onFailure, onSuccess: async () => { Promise.reject(new Error("floating")); await sleep(50); } }, () => 3);
          d.task("fails", { retries: 1, retryDelay: 0, onRetry: (ctx) => tell("retry " + ctx.tryNumber), onFailure: () => { tell("fails"); process.exit(0); } }, () => { throw new Error("the cause"); });
          d.task("next", { after: slow }, () => tell("next"));
        });
      `,
    });
    await rig.scheduler();
    const id = await rig.trigger("after");
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.states(id)).toEqual({
      ...{ slow: "success", exits: "success", floats: "success", next: "success", fails: "failed" },
    });
    expect((await rig.tasks(id)).fails).toMatchObject({ reason: "Error: the cause", try_number: 2 });
    const left = adhoc("SELECT 1 FROM callback");
    await rig.until(async () => (await rig.db.rows(left)).length === 0, "the end of all callbacks");
    const lines = (await readFile(rig.ledger, "utf8")).split("\n").filter(Boolean);
    expect(lines.toSorted()).toEqual(["exits", "fails", "late told", "next", "retry 1"]);
    // No task waits for it.
    expect(lines.indexOf("next")).toBeLessThan(lines.indexOf("late told"));
    const row = { dag_id: "after", dag_run_id: id, task_id: "slow", map_index: -1 } as TaskInstanceRow;
    const log = await new TryLogReader(new LogFolder(`${rig.root}/home/logs`), row, 1).read(0, 100_000);
    expect(log.lines.map(({ message }) => message)).toContain("slowly told");
  });
});
