import { writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { clearRun } from "../../test/support/run-edits.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";

describe("mapped tasks", () => {
  let rig: SchedulerRig;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await rig.publish({
      "maps.ts": `
        import { cross, dag, Operator, TimeDeltaTrigger, zip } from "tradewind";
        import { existsSync, readFileSync } from "node:fs";
        const root = ${JSON.stringify(rig.root)};
        const opened = async (name) => {
          while (!existsSync(root + "/" + name)) await new Promise((go) => setTimeout(go, 10));
        };

        export const flat = dag("flat", {}, (d) => {
          const list = d.task("list", (_, ctx) => Array.from({ length: Number(ctx.params.length ?? 3) }, (_, n) => n));
          const twice = d.map("twice", { over: list, limit: 4 }, (n) => n * 2);
          d.task("sum", { inputs: { twice } }, ({ twice }) => twice.reduce((a, b) => a + b, 0));
        });

        export const nested = dag("nested", {}, (d) => {
          const regions = d.task("regions", () => [["a", "b"], ["c"]]);
          const all = d.mapGroup("region", { over: regions }, (g, members) => {
            const loud = g.map("loud", { over: members }, (name) => name.toUpperCase());
            return g.task("join", { inputs: { loud, members } }, ({ loud, members }) => loud.join("") + members.length);
          });
          d.task("report", { inputs: { all: all.result } }, ({ all }) => all);
        });

        class Later extends Operator {
          execute() { return this.defer({ trigger: new TimeDeltaTrigger({ delta: 5 }), method: "later" }); }
          later() { return this.args.name + "!"; }
        }
        export const waiting = dag("waiting", {}, (d) => {
          const pairs = cross(["x", "y"], [1, 2]);
          const done = d.mapOperator("later", { over: pairs }, ([name, n]) => new Later({ name: name + n }));
          d.task("all", { inputs: { done } }, ({ done }) => done);
        });

        export const edited = dag("edited", {}, (d) => {
          const list = d.task("list", () => JSON.parse(readFileSync(root + "/items", "utf8")));
          const each = d.map("each", { over: list, label: (n) => \`item \${n}\` }, (n, _, ctx) => ctx.step("plus", () => n + 1));
          d.task("sum", { inputs: { each }, rule: "allDone" }, ({ each }) => each.length);
        });

        export const stubborn = dag("stubborn", {}, (d) => {
          const list = d.task("list", (_, ctx) => (ctx.tryNumber === 1 ? [1, 2] : [1, 2, 3]));
          d.map("each", { over: list }, async (_n, _, ctx) => {
            if (ctx.tryNumber > 1) return;
            if (!ctx.abort.aborted) await new Promise((end) => ctx.abort.addEventListener("abort", end));
            await new Promise((go) => setTimeout(go, 500));
          });
        });

        export const slow = dag("slow", {}, (d) => {
          const each = d.map("each", { over: Array.from({ length: 6000 }, (_, n) => n) }, async (n) => {
            if (n === 0) await opened("go_slow");
            return n;
          });
          d.task("count", { inputs: { each } }, ({ each }) => each.length);
        });
      `,
    });
    await rig.scheduler();
  });

  const instances = async (id: number, task: string) =>
    await rig.db.rows<{ map_index: number; state: string; reason: string | null; try_number: number }>(
      adhoc(
        "SELECT map_index, state, reason, try_number FROM task_instance WHERE dag_run_id = $1 AND task_id = $2 ORDER BY map_index",
      ),
      [id, task],
    );
  const clear = async (id: number, tasks: { taskId: string; mapIndex: number }[] | null) => {
    await rig.db.transaction((tx) => clearRun(tx, id, { tasks }));
    rig.wakeUps.send("runs");
  };

  it("run once per item of any list, and their outputs are gathered in order", async () => {
    const id = await rig.trigger("flat", { conf: { length: 2500 } });
    expect(await rig.ended(id, 60_000)).toBe("success");
    expect(await rig.output(id, "sum")).toBe(2500 * 2499);
    const rows = await instances(id, "twice");
    expect(rows).toHaveLength(2500);
    expect(rows.map(({ map_index }) => map_index)).toEqual(Array.from({ length: 2500 }, (_, n) => n));
  });

  it("are skipped over an empty list", async () => {
    const id = await rig.trigger("flat", { conf: { length: 0 } });
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.states(id)).toEqual({ list: "success", twice: "skipped", sum: "skipped" });
  });

  it("nest, with a list per item and lists of lists as output", async () => {
    const id = await rig.trigger("nested");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "report")).toEqual(["AB2", "C1"]);
    const rows = await rig.db.rows(
      adhoc("SELECT map_id, parent, length FROM map_expansion WHERE dag_run_id = $1 ORDER BY map_id, parent"),
      [id],
    );
    expect(rows).toEqual([
      { map_id: "region", parent: -1, length: 2 },
      { map_id: "region.loud", parent: 0, length: 2 },
      { map_id: "region.loud", parent: 1, length: 1 },
    ]);
  });

  it("may be operators that defer", async () => {
    const id = await rig.trigger("waiting");
    const waiting = async () => (await instances(id, "later")).filter(({ state }) => state === "deferred");
    await rig.until(async () => (await waiting()).length === 4, "four waits");
    const rows = await rig.db.rows(adhoc("SELECT method FROM deferral WHERE dag_run_id = $1"), [id]);
    expect(rows).toEqual(Array.from({ length: 4 }, () => ({ method: "later" })));
  });

  it("are collapsed when the list is created again, and expanded to its new length", async () => {
    writeFileSync(`${rig.root}/items`, "[1, 2, 3]");
    const id = await rig.trigger("edited");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "sum")).toBe(3);
    writeFileSync(`${rig.root}/items`, "[7, 8]");
    await clear(id, null);
    await rig.until(async () => (await rig.output(id, "sum")) === 2, "the second sum");
    // No recorded step of the former instances is kept.
    const sql = "SELECT value FROM xcom WHERE dag_run_id = $1 AND task_id = 'each' ORDER BY map_index";
    expect(await rig.db.rows(adhoc(sql), [id])).toEqual([{ value: 8 }, { value: 9 }]);
    const shown = (await instances(id, "each")).map((row) => [row.map_index, row.state, row.try_number]);
    expect(shown).toEqual([
      [0, "success", 2],
      [1, "success", 2],
    ]);
    const labels = await rig.db.rows(
      adhoc("SELECT task_id, map_index, label FROM map_label WHERE dag_run_id = $1 ORDER BY map_index"),
      [id],
    );
    expect(labels).toEqual([
      { task_id: "each", map_index: 0, label: "item 7" },
      { task_id: "each", map_index: 1, label: "item 8" },
    ]);
  });

  it("continue with the next try number, also after an empty list in between", async () => {
    writeFileSync(`${rig.root}/items`, "[1]");
    const id = await rig.trigger("edited");
    const again = async (items: string, sum: number) => {
      writeFileSync(`${rig.root}/items`, items);
      await clear(id, null);
      await rig.until(async () => (await rig.output(id, "sum")) === sum, `the sum of ${items}`);
    };
    expect(await rig.ended(id)).toBe("success");
    await again("[]", 0);
    expect(await instances(id, "each")).toMatchObject([{ map_index: -1, state: "skipped", try_number: 1 }]);
    await again("[4, 5]", 2);
    expect(await instances(id, "each")).toMatchObject([{ try_number: 2 }, { try_number: 2 }]);
    const attempts =
      "SELECT map_index, try_number FROM task_attempt WHERE dag_run_id = $1 AND task_id = 'each'";
    expect(await rig.db.rows(adhoc(attempts), [id])).toEqual([{ map_index: 0, try_number: 1 }]);
  });

  it("have as many instances as the new list, also if some had to be stopped first", async () => {
    const id = await rig.trigger("stubborn");
    await rig.until(
      async () => (await instances(id, "each")).filter(({ state }) => state === "running").length === 2,
      "both instances to run",
    );
    await clear(id, null);
    rig.wakeUps.send(`run:${id}`);
    expect(await rig.ended(id)).toBe("success");
    expect((await instances(id, "each")).map(({ state }) => state)).toEqual([
      "success",
      "success",
      "success",
    ]);
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it("run alone if cleared alone, and name an item that the list no longer has", async () => {
    writeFileSync(`${rig.root}/items`, "[1, 2]");
    const id = await rig.trigger("edited");
    expect(await rig.ended(id)).toBe("success");
    await clear(id, [{ taskId: "each", mapIndex: 1 }]);
    await rig.until(async () => (await instances(id, "each"))[1]?.try_number === 2, "its second try");
    expect(await rig.ended(id)).toBe("success");
    expect((await instances(id, "each")).map(({ try_number }) => try_number)).toEqual([1, 2]);
    writeFileSync(`${rig.root}/items`, "[1]");
    await clear(id, [
      { taskId: "list", mapIndex: -1 },
      { taskId: "each", mapIndex: 1 },
    ]);
    await rig.until(async () => (await instances(id, "each"))[1]?.state === "failed", "its failure");
    expect((await instances(id, "each"))[1]?.reason).toContain("no longer has an item for this index");
  });

  it("fail with a reason over a value that is not a list", async () => {
    writeFileSync(`${rig.root}/items`, "7");
    const id = await rig.trigger("edited");
    await rig.ended(id);
    expect(await instances(id, "each")).toMatchObject([
      {
        state: "upstream_failed",
        reason: 'MAP_UNUSABLE: the output of "list" is a number, but a map needs a list',
      },
    ]);
  });

  it("continue after a take-over while their instances are being created", async () => {
    const id = await rig.trigger("slow");
    await rig.until(async () => (await instances(id, "each")).length >= 2_000, "the first piece");
    await rig.scheduler({ shared: false });
    // The run has no owner, and writes of its former owner are rejected: one of the two takes it over.
    await rig.db.rows(
      adhoc("UPDATE dag_run SET owner_job = NULL, generation = generation + 1 WHERE id = $1"),
      [id],
    );
    writeFileSync(`${rig.root}/go_slow`, "");
    expect(await rig.ended(id, 60_000)).toBe("success");
    expect(await rig.output(id, "count")).toBe(6_000);
    expect(await rig.poolsAreExact()).toBe(true);
  });
});
