/** Sub-DAG tasks: one child run per try. The child decides the state of the task, and is cancelled with it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { cancelRun, deleteRun, markRun } from "../store/edit/end-run.ts";
import type { SchedulerJob } from "./job/scheduler-job.ts";

let rig: SchedulerRig;
let scheduler: SchedulerJob;

const PARENTS = `
  import { existsSync } from "node:fs";
  import { dag, TriggerDagRunOperator, type TaskContext } from "tradewind";
  import { chain, hanging, score, tight } from "./children.ts";

  const ROOT = "@ROOT@";
  export const fine = dag("fine", (d) => {
    const region = d.task("region", () => "eu");
    const one = d.dag("one", score, { inputs: { region }, params: ({ region }) => ({ region }) });
    const all = d.mapDag("all", score, { over: ["us", "asia"], params: (region) => ({ region }) });
    const far = d.dag("far", chain);
    const run = d.operator("run", new TriggerDagRunOperator({ dag: score, conf: { region: "run" }, wait: true }));
    const by = (region: string) => new TriggerDagRunOperator({ dagId: "score", conf: { region }, wait: true, outputs: ["result"] });
    const named = d.operator("named", by("id"));
    const blank = d.operator("blank", by("empty"));
    d.task("report", { inputs: { one, all, far, run, named, blank } }, ({ one, all, far, run, named, blank }) =>
      [one, ...all, far, run.outputs, named.outputs?.result ?? null, blank.outputs]);
  });
  export const failing = dag("failing", (d) => {
    d.dag("twice", score, { params: { region: "broken" }, retries: 1, retryDelay: 0 });
    const empty = d.dag("empty", score, { params: { region: "empty" } });
    d.task("after", { after: empty }, () => 1);
    d.dag("misfit", score, { params: { region: 7 as never } });
    d.operator("typo", new TriggerDagRunOperator({ dagId: "score", conf: { region: "id" }, wait: true, outputs: ["result", "nope"] }));
  });
  export const holding = dag("holding", (d) => { d.dag("sub", hanging); });
  export const limited = dag("limited", (d) => { d.mapDag("sub", hanging, { over: [1, 2, 3], limit: 1 }); });
  export const brief = dag("brief", (d) => { d.dag("sub", hanging, { timeout: "500ms" }); });
  export const crowded = dag("crowded", (d) => {
    d.mapDag("sub", tight, { over: [1, 2, 3], pool: "narrow" });
  });
  /** A former version of "loop" as its own sub-DAG: a cycle that the import of the file does not detect. */
  const former = dag("loop", (d) => { d.task("t", () => 1); });
  export const loop = dag("loop", (d) => { d.dag("again", former); });
  class Gated extends TriggerDagRunOperator<{ dagId: "score"; conf: { region: "gated" }; wait: true; outputs: ["result"] }> {
    override async execute(ctx: TaskContext) {
      const made = await super.execute(ctx);
      while (!existsSync(ROOT + "/gate-open")) await new Promise((resolve) => setTimeout(resolve, 20));
      return made;
    }
  }
  export const yearly = dag("yearly", { schedule: "0 0 1 1 *" }, (d) => {
    const latest = d.latestOnly("latest");
    d.task("mail", { after: latest }, () => 1);
  });
  export const crashing = dag("crashing", (d) => {
    d.operator("run", new Gated({ dagId: "score", conf: { region: "gated" }, wait: true, outputs: ["result"] }));
  });
`;

const CHILDREN = `
  import { dag, skip, WebhookTrigger } from "tradewind";
  const params = {
    "~standard": {
      version: 1 as const, vendor: "test",
      validate: (value: unknown) => ({ value: value as { region: string } }),
      types: {} as { input: { region: string }; output: { region: string } },
      jsonSchema: { input: () => ({ type: "object", properties: { region: { type: "string" } }, required: ["region"] }) },
    },
  };
  export const score = dag("score", { params }, (d) => d.task("result", (_, ctx) => {
    const { region } = ctx.params;
    if (region === "broken") throw new Error("broken");
    return region === "empty" ? skip("nothing there") : region.toUpperCase();
  }));
  export const chain = dag("chain", (d) => d.dag("deeper", score, { params: { region: "deep" } }));
  export const inner = dag("inner", (d) => { d.trigger("never", new WebhookTrigger({ name: "never" })); });
  export const hanging = dag("hanging", (d) => { d.dag("inner", inner); });
  export const tight = dag("tight", { maxActiveRuns: 1 }, (d) => { d.task("t", { pool: "narrow" }, () => 1); });
