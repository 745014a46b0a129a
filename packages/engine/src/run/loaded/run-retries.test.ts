import { readFile, writeFile } from "node:fs/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { adhoc } from "../../store/database/database.ts";
import { clearTasks } from "../../store/edit/clear-tasks.ts";
import { cancelRun } from "../../store/edit/end-run.ts";
import { markTasks } from "../../store/edit/mark-tasks.ts";
import { beginRunRetry } from "../../store/run/run-retry.ts";
import type { SchedulerJob } from "../job/scheduler-job.ts";

describe("retries of a failed run", () => {
  let rig: SchedulerRig;
  let scheduler: SchedulerJob;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await writeFile(rig.ledger, "");
    await rig.publish({
      "again.ts": `
        import { dag } from "tradewind";
        import { appendFileSync, existsSync, writeFileSync } from "node:fs";
        const root = ${JSON.stringify(rig.root)};
        const tell = (...words) => appendFileSync(${JSON.stringify(rig.ledger)}, words.join(" ") + "\\n");
        const told = (ctx) => tell(ctx.run.id, "run", ctx.event);
        const build = (d) => {
          const kept = d.task("kept", (_, ctx) => { tell(ctx.run.id, "kept"); return ctx.tryNumber; });
          const made = d.setup("made", (_, ctx) => { tell(ctx.run.id, "made"); return 1; });
          const fails = d.task("fails", { inputs: { kept, made }, retries: 1, retryDelay: 0 }, (_, ctx) => {
            if (ctx.tryNumber < 4) throw new Error("try " + ctx.tryNumber);
            return "try " + ctx.tryNumber;
          });
          d.task("after", { inputs: { fails } }, ({ fails }) => fails);
          d.teardown("gone", { of: made }, (_, __, ctx) => { tell(ctx.run.id, "gone"); });
        };
        const on = { onFailure: told, onSuccess: told };
        export const twice = dag("twice", { runRetries: 2, runRetryDelay: 0, ...on }, build);
        export const whole = dag("whole", { runRetries: 1, runRetryDelay: 0, runRetryFrom: "start", ...on }, build);
        export const never = dag("never", { runRetries: 1, runRetryDelay: 0, ...on }, (d) => {
          d.task("bad", () => { throw new Error("bad"); });
        });
        export const later = dag("later", { runRetries: 1, runRetryDelay: "1h", runTimeout: "2h", ...on }, (d) => {
          d.task("bad", (_, ctx) => { if (ctx.tryNumber === 1) throw new Error("bad"); });
        });
        export const driven = dag("driven", { runRetries: 1, runRetryDelay: 0, runRetryFrom: "start", endWhen: "batchDone" }, (d) => {
          d.task("stream", { lifetime: "streaming" }, async (_, ctx) => {
            tell("stream", ctx.tryNumber);
            writeFileSync(root + "/streaming_" + ctx.tryNumber, "");
            await new Promise((end) => ctx.abort.addEventListener("abort", end));
          });
          d.task("batch", async (_, ctx) => {
            while (!existsSync(root + "/streaming_" + ctx.tryNumber)) await new Promise((go) => setTimeout(go, 10));
            if (ctx.tryNumber === 1) throw new Error("bad");
          });
        });
        export const items = dag("items", { runRetries: 1, runRetryDelay: 0 }, (d) => {
          d.map("each", { over: [0, 1, 2] }, (item, _, ctx) => {
            tell("item", item);
            if (item === 1 && ctx.tryNumber === 1) throw new Error("bad");
          });
        });
        export const units = dag("units", { runRetries: 1, runRetryDelay: 0 }, (d) => {
          d.group("unit", { retries: 1, retryDelay: 0 }, (g) => {
            const session = g.task("open", (_, ctx) => ctx.tryNumber);
            g.task("send", { inputs: { session } }, ({ session }) => {
              tell("session", session);
              if (session < 3) throw new Error("refused");
            });
          });
        });
      `,
    });
    scheduler = await rig.scheduler();
  });

  const lines = async (of: string) =>
    (await readFile(rig.ledger, "utf8")).split("\n").filter((line) => line.startsWith(of));
  const callbacksOver = () =>
    rig.until(
      async () => (await rig.db.rows(adhoc("SELECT 1 FROM callback"))).length === 0,
      "the end of all callbacks",
    );
  const tryOf = async (id: number) =>
    (await rig.db.one<{ try_number: number; retry_at: Date | null }>(
      adhoc("SELECT try_number, retry_at FROM dag_run WHERE id = $1"),
      [id],
    ))!;
  const waiting = async () => {
    const id = await rig.trigger("later");
    await rig.until(async () => (await tryOf(id)).retry_at !== null, "the wait for the next try");
    return id;
  };
  const due = async (id: number) => {
    const sql = "UPDATE dag_run SET retry_at = now(), generation = generation + 1 WHERE id = $1";
    await rig.db.rows(adhoc(sql), [id]);
    rig.wakeUps.send(`run:${id}`);
  };

  it("runs the failed task, its downstream and its setup again, and keeps other results", async () => {
    const id = await rig.trigger("twice", { runId: "twice" });
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "after")).toBe("try 4");
    expect(await rig.output(id, "kept")).toBe(1);
    expect(await tryOf(id)).toEqual({ try_number: 2, retry_at: null });
    await callbacksOver();
    expect(await lines("twice run")).toEqual(["twice run success"]);
    const ran = (await lines("twice")).filter((line) => !line.includes("run"));
    // Nothing orders `kept` and the rest.
    expect(ran.filter((line) => line === "twice kept")).toHaveLength(1);
    expect(ran.filter((line) => line !== "twice kept")).toEqual([
      "twice made",
      "twice gone",
      "twice made",
      "twice gone",
    ]);
  });

  it("runs again from the start with runRetryFrom start", async () => {
    const id = await rig.trigger("whole", { runId: "whole" });
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "kept")).toBe(2);
  });

  it("fails when its tries are used up, and only then is its callback called", async () => {
    const id = await rig.trigger("never", { runId: "never" });
    expect(await rig.ended(id)).toBe("failed");
    expect(await tryOf(id)).toEqual({ try_number: 2, retry_at: null });
    expect((await rig.tasks(id)).bad?.try_number).toBe(2);
    await callbacksOver();
    expect(await lines("never run")).toEqual(["never run failure"]);
  });

  it("runs only the failed items of a map again", async () => {
    expect(await rig.ended(await rig.trigger("items"))).toBe("success");
    expect((await lines("item")).sort()).toEqual(["item 0", "item 1", "item 1", "item 2"]);
  });

  it("runs all tasks of a group with retries again", async () => {
    expect(await rig.ended(await rig.trigger("units"))).toBe("success");
    expect(await lines("session")).toEqual(["session 1", "session 2", "session 3"]);
  });

  it("opens a closed run, and runs its streaming tasks again", async () => {
    const id = await rig.trigger("driven");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.states(id)).toEqual({ stream: "success", batch: "success" });
    expect(await lines("stream")).toEqual(["stream 1", "stream 2"]);
    expect(await tryOf(id)).toEqual({ try_number: 2, retry_at: null });
  });

  it("waits as a row: the process that loads the run begins the next try when it is due", async () => {
    const id = await waiting();
    expect(await rig.states(id)).toEqual({ bad: "failed" });
    expect((await rig.run(id)).state).toBe("running");
    await scheduler.stop(0);
    scheduler = await rig.scheduler();
    await due(id);
    expect(await rig.ended(id)).toBe("success");
    expect(await tryOf(id)).toEqual({ try_number: 2, retry_at: null });
  });

  it("does not retry a cancelled run, not even in an owner that woke up late", async () => {
    const id = await waiting();
    const row = await rig.db.one<{ owner_job: number; generation: number }>(
      adhoc("SELECT owner_job, generation FROM dag_run WHERE id = $1"),
      [id],
    );
    await rig.db.transaction((tx) => cancelRun(tx, id, "cancelled"));
    rig.wakeUps.send(`run:${id}`);
    const { generation, owner_job: jobId } = row!;
    const again = [{ taskId: "bad", mapIndex: -1 }];
    const retry = { jobId, runId: id, generation, again, isDriven: false };
    expect(await beginRunRetry(rig.db, retry)).toBe(false);
    expect(await rig.states(id)).toEqual({ bad: "failed" });
    expect((await rig.run(id)).state).toBe("failed");
  });

  it("does not retry a run that times out while it waits", async () => {
    const id = await waiting();
    const sql = `UPDATE dag_run SET started_at = now() - interval '3 hours', generation = generation + 1 WHERE id = $1`;
    await rig.db.rows(adhoc(sql), [id]);
    rig.wakeUps.send(`run:${id}`);
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.run(id)).toMatchObject({ end_reason: "timed_out", try_number: 1, retry_at: null });
  });

  it("ends the wait when the failed task is marked as success, and continues at once when it is cleared", async () => {
    const [marked, cleared] = [await waiting(), await waiting()];
    const tasks = [{ taskId: "bad", mapIndex: null }];
    await rig.db.transaction((tx) =>
      markTasks(tx, { runs: [{ dagRunId: marked, tasks }], state: "success", dryRun: false }),
    );
    const clear = { only: "any", resetRuns: true, latestVersion: false, refuseRunning: false } as const;
    await rig.db.transaction((tx) =>
      clearTasks(tx, { ...clear, runs: [{ dagRunId: cleared, tasks }], dryRun: false }),
    );
    for (const id of [marked, cleared]) rig.wakeUps.send(`run:${id}`);
    expect(await rig.ended(marked)).toBe("success");
    expect(await rig.ended(cleared)).toBe("success");
    expect(await tryOf(cleared)).toEqual({ try_number: 1, retry_at: null });
  });
});
