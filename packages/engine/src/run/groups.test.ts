import { readFile, writeFile } from "node:fs/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { clearRun } from "../../test/support/run-edits.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { markTasks } from "../store/edit/mark-tasks.ts";

describe("groups with retries and callbacks", () => {
  let rig: SchedulerRig;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await writeFile(rig.ledger, "");
    await rig.publish({
      "groups.ts": `
        import { dag } from "tradewind";
        import { appendFileSync, existsSync } from "node:fs";
        const root = ${JSON.stringify(rig.root)};
        const tell = (...words) => appendFileSync(root + "/ledger", words.join(" ") + "\\n");
        const told = (ctx) =>
          tell(ctx.run.id, ctx.groupId + (ctx.mapIndex < 0 ? "" : "[" + ctx.mapIndex + "]"), ctx.event, ctx.state, ctx.tryNumber);
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
        export const items = dag("items", {}, (d) => {
          const list = d.task("list", () => [1, 2, 3]);
          const m = d.mapGroup("m", { over: list, retries: 1, retryDelay: 0, ...on }, (g, item) => {
            const parts = g.task("parts", { inputs: { item } }, ({ item }, ctx) => Array.from({ length: ctx.tryNumber }, () => item));
            const each = g.map("each", { over: parts }, (n) => n * 10);
            return g.task("sum", { inputs: { each } }, async ({ each }, ctx) => {
              if (ctx.mapIndex === 2) await open(ctx);
              if (ctx.mapIndex === 1 && ctx.tryNumber === 1) throw new Error("bad");
              return each;
            });
          });
          d.task("out", { inputs: { all: m.result } }, ({ all }) => all);
        });
        export const slow = dag("slow", { runRetries: 1, runRetryDelay: 0 }, (d) => {
          const m = d.mapGroup("m", { over: [1, 2], retries: 1, retryDelay: "1h", ...on }, (g, item) => {
            const a = g.task("a", { inputs: { item } }, ({ item }) => item);
            g.task("b", { inputs: { a } }, ({ a }, ctx) => { if (a === 2 && ctx.tryNumber < 3) throw new Error("bad"); });
          });
          d.task("out", { after: m }, () => {});
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
    (await readFile(rig.ledger, "utf8"))
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
  const itemsOf = (id: number) =>
    rig.db.rows<{ map_index: number; state: string; try_number: number }>(
      adhoc("SELECT map_index, state, try_number FROM run_group WHERE dag_run_id = $1 ORDER BY map_index"),
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

  it("runs all tasks of a failed group again, and shows only its last try to outside tasks", async () => {
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

  it("retries the innermost group first, and fails without tries left", async () => {
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

  it("stores the wait for the next try, which continues after a take-over", async () => {
    const id = await waiting("waits");
    await open("waits");
    await rig.until(async () => (await rig.states(id)).beside === "success", "the end of all others");
    expect((await rig.run(id)).state).toBe("running");
    await due(id);
    expect(await rig.ended(id)).toBe("success");
    await callbacksOver();
    expect((await lines("waits")).sort()).toEqual(["g retry failed 1", "g success success 2"]);
  });

  it("runs a cleared task at once, in the same try of its group", async () => {
    const id = await waiting("cleared");
    await rig.clear(id, { tasks: ["g.bad"] });
    await open("cleared");
    expect(await rig.ended(id)).toBe("success");
    expect(await groups(id)).toEqual([{ group_id: "g", state: "success", try_number: 1 }]);
  });

  it("runs one callback for a mapped group, none for a skipped one, and one for a group that was ended manually", async () => {
    const id = await rig.trigger("told", { runId: "told" });
    await rig.until(async () => (await rig.states(id))["marked.hangs"] === "running", "the last task");
    const tasks = [{ taskId: "marked.hangs", mapIndex: null }];
    await rig.db.transaction((tx) =>
      markTasks(tx, { runs: [{ dagRunId: id, tasks }], state: "failed", dryRun: false }),
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

  it("retries one item of a mapped group, its inner map over a new list, while others continue", async () => {
    const id = await rig.trigger("items", { runId: "items" });
    await rig.until(
      async () => (await itemsOf(id)).some(({ map_index, state }) => map_index === 1 && state === "success"),
      "the end of the second try of item 1",
    );
    expect((await rig.states(id)).out).toBe("pending");
    await open("items");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "out")).toEqual([[10], [20, 20], [30]]);
    expect(await itemsOf(id)).toEqual([
      { map_index: 0, state: "success", try_number: 1 },
      { map_index: 1, state: "success", try_number: 2 },
      { map_index: 2, state: "success", try_number: 1 },
    ]);
    await callbacksOver();
    expect((await lines("items")).sort()).toEqual([
      "m[0] success success 1",
      "m[1] retry failed 1",
      "m[1] success success 2",
      "m[2] success success 1",
    ]);
  });

  it("stores the wait of an item, and runs only that item again in the next try of the run", async () => {
    const id = await rig.trigger("slow", { runId: "slow" });
    const isWaiting = async () => (await itemsOf(id)).some(({ state }) => state === "waiting");
    await rig.until(isWaiting, "the wait of item 1");
    await due(id);
    // The last try of the item fails, and so does the run, whose next try runs the item again.
    await rig.until(async () => (await rig.run(id)).state === "success", "the end");
    expect(await itemsOf(id)).toEqual([
      { map_index: 0, state: "success", try_number: 1 },
      { map_index: 1, state: "success", try_number: 3 },
    ]);
    const tries = "SELECT map_index, try_number FROM task_instance WHERE dag_run_id = $1 AND task_id = 'm.a'";
    expect(await rig.db.rows(adhoc(`${tries} ORDER BY map_index`), [id])).toEqual([
      { map_index: 0, try_number: 1 },
      { map_index: 1, try_number: 3 },
    ]);
    await callbacksOver();
    expect((await lines("slow")).sort()).toEqual([
      "m[0] success success 1",
      "m[1] failure failed 2",
      "m[1] retry failed 1",
      "m[1] success success 3",
    ]);
  });

  it("runs only the whole failed item again when the failed tasks of a run are cleared", async () => {
    const id = await rig.trigger("slow", { runId: "cleared-item" });
    await rig.until(
      async () => (await itemsOf(id)).map(({ state }) => state).join() === "success,waiting",
      "the end of item 0 and the wait of item 1",
    );
    await rig.db.transaction((tx) => clearRun(tx, id, { only: "failed" }));
    // The attempts of cleared tasks are archived in the transaction of the clear.
    const cleared = "SELECT task_id, map_index FROM task_attempt WHERE dag_run_id = $1 ORDER BY task_id";
    expect(await rig.db.rows(adhoc(cleared), [id])).toEqual([
      { task_id: "m.a", map_index: 1 },
      { task_id: "m.b", map_index: 1 },
    ]);
    expect((await itemsOf(id))[0]).toEqual({ map_index: 0, state: "success", try_number: 1 });
  });
});