`;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "children.ts": CHILDREN,
    "parents.ts": PARENTS.replace("@ROOT@", rig.root),
  });
  await rig.db.rows(adhoc("INSERT INTO pool (name, slots, include_deferred) VALUES ('narrow', 1, true)"));
  await rig.triggerer();
  scheduler = await rig.scheduler();
});

interface Child {
  readonly id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly state: string;
  readonly end_reason: string | null;
  readonly parent_task_id: string;
  readonly parent_map_index: number;
  readonly parent_try: number | null;
  readonly interval_start: Date | null;
}
const ITEMS = "SELECT map_index FROM task_instance WHERE dag_run_id = $1 ORDER BY map_index";
const children = (id: number) =>
  rig.db.rows<Child>(adhoc("SELECT * FROM dag_run WHERE parent_run_id = $1 ORDER BY id"), [id]);
const reason = async (id: number, task: string) => (await rig.tasks(id))[task]?.reason ?? "";
/** The run of "hanging" that a run of `dagId` waits for, and the child run of "hanging". */
const held = async (dagId: string) => {
  const id = await rig.trigger(dagId);
  await rig.until(async () => (await children((await children(id))[0]?.id ?? 0)).length > 0, "both children");
  const child = (await children(id))[0] as Child;
  return { id, child, inner: (await children(child.id))[0] as Child };
};

describe("a sub-DAG task", () => {
  it("has one run per try, with its parent and its interval, and returns its result", async () => {
    const interval = { start: new Date("2027-01-04T00:00:00Z"), end: new Date("2027-01-05T00:00:00Z") };
    const id = await rig.trigger("fine", { interval });
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "report")).toEqual([
      "EU",
      "US",
      "ASIA",
      "DEEP",
      "RUN",
      "ID",
      { result: null },
    ]);
    const made = await children(id);
    expect(made.map((c) => [c.parent_task_id, c.parent_map_index, c.dag_id, c.parent_try]).sort()).toEqual([
      ["all", 0, "score", 1],
      ["all", 1, "score", 1],
      ["blank", -1, "score", null],
      ["far", -1, "chain", 1],
      ["named", -1, "score", null],
      ["one", -1, "score", 1],
      ["run", -1, "score", null],
    ]);
    const of = (task: string) => made.find((c) => c.parent_task_id === task);
    expect(of("one")?.interval_start).toEqual(interval.start);
    expect(of("run")?.interval_start).toBeNull();
    const [deeper] = await children(of("far")?.id ?? 0);
    expect(deeper).toMatchObject({
      dag_id: "score",
      parent_task_id: "deeper",
      interval_start: interval.start,
    });
  });

  it("fails with its run, has a new run for each try, and is skipped when its result is skipped", async () => {
    const id = await rig.trigger("failing");
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.states(id)).toEqual({
      twice: "failed",
      empty: "skipped",
      after: "skipped",
      misfit: "failed",
      typo: "failed",
    });
    const runs = (await children(id)).filter((c) => c.parent_task_id === "twice");
    expect(runs.map((c) => [c.parent_try, c.state])).toEqual([
      [1, "failed"],
      [2, "failed"],
    ]);
    expect(await reason(id, "twice")).toMatch(
      new RegExp(`^TW_DAG_RUN_FAILED: run ${runs[1]?.run_id} of dag score ended as failed; see why`),
    );
    expect(await reason(id, "misfit")).toContain("TRIGGERED_CONF_INVALID");
    expect(await reason(id, "typo")).toMatch(/^TW_TASK_UNKNOWN: run .* of dag score has no task "nope"/);
  });

  it("cancels its run and nested runs when it is cancelled", async () => {
    const { id, child, inner } = await held("holding");
    await rig.edit(id, (tx) => cancelRun(tx, id, "cancelled manually"));
    expect(await rig.ended(child.id)).toBe("failed");
    expect(await rig.ended(inner.id)).toBe("failed");
    const { end_reason } = (await children(id))[0] as Child;
    expect(end_reason).toMatch(/^cancelled: task sub of run .* of DAG holding no longer waits for it$/);
  });

  it("keeps the limit of a map for its concurrent runs, although none of them holds a slot", async () => {
    const { id, child } = await held("limited");
    const items = async () =>
      (await rig.db.rows<{ map_index: number }>(adhoc(ITEMS), [id])).map(({ map_index }) => map_index);
    expect(await items()).toEqual([0]);
    await rig.edit(child.id, (tx) => cancelRun(tx, child.id, "cancelled manually"));
    await rig.until(async () => (await children(id)).length === 2, "the next run");
    expect(await items()).toEqual([0, 1]);
    await rig.edit(id, (tx) => cancelRun(tx, id, "cancelled manually"));
  });

  it("cancels its run when it times out", async () => {
    const { id, child } = await held("brief");
    expect(await rig.ended(id)).toBe("failed");
    expect(await reason(id, "sub")).toContain("TASK_TIMEOUT");
    expect(await rig.ended(child.id)).toBe("failed");
  });

  it("has a new run when it is cleared, and fails when that run is deleted", async () => {
    const { id, child } = await held("holding");
    await rig.db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id = 'hanging'"));
    await rig.clear(id, { tasks: ["sub"] });
    expect(await rig.ended(child.id)).toBe("failed");
    await rig.until(async () => (await children(id)).length === 2, "the second child");
    const second = (await children(id))[1] as Child;
    expect(second).toMatchObject({ state: "queued", parent_try: 2 });
    await rig.until(async () => (await rig.states(id))["sub"] === "deferred", "the task to wait");
    await rig.edit(second.id, (tx) => deleteRun(tx, second.id));
    expect(await rig.ended(id)).toBe("failed");
    expect(await reason(id, "sub")).toMatch(/^DAG_RUN_GONE: Run ".*" of DAG "hanging" was deleted/);
    await rig.db.rows(adhoc("UPDATE dag SET is_paused = false WHERE dag_id = 'hanging'"));
    rig.wakeUps.send("dags");
  });

  it("holds no slot while it waits, so that its child can use it", async () => {
    const id = await rig.trigger("crowded");
    expect(await rig.ended(id)).toBe("success");
    expect(await children(id)).toHaveLength(3);
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it("fails if it would run its own DAG", async () => {
    const id = await rig.trigger("loop");
    expect(await rig.ended(id)).toBe("failed");
    expect(await reason(id, "again")).toMatch(/^SUB_DAG_CYCLE: .*: loop > loop\./);
    expect(await children(id)).toEqual([]);
  });
});

it("a sub-DAG run that is queued again after its task has ended runs independently", async () => {
  const { id, child } = await held("holding");
  await rig.edit(id, (tx) => cancelRun(tx, id, "cancelled manually"));
  expect(await rig.ended(child.id)).toBe("failed");
  await rig.edit(child.id, (tx) => markRun(tx, child.id, "queued"));
  await rig.until(async () => (await children(id))[0]?.parent_try === null, "the run to be detached");
  // All its tasks have ended, so it ends at once.
  expect(await rig.ended(child.id)).toBe("failed");
  expect((await children(id))[0]?.end_reason).not.toContain("no longer waits");
});

it("latestOnly passes the newest scheduled run and manual runs, and skips in backfills of older dates", async () => {
  const yearly = (year: number) => new Date(Date.UTC(year, 0, 1));
  const made = adhoc("SELECT id FROM dag_run WHERE dag_id = 'yearly' AND run_type = 'scheduled'");
  await rig.until(async () => (await rig.db.one(made)) !== undefined, "the run of this year");
  const newest = (await rig.db.one<{ id: number }>(made))?.id ?? 0;
  const byHand = await rig.trigger("yearly", { logicalDate: yearly(2019) });
  const old = await rig.trigger("yearly", { logicalDate: yearly(2020), runAfter: yearly(9999) });
  await rig.db.rows(adhoc("UPDATE dag_run SET run_type = 'backfill', run_after = now() WHERE id = $1"), [
    old,
  ]);
  rig.wakeUps.send("runs");
  const mails = async (id: number) => {
    expect(await rig.ended(id)).toBe("success");
    return [await rig.output(id, "latest"), (await rig.states(id))["mail"]];
  };
  expect(await mails(newest)).toEqual([true, "success"]);
  expect(await mails(old)).toEqual([false, "skipped"]);
  expect(await mails(byHand)).toEqual([true, "success"]);
});

it("a scheduler that stops between creating a run and waiting for it leaves one run, which the next scheduler uses", async () => {
  const id = await rig.trigger("crashing");
  await rig.until(async () => (await children(id)).length === 1, "the run to be created");
  await scheduler.stop(0);
  writeFileSync(join(rig.root, "gate-open"), "");
  scheduler = await rig.scheduler();
  expect(await rig.ended(id)).toBe("success");
  expect(await rig.output(id, "run")).toMatchObject({ outputs: { result: "GATED" } });
  expect((await rig.tasks(id))["run"]?.try_number).toBe(1);
  expect(await children(id)).toHaveLength(1);
});
