import { beforeAll, describe, expect, it } from "vitest";
import { clearRun } from "../../test/support/run-edits.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { cancelRun } from "../store/edit/end-run.ts";
import { markTasks } from "../store/edit/mark-tasks.ts";

describe("edits of an active run", () => {
  let rig: SchedulerRig;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await rig.publish({
      "edits.ts": `
        import { dag } from "tradewind";
        import { appendFileSync, existsSync } from "node:fs";
        const root = ${JSON.stringify(rig.root)};
        export default dag("edits", {}, (d) => {
          const gate = d.task("gate", async (_, ctx) => {
            appendFileSync(root + "/starts", ctx.run.id + " " + ctx.tryNumber + " " + process.pid + "\\n");
            while (!existsSync(root + "/open_" + ctx.run.id)) await new Promise((go) => setTimeout(go, 10));
            return ctx.tryNumber;
          });
          d.task("after", { inputs: { gate } }, ({ gate }) => gate);
        });
        export const bad = dag("bad", {}, (d) => {
          const first = d.task("first", () => { if (!existsSync(root + "/fixed")) throw new Error("broken"); return 1; });
          d.task("second", { inputs: { first } }, ({ first }) => first + 1);
        });
        export const slow = dag("slow", {}, (d) => { const a = d.task("a", () => {}); d.task("b", { after: [a] }, () => {}); });
      `,
    });
    await rig.scheduler();
  });

  const running = async (name: string) => {
    const id = await rig.trigger("edits", { runId: name });
    await rig.until(async () => (await rig.states(id)).gate === "running", "the gate to run");
    return id;
  };
  const edited = async (id: number, edit: Promise<unknown>) => {
    await edit;
    rig.wakeUps.send(`run:${id}`);
  };
  const clearAll = (id: number, only: "any" | "failed" = "any") =>
    rig.db.transaction((tx) => clearRun(tx, id, { only }));
  const open = async (name: string) =>
    (await import("node:fs")).writeFileSync(`${rig.root}/open_${name}`, "");

  it("kills a cleared running task, then runs it again as a new try", async () => {
    const id = await running("clear");
    const before = (await rig.tasks(id)).gate;
    await edited(id, clearAll(id));
    await rig.until(async () => (await rig.tasks(id)).gate?.try_number === 2, "the second try");
    expect(() => process.kill(before?.pid ?? 0, 0)).toThrow();
    await open("clear");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "after")).toBe(2);
    const history = await rig.db.rows(adhoc("SELECT attempt FROM task_attempt WHERE dag_run_id = $1"), [id]);
    expect(history).toEqual([{ attempt: before?.attempt }]);
  });

  it("stops a running task that is marked as success, and runs its downstream", async () => {
    const id = await running("mark");
    const { pid } = (await rig.tasks(id)).gate ?? {};
    const tasks = [{ taskId: "gate", mapIndex: -1 }];
    const mark = { runs: [{ dagRunId: id, tasks }], state: "success", dryRun: false } as const;
    await edited(
      id,
      rig.db.transaction((tx) => markTasks(tx, mark)),
    );
    await rig.until(async () => (await rig.states(id)).after !== "pending", "the downstream to start");
    await rig.until(async () => !alive(pid), "the process to be gone");
    expect((await rig.tasks(id)).gate?.state).toBe("success");
    await rig.ended(id);
  });

  it("ends a cancelled run at once and kills its process", async () => {
    const id = await running("cancel");
    const { pid } = (await rig.tasks(id)).gate ?? {};
    await edited(
      id,
      rig.db.transaction((tx) => cancelRun(tx, id, "cancelled by a test")),
    );
    expect(await rig.run(id)).toMatchObject({ state: "failed", end_reason: "cancelled by a test" });
    expect(await rig.states(id)).toEqual({ gate: "failed", after: "skipped" });
    await rig.until(async () => !alive(pid), "the process to be gone");
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it("resumes an ended run whose failed tasks are cleared", async () => {
    const id = await rig.trigger("bad");
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.states(id)).toEqual({ first: "failed", second: "upstream_failed" });
    (await import("node:fs")).writeFileSync(`${rig.root}/fixed`, "");
    await edited(id, clearAll(id, "failed"));
    await rig.until(async () => (await rig.run(id)).state === "success", "the run to succeed");
    expect(await rig.output(id, "second")).toBe(2);
  });

  it("starts nothing new in a paused DAG, and continues when it is unpaused", async () => {
    await rig.db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id = 'slow'"));
    rig.wakeUps.send("dags");
    const id = await rig.trigger("slow");
    const other = await rig.trigger("bad");
    await rig.ended(other);
    expect((await rig.run(id)).state).toBe("queued");
    await rig.db.rows(adhoc("UPDATE dag SET is_paused = false WHERE dag_id = 'slow'"));
    rig.wakeUps.send("dags");
    expect(await rig.ended(id)).toBe("success");
  });
});

describe("several schedulers", () => {
  it("share the runs, create each due run once, and continue when one stops", async () => {
    const rig = await SchedulerRig.open();
    await rig.publish({
      "ticks.ts": `
        import { dag, every } from "tradewind";
        export default dag("ticks", { schedule: every("200ms"), start: "${new Date(Date.now() - 2_000).toISOString()}", catchup: true, maxActiveRuns: 50 }, (d) => {
          const a = d.task("a", () => 1);
          d.task("b", { inputs: { a } }, ({ a }) => a + 1);
        });
      `,
    });
    const first = await rig.scheduler({ shared: false });
    await rig.scheduler({ shared: false });
    await rig.scheduler({ shared: false });
    const count = async () =>
      (await rig.db.one<{ n: number }>(adhoc("SELECT count(*) AS n FROM dag_run WHERE state = 'success'")))
        ?.n ?? 0;
    await rig.until(async () => (await count()) >= 15, "15 runs");
    await first.stop(0);
    const seen = await count();
    await rig.until(async () => (await count()) >= seen + 10, "10 more runs after one scheduler left");
    const rows = await rig.db.rows<{ logical_date: Date }>(
      adhoc("SELECT logical_date FROM dag_run ORDER BY logical_date"),
    );
    const dates = rows.map((row) => row.logical_date.getTime());
    expect(dates).toEqual(dates.map((_, i) => (dates[0] ?? 0) + i * 200));
  });

  it("continue the runs of a stopped scheduler, without using up a try", async () => {
    const rig = await SchedulerRig.open();
    await rig.publish({
      "long.ts": `
        import { dag } from "tradewind";
        import { existsSync } from "node:fs";
        export default dag("long", {}, (d) => {
          const wait = d.task("wait", async () => { while (!existsSync(${JSON.stringify(`${rig.root}/go`)})) await new Promise((r) => setTimeout(r, 10)); });
          d.task("after", { after: [wait] }, () => {});
        });
      `,
    });
    const first = await rig.scheduler({ shared: false });
    const id = await rig.trigger("long");
    await rig.until(async () => (await rig.states(id)).wait === "running", "the task to run");
    await first.stop(0);
    await rig.scheduler({ shared: false });
    await rig.until(async () => (await rig.states(id)).wait === "running", "the task to run again");
    (await import("node:fs")).writeFileSync(`${rig.root}/go`, "");
    expect(await rig.ended(id)).toBe("success");
    expect((await rig.tasks(id)).wait).toMatchObject({ state: "success", try_number: 1 });
    expect(await rig.poolsAreExact()).toBe(true);
  });
});

function alive(pid: number | null | undefined): boolean {
  try {
    return pid ? process.kill(pid, 0) : false;
  } catch {
    return false;
  }
}
