import { readFile, writeFile } from "node:fs/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database.ts";
import { runEdits } from "../store/run-edit.ts";

describe("groups with retries and callbacks", () => {
  let rig: SchedulerRig;
  let ledger: string;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    ledger = `${rig.root}/ledger`;
    await writeFile(ledger, "");
    await rig.publish({
      "groups.ts": `
        import { dag } from "tradewind";
        import { appendFileSync, existsSync } from "node:fs";
        const root = ${JSON.stringify(rig.root)};
        const tell = (...words) => appendFileSync(root + "/ledger", words.join(" ") + "\\n");
        const told = (ctx) => tell(ctx.run.id, ctx.groupId, ctx.event, ctx.state, ctx.tryNumber);
        const on = { onSuccess: told, onFailure: told, onRetry: told };
        const open = async (ctx) => {
          while (!existsSync(root + "/open_" + ctx.run.id)) await new Promise((go) => setTimeout(go, 10));
        };
        export const unit = dag("unit", {}, (d) => {
          const g = d.group("g", { retries: 1, retryDelay: 0, ...on }, (g) => {
            const a = g.task("a", (_, ctx) => ctx.tryNumber);
            g.task("b", { inputs: { a } }, ({ a }) => { if (a === 1) throw new Error("bad"); return a; });
            return a;
          });
          d.task("out", { inputs: { a: g.result } }, ({ a }) => a);
          d.task("always", { after: g, rule: "allDone" }, () => {});
        });
        export const used = dag("used", {}, (d) => {
          const g = d.group("g", { retries: 1, retryDelay: 0, ...on }, (g) => {
            g.group("inner", { retries: 1, retryDelay: 0, ...on }, (h) => { h.task("bad", () => { throw new Error("bad"); }); });
          });
          d.task("out", { after: g }, () => {});
        });
        export const later = dag("later", {}, (d) => {
          d.group("g", { retries: 1, retryDelay: "1h", ...on }, (g) => {
            g.task("bad", (_, ctx) => { if (ctx.tryNumber === 1) throw new Error("bad"); });
          });
          d.task("beside", async (_, ctx) => open(ctx));
        });
        export const told3 = dag("told", {}, (d) => {
          d.mapGroup("m", { over: [1, 2, 3], ...on }, (g, item) => { g.task("each", { inputs: { item } }, ({ item }) => item); });
          const none = d.branch("none", () => null);
          d.group("skipped", { after: none, ...on }, (g) => { g.task("never", () => {}); });
          d.group("marked", on, (g) => { g.task("hangs", async (_, ctx) => open(ctx)); });
        });
      `,
    });
    await rig.scheduler();
  });

  const lines = async (of: string) =>
    (await readFile(ledger, "utf8"))
      .split("\n")
      .filter((line) => line.startsWith(`${of} `))
      .map((line) => line.slice(of.length + 1));
  const callbacksOver = () =>
    rig.until(
      async () => (await rig.db.rows(adhoc("SELECT 1 FROM callback"))).length === 0,
      "the end of all callbacks",
    );
  const groups = (id: number) =>
    rig.db.rows(
      adhoc("SELECT group_id, state, try_number FROM run_group WHERE dag_run_id = $1 ORDER BY group_id"),
      [id],
    );
  const waiting = async (runId: string) => {
    const id = await rig.trigger("later", { runId });
    await rig.until(
      async () => (await groups(id)).some((group) => (group as { state: string }).state === "waiting"),
      "the wait for the next try",
    );
    return id;
  };
  const due = async (id: number) => {
    await rig.db.transaction(async (tx) => {
      await tx.rows(adhoc("SELECT 1 FROM dag_run WHERE id = $1 FOR UPDATE"), [id]);
      await tx.rows(adhoc("UPDATE run_group SET retry_at = now() WHERE dag_run_id = $1"), [id]);
      await tx.rows(adhoc("UPDATE dag_run SET generation = generation + 1 WHERE id = $1"), [id]);
    });
    rig.wakeUps.send(`run:${id}`);
  };
  const open = (runId: string) => writeFile(`${rig.root}/open_${runId}`, "");

  it("all of a failed group runs again, and what is outside sees only its last try", async () => {
    const id = await rig.trigger("unit", { runId: "unit" });
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "out")).toBe(2);
    const tasks = await rig.tasks(id);
    expect(
      Object.values(tasks)
        .map(({ task_id, try_number }) => `${task_id} ${try_number}`)
        .sort(),
    ).toEqual(["always 1", "g.a 2", "g.b 2", "out 1"]);
    expect(await groups(id)).toEqual([{ group_id: "g", state: "success", try_number: 2 }]);
    const attempts = "SELECT task_id, state FROM task_attempt WHERE dag_run_id = $1 ORDER BY task_id";
    expect(await rig.db.rows(adhoc(attempts), [id])).toEqual([
      { task_id: "g.a", state: "success" },
      { task_id: "g.b", state: "failed" },
    ]);
    await callbacksOver();
    expect((await lines("unit")).sort()).toEqual(["g retry failed 1", "g success success 2"]);
  });

  it("the innermost group goes first; when no tries are left, the failure counts as any", async () => {
    const id = await rig.trigger("used", { runId: "used" });
    expect(await rig.ended(id)).toBe("failed");
    expect((await rig.tasks(id))["g.inner.bad"]?.try_number).toBe(4);
    expect((await rig.states(id)).out).toBe("upstream_failed");
    await callbacksOver();
    expect((await lines("used")).sort()).toEqual([
      "g failure failed 2",
      "g retry failed 1",
      "g.inner failure failed 2",
      "g.inner failure failed 4",
      "g.inner retry failed 1",
      "g.inner retry failed 3",
    ]);
  });

  it("waits as a row: whoever reads the run again goes on with it when it is due", async () => {
    const id = await waiting("waits");
    await open("waits");
    await rig.until(async () => (await rig.states(id)).beside === "success", "the end of all others");
    expect((await rig.run(id)).state).toBe("running");
    await due(id);
    expect(await rig.ended(id)).toBe("success");
    await callbacksOver();
    expect((await lines("waits")).sort()).toEqual(["g retry failed 1", "g success success 2"]);
  });

  it("a cleared task goes on at once, in the same try of its group", async () => {
    const id = await waiting("cleared");
    const tasks = [{ taskId: "g.bad", mapIndex: null }];
    const clear = { only: "any", resetRuns: true, latestVersion: false, refuseRunning: false } as const;
    await rig.db.transaction((tx) =>
      runEdits.clearTasks(tx, { ...clear, runs: [{ dagRunId: id, tasks }], dryRun: false }),
    );
    rig.wakeUps.send(`run:${id}`);
    await open("cleared");
    expect(await rig.ended(id)).toBe("success");
    expect(await groups(id)).toEqual([{ group_id: "g", state: "success", try_number: 1 }]);
  });

  it("a mapped group is told of once, a skipped one not at all, one that was ended by hand like any other", async () => {
    const id = await rig.trigger("told", { runId: "told" });
    await rig.until(async () => (await rig.states(id))["marked.hangs"] === "running", "the last task");
    const tasks = [{ taskId: "marked.hangs", mapIndex: null }];
    await rig.db.transaction((tx) =>
      runEdits.markTasks(tx, { runs: [{ dagRunId: id, tasks }], state: "failed", dryRun: false }),
    );
    rig.wakeUps.send(`run:${id}`);
    expect(await rig.ended(id)).toBe("failed");
    await callbacksOver();
    expect((await lines("told")).sort()).toEqual(["m success success 1", "marked failure failed 1"]);
    expect(await groups(id)).toEqual([
      { group_id: "m", state: "success", try_number: 1 },
      { group_id: "marked", state: "failed", try_number: 1 },
      { group_id: "skipped", state: "skipped", try_number: 1 },
    ]);
  });
});
