/** Outputs that are stored outside of the database, from the task that creates them to the tasks that read them. */

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { clearRun } from "../../test/support/run-edits.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { createApi } from "../api/server/api.ts";
import { LogFolder } from "../log/log-folder.ts";
import { LargeValue } from "../model/index.ts";
import { clean } from "../process/clean.ts";
import { createLargeOutputs } from "../process/parts/large-outputs.ts";
import { resolveConfig } from "../service/config.ts";
import { silentLogger } from "../service/logger.ts";
import { ensureAdminToken } from "../store/access/tokens.ts";
import { adhoc } from "../store/database/database.ts";
import { deleteRun } from "../store/edit/end-run.ts";

interface ObjectRow {
  readonly id: number;
  readonly task_id: string;
  readonly key: string;
  readonly bytes: number;
  readonly items: number | null;
}

const DAGS = (root: string) => `
  import { cross, dag } from "tradewind";
  import { existsSync } from "node:fs";
  const root = ${JSON.stringify(root)};
  const opened = async (name) => {
    while (!existsSync(root + "/" + name)) await new Promise((go) => setTimeout(go, 10));
  };
  const text = (n) => "wörter 😀 \\"\\\\ ".repeat(n);

  export const chain = dag("chain", {}, (d) => {
    const big = d.task("big", () => ({ text: text(20_000), tail: [1, 2] }));
    const small = d.task("small", () => 7);
    d.task("read", { inputs: { big, small } }, ({ big, small }) =>
      [big.text === text(20_000), big.tail, small]);
    d.task("asked", { after: [big] }, async (_, ctx) => {
      const found = await ctx.output("big");
      return found.text.length;
    });
  });

  export const maps = dag("maps", {}, (d) => {
    const rows = d.task("rows", () => Array.from({ length: 60 }, (_, n) => ({ n, text: text(120) })));
    const each = d.map("each", { over: rows, label: (row) => "row " + row.n }, (row) => (row.n === 3 ? text(10_000) : row.n + row.text.length));
    d.task("all", { inputs: { each } }, ({ each }) => [each.length, each[3] === text(10_000), each[59]]);
  });

  export const nested = dag("nested", {}, (d) => {
    const regions = d.task("regions", () => Array.from({ length: 3 }, (_, n) => Array.from({ length: n + 1 }, () => text(3_000))));
    const all = d.mapGroup("region", { over: regions }, (g, members) => {
      const loud = g.map("loud", { over: members }, (one) => one.length);
      const both = g.map("both", { over: cross(members, ["x", "y"]), label: ([, y]) => y }, ([one, letter]) => letter + one.length);
      return g.task("join", { inputs: { loud, both } }, ({ loud, both }) => [loud.length, both[1]]);
    });
    d.task("report", { inputs: { all: all.result } }, ({ all }) => all);
  });

  export const held = dag("held", {}, (d) => {
    const big = d.task("big", (_, ctx) => text(10_000) + ctx.tryNumber);
    const gate = d.task("gate", () => opened("go"));
    d.task("read", { inputs: { big }, after: [gate], retries: 5, retryDelay: "1s" }, ({ big }) => big.length);
  });
`;

describe("large outputs", () => {
  let rig: SchedulerRig;
  const outputs = () => join(rig.root, "home", "outputs");

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await rig.publish({ "large.ts": DAGS(rig.root) });
    await rig.scheduler({ parallelism: 3, settings: { TRADEWIND_OUTPUT_INLINE_LIMIT: "65536" } });
  });

  const labels = async (run: number) => {
    const sql = "SELECT label FROM map_label WHERE dag_run_id = $1 ORDER BY task_id, map_index";
    return (await rig.db.rows<{ label: string }>(adhoc(sql), [run])).map(({ label }) => label);
  };
  const objects = (run: number) =>
    rig.db.rows<ObjectRow>(adhoc("SELECT * FROM output_object WHERE dag_run_id = $1 ORDER BY task_id"), [
      run,
    ]);

  it("are stored, and read by downstream tasks", async () => {
    const run = await rig.trigger("chain");
    expect(await rig.ended(run)).toBe("success");
    expect(await rig.output(run, "read")).toEqual([true, [1, 2], 7]);
    expect(await rig.output(run, "asked")).toBe(20_000 * 13);
    expect(await rig.output(run, "big")).toBeNull();
    const [object] = await objects(run);
    expect(object).toMatchObject({ task_id: "big", items: null });
    const stored = await readFile(join(outputs(), object!.key));
    expect(stored.length).toBe(object!.bytes);
    expect(JSON.parse(stored.toString()).tail).toEqual([1, 2]);
  });

  it("can be mapped by their items, and collected", async () => {
    const run = await rig.trigger("maps");
    expect(await rig.ended(run, 60_000)).toBe("success");
    expect(await rig.output(run, "all")).toEqual([60, true, 59 + 120 * 13]);
    expect((await objects(run)).map(({ items, task_id }) => [task_id, items])).toEqual([
      ["each", null],
      ["rows", 60],
    ]);
    // Read from the object in the background, and complete when the run has ended.
    expect(await labels(run)).toEqual(Array.from({ length: 60 }, (_, n) => `row ${n}`));
  });

  it("can be mapped by the items of their items", async () => {
    const run = await rig.trigger("nested");
    expect(await rig.ended(run, 60_000)).toBe("success");
    const length = 3_000 * 13;
    expect(await rig.output(run, "report")).toEqual([1, 2, 3].map((n) => [n, `y${length}`]));
    const expected = [1, 2, 3].flatMap((n) => Array.from({ length: n }, () => [`${n - 1}/x`, `${n - 1}/y`]));
    expect((await labels(run)).sort()).toEqual(expected.flat().sort());
  });

  it("that are missing or damaged fail the attempt that reads them, and a retry succeeds once they are restored", async () => {
    const run = await rig.trigger("held", { runId: "kept" });
    await rig.until(
      async () => (await objects(run)).length > 0 && (await rig.states(run)).big === "success",
      "big",
    );
    const [object] = await objects(run);
    const path = join(outputs(), object!.key);
    const bytes = await readFile(path);
    await rm(path);
    await writeFile(join(rig.root, "go"), "");
    const failedWith = (code: string) => async () => {
      const { read } = await rig.tasks(run);
      return read?.state === "up_for_retry" && read.reason?.startsWith(code) === true;
    };
    await rig.until(failedWith("OUTPUT_MISSING"), "a try without its input");
    const { reason } = (await rig.tasks(run)).read!;
    expect(reason).toContain(`The output of task "big" of DAG "held", run "kept", is not in its store`);
    expect(reason).toContain("tradewind tasks clear held kept big (");
    expect(reason).toContain(path);
    const changed = Buffer.from(bytes);
    changed[100] = changed[100]! ^ 1;
    await writeFile(path, changed);
    await rig.until(failedWith("OUTPUT_DAMAGED"), "a try with a damaged input");
    await writeFile(path, bytes);
    expect(await rig.ended(run)).toBe("success");
    expect(await rig.output(run, "read")).toBe(10_000 * 13 + 1);
  });

  it("of cleared attempts and deleted runs are removed when unreferenced, and the others stay", async () => {
    const config = resolveConfig({ home: join(rig.root, "home") }, {});
    const cleaned = async () =>
      (
        await clean(
          { config, database: rig.db },
          { only: ["outputs"], olderThanMs: 0, unusedForMs: 0, batch: 2, dryRun: false },
        )
      ).outputs;
    const run = await rig.trigger("chain");
    const other = await rig.trigger("chain");
    for (const each of [run, other]) expect(await rig.ended(each)).toBe("success");
    await cleaned();
    const [kept] = await objects(other);
    const [first] = await objects(run);
    expect(existsSync(join(outputs(), first!.key))).toBe(true);
    await rig.db.transaction((tx) => clearRun(tx, run));
    rig.wakeUps.send("runs");
    await rig.until(async () => (await objects(run)).length === 2, "another object");
    expect(await rig.ended(run)).toBe("success");
    expect(await cleaned()).toBe(1);
    const [second] = await objects(run);
    expect([existsSync(join(outputs(), first!.key)), existsSync(join(outputs(), second!.key))]).toEqual([
      false,
      true,
    ]);
    expect(await rig.db.transaction((tx) => deleteRun(tx, run))).toBe("deleted");
    expect(await cleaned()).toBe(1);
    expect(existsSync(join(outputs(), "chain", `${run}`))).toBe(false);
    expect(existsSync(join(outputs(), kept!.key))).toBe(true);
    expect(await cleaned()).toBe(0);
  });

  it("are shown by the API with their location, and without the value if too large", async () => {
    const token = `tw_${randomBytes(32).toString("base64url")}`;
    await ensureAdminToken(rig.db, token);
    const large = createLargeOutputs(resolveConfig({ home: join(rig.root, "home") }, {}), rig.db);
    const { db: database, secretBox, wakeUps } = rig;
    const app = await createApi({
      ...{
        database,
        secretBox,
        wakeUps,
        outputs: large,
        logger: silentLogger,
        logs: new LogFolder(rig.root),
      },
      config: { host: "127.0.0.1", port: 0, version: "test" },
      notify: () => {},
    });
    const run = await rig.trigger("chain", { runId: "shown" });
    expect(await rig.ended(run)).toBe("success");
    const get = async (path: string) => {
      const url = `/api/v2/dags/chain/dagRuns/shown/${path}`;
      return (await app.inject({ url, headers: { authorization: `Bearer ${token}` } })).json();
    };
    const entry = "taskInstances/big/xcomEntries/return_value";
    const [object] = await objects(run);
    const { bytes, key } = object!;
    const shown = { store: "file:", key, bytes, items: null };
    expect(await get(entry)).toMatchObject({ object: shown, value: { tail: [1, 2] } });
    expect((await get("wait?result=big&result=read")).results).toMatchObject({
      big: { tail: [1, 2] },
      read: [true, [1, 2], 7],
    });
    expect(await get("taskInstances/small/xcomEntries/return_value")).not.toHaveProperty("object");
    const say = (size: number) =>
      rig.db.rows(adhoc("UPDATE output_object SET bytes = $2 WHERE id = $1"), [object!.id, size]);
    await say(20_000_000);
    expect(await get(entry)).toMatchObject({ object: { ...shown, bytes: 20_000_000 }, value: null });
    await say(bytes);
    expect(await get(`${entry}?raw=true`)).toMatchObject({ tail: [1, 2] });
    expect(await get("taskInstances/small/xcomEntries/return_value?raw=true")).toBe(7);
    await rm(join(outputs(), key));
    expect(await get(`${entry}?raw=true`)).toMatchObject({ status: 502, code: "OUTPUT_MISSING" });
    expect(await get(entry)).toMatchObject({ status: 502, code: "OUTPUT_MISSING" });
    expect((await get("wait?result=big")).results).toEqual({ big: null });
    await app.close();
    await large.close();
  });

  it("are the object of one attempt: objects of other attempts of the task are not touched", async () => {
    const stray = { ...place(1), attempt: "00000000-0000-4000-8000-000000000001" };
    const large = createLargeOutputs(resolveConfig({ home: join(rig.root, "home") }, {}), rig.db);
    const kept = [];
    for (const attempt of [stray.attempt, "00000000-0000-4000-8000-000000000002"]) {
      const draft = large.draft();
      await draft.open();
      await draft.write(`"${attempt}"`);
      kept.push(new LargeValue(await large.keep(draft, { ...stray, attempt })));
    }
    expect(await Promise.all(kept.map((value) => large.read(value)))).toEqual(
      kept.map(({ reference }) => reference.key.split("/").at(-1)!.replace(".json", "")),
    );
    await large.close();
    expect(await readdir(join(outputs(), ".scratch"))).toHaveLength(1);
  });
});

function place(runId: number) {
  return { dagId: "held", runId, taskId: "big", mapIndex: -1 };
}
