/**
 * Effects that users wait for are pushed: by a wake-up, an event in the process, or a timer. The processes of this
 * installation renew their leases rarely and poll nothing, so an effect that depends on a sweep is late. Each part has
 * its own DAG, and the parts run one after the other: the wake-ups of one must not serve another.
 */
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, it } from "vitest";
import { type SplitProcess, SplitRig } from "../../test/support/split-rig.ts";

let rig: SplitRig;
let scheduler: SplitProcess;

const DAGS = `
  import { asset, continuous, cron, dag, DagRunTrigger, dates, deadline, ExternalTaskTrigger, on, sendSignal, signal, start,
    TimeDeltaTrigger, Trigger, WebhookTrigger } from "tradewind";
  import { existsSync, writeFileSync } from "node:fs";
  const touch = (name) => writeFileSync("@ROOT@/" + name, "");
  const open = async (name) => { while (!existsSync("@ROOT@/" + name)) await new Promise((go) => setTimeout(go, 10)); };
  const isFirst = (ctx) => ctx.run.logicalDate?.getUTCDate() === 1;
  class Never extends Trigger { static id = "test.never"; async *run() { await new Promise(() => {}); yield null; } }
  const [paid, shut] = [signal("paid"), signal("shut")];
  const data = asset("file://data");
  const one = (d) => { d.task("a", () => 1); };
  const held = (d) => { d.task("a", (_, ctx) => open(ctx.run.id)); };
  const late = (after, name) => ({ deadline: deadline({ after, within: "100ms", then: [() => touch(name)] }) });
  const past = (d) => {
    d.task("a", { dependsOnPast: true }, (_, ctx) => { if (isFirst(ctx)) throw new Error("first"); });
    d.task("b", () => 1);
  };
  /** Only backfills run its dates. */
  const over = { schedule: cron("0 0 * * *"), start: "2020-01-01", end: "2020-02-01" };
  const child = dag("child", (d) => { d.task("a", () => open("child")); });

  export const dags = [
    dag("quick", one),
    dag("held", held),
    dag("single", { maxActiveRuns: 1 }, held),
    dag("pooled", (d) => { d.task("a", { pool: "narrow" }, () => 1); }),
    dag("alerts", (d) => {
      d.task("a", (_, ctx) => open(ctx.run.id));
      d.task("b", { onFailure: sendSignal(signal("alert")) }, () => { throw new Error("no disk"); });
    }),
    dag("late_start", late("start", "late_start"), held),
    dag("late_queued", late("queued", "late_queued"), held),
    dag("late_backfill", { ...over, ...late("start", "late_backfill") }, (d) => { d.task("a", () => open("late_backfill")); }),
    dag("past_marked", past),
    dag("past_deleted", past),
    dag("endless", { schedule: continuous() }, (d) => { d.task("a", () => open("endless")); }),
    dag("moment", (d) => { d.trigger("a", new TimeDeltaTrigger({ delta: "200ms" })); }),
    dag("watched", (d) => { const a = d.task("a", () => open("watched_a")); d.task("b", { after: a }, () => open("watched_b")); }),
    dag("watches_task", (d) => { d.trigger("a", new ExternalTaskTrigger({ dagId: "watched", runId: "w", taskId: "a" })); }),
    dag("watches_start", (d) => { d.trigger("a", new DagRunTrigger({ dagId: "held", runId: "begun", states: ["running"] })); }),
    dag("watches_signal", (d) => { d.task("a", async (_, ctx) => { await ctx.until("x", paid); }); }),
    dag("on_signal", { schedule: on(paid) }, one),
    dag("sends", (d) => { d.task("a", (_, ctx) => ctx.send(signal("sent"), 1)); }),
    dag("on_sent", { schedule: on(signal("sent")) }, one),
    dag("driven", { stop: shut }, (d) => { d.task("a", { on: [start(signal("begin"))] }, () => 1); }),
    dag("produces", (d) => { d.task("a", { produces: [data] }, () => 1); }),
    dag("on_asset", { schedule: on(data) }, one),
    dag("retried", (d) => { d.task("a", { retries: 1, retryDelay: "200ms" }, (_, ctx) => { if (ctx.tryNumber === 1) throw new Error("once"); }); }),
    dag("on_state", { schedule: on(signal("retried/*", undefined, { namespace: "run" }).where({ state: "success" })) }, one),
    dag("retried_run", { runRetries: 1, runRetryDelay: "200ms" }, (d) => { d.task("a", () => {
      if (existsSync("@ROOT@/once")) return;
      touch("once");
      throw new Error("once");
    }); }),
    dag("timed_out", { runTimeout: "200ms" }, held),
    dag("hook", (d) => { d.trigger("a", new WebhookTrigger({ name: "hook" })); }),
    dag("on_hook", { schedule: on(new WebhookTrigger({ name: "on_hook" })) }, one),
    dag("cancelled", (d) => { d.task("a", { onCancel: () => touch("cancelled") }, async (_, ctx) => { await ctx.until("x", new Never({})); }); }),
    child,
    dag("parent", (d) => { d.dag("sub", child); }),
    dag("daily", { ...over }, (d) => { d.task("a", (_, ctx) => open(isFirst(ctx) ? "day_1" : "days")); }),
    dag("parent_daily", { ...over, runTimeout: "500ms" }, (d) => { d.dag("sub", child); }),
    dag("past_daily", { ...over }, (d) => {
      d.task("a", { dependsOnPast: true }, (_, ctx) => { if (isFirst(ctx)) return open("past_daily_a"); });
      d.task("b", (_, ctx) => { if (isFirst(ctx)) return open("past_daily_b"); });
    }),
    dag("calls", { onFailure: async () => { touch("called"); await open("call"); touch("call_done"); } }, (d) => { d.task("a", () => { throw new Error("no"); }); }),
  ];
`;

beforeAll(async () => {
  rig = await SplitRig.open();
  await rig.api();
  await rig.processor();
  scheduler = await rig.scheduler();
  await rig.triggerer();
  await rig.saved({ "dags.ts": DAGS.replaceAll("@ROOT@", rig.root) }, ["quick", "calls"]);
});

const touch = (name: string) => writeFileSync(`${rig.root}/${name}`, "");
const touched = (name: string) => rig.until(() => existsSync(`${rig.root}/${name}`), `the file ${name}`);
const day = (n: number) => ({ logical_date: `2020-01-0${n}T00:00:00Z` });
const pause = (dagId: string, isPaused: boolean) =>
  rig.call("PATCH", `/dags/${dagId}`, { is_paused: isPaused });
const backfill = (dagId: string, days = 1, more: object = {}) =>
  rig.call("POST", "/backfills", {
    ...{ dag_id: dagId, from_date: day(1).logical_date, to_date: day(days).logical_date, ...more },
  });
const file = (dagId: string, options: string, task = "() => 1") =>
  `import { dag, dates } from "tradewind"; import { existsSync } from "node:fs";
   export default dag("${dagId}", ${options}, (d) => { d.task("a", ${task}); });`;

/** Waits until the DAG has this many runs in the state. */
const runs = (dagId: string, state: string, count = 1) =>
  rig.is("SELECT FROM dag_run WHERE dag_id = $1 AND state = $2 OFFSET $3", [dagId, state, count - 1]);
/** Runs the DAG and waits until its trigger is claimed. */
const waiting = async (dagId: string): Promise<number> => {
  const { id } = await rig.trigger(dagId);
  await rig.is(
    `SELECT FROM deferral d JOIN trigger t ON t.id = d.waits_on
     WHERE d.dag_run_id = $1 AND t.owner_job IS NOT NULL`,
    [id],
  );
  return id;
};

const effects: Readonly<Record<string, () => Promise<void>>> = {
  "a run that is created through the API starts": async () => {
    await rig.runIs((await rig.trigger("quick")).id, "success");
  },
  "a run that is due later starts when it is due": async () => {
    const at = new Date(Date.now() + 500).toISOString();
    await rig.runIs((await rig.trigger("quick", { run_after: at })).id, "success");
  },
  "a wait for a run ends with the run": async () => {
    await rig.trigger("held", { dag_run_id: "awaited" });
    const answer = rig.fetch("GET", "/dags/held/dagRuns/awaited/wait?interval=600");
    await runs("held", "running");
    touch("awaited");
    expect(await (await answer).text()).toContain('"success"');
  },
  "a schedule creates its run when it is due": async () => {
    const at = new Date(Date.now() + 800).toISOString();
    await rig.save({ "dated.ts": file("dated", `{ schedule: dates(["${at}"]) }`) });
    await runs("dated", "success");
  },
  "a run of a DAG that is unpaused starts": async () => {
    await pause("quick", true);
    const { id } = await rig.trigger("quick");
    await pause("quick", false);
    await rig.runIs(id, "success");
  },
  "a task starts when its pool gets slots": async () => {
    await rig.call("POST", "/pools", { name: "narrow", slots: 0 });
    const { id } = await rig.trigger("pooled");
    await rig.taskIs(id, "a", "scheduled");
    await rig.call("PATCH", "/pools/narrow", { name: "narrow", slots: 1 });
    await rig.runIs(id, "success");
  },
  "a run starts when another of its DAG ends, or is marked": async () => {
    for (const runId of ["s1", "s2", "s3"]) await rig.trigger("single", { dag_run_id: runId });
    await runs("single", "running");
    touch("s1");
    await runs("single", "success");
    await rig.call("PATCH", "/dags/single/dagRuns/s2", { state: "success" });
    touch("s3");
    await runs("single", "success", 3);
  },
  "a run starts when maxActiveRuns of its DAG is raised": async () => {
    const task = `async () => { while (!existsSync("${rig.root}/raised")) await new Promise((go) => setTimeout(go, 10)); }`;
    await rig.saved({ "raised.ts": file("raised", "{ maxActiveRuns: 1 }", task) }, ["raised"]);
    for (let n = 1; n <= 2; n++) await rig.trigger("raised");
    await runs("raised", "running");
    await rig.save({ "raised.ts": file("raised", "{ maxActiveRuns: 2 }", task) });
    await runs("raised", "running", 2);
    touch("raised");
  },
  "a DAG whose file was removed and restored runs": async () => {
    await rig.saved({ "back.ts": file("back", "{}") }, ["back"]);
    await rig.save({ "back.ts": null });
    await rig.is("SELECT FROM dag WHERE dag_id = 'back' AND is_stale");
    await rig.save({ "back.ts": file("back", "{}") });
    await rig.is("SELECT FROM dag WHERE dag_id = 'back' AND NOT is_stale");
    await rig.runIs((await rig.trigger("back")).id, "success");
  },
  "a notice of a failed task is delivered while its run continues": async () => {
    await rig.trigger("alerts", { dag_run_id: "alerts" });
    await rig.is("SELECT FROM signal WHERE namespace = 'default' AND key = 'alert'");
    touch("alerts");
  },
  "a deadline that counts from the start of a run is evaluated when it is due": async () => {
    await rig.trigger("late_start", { dag_run_id: "late_start" });
    await touched("late_start");
  },
  "a deadline of a run that does not start is evaluated when it is due": async () => {
    await pause("late_queued", true);
    await rig.trigger("late_queued");
    await touched("late_queued");
  },
  "a deadline of a backfill's run is evaluated when it is due": async () => {
    await backfill("late_backfill");
    await touched("late_backfill");
  },
  "a task starts when the task of the date before it is marked": async () => {
    const first = await rig.trigger("past_marked", { ...day(1), dag_run_id: "first" });
    await rig.runIs(first.id, "failed");
    const second = await rig.trigger("past_marked", day(2));
    await rig.taskIs(second.id, "b", "success");
    await rig.call("PATCH", "/dags/past_marked/dagRuns/first/taskInstances/a", { new_state: "success" });
    await rig.runIs(second.id, "success");
  },
  "a task starts when the run of the date before it is deleted": async () => {
    const first = await rig.trigger("past_deleted", { ...day(1), dag_run_id: "first" });
    await rig.runIs(first.id, "failed");
    const second = await rig.trigger("past_deleted", day(2));
    await rig.taskIs(second.id, "b", "success");
    await rig.call("DELETE", "/dags/past_deleted/dagRuns/first");
    await rig.runIs(second.id, "success");
  },
  "a task starts when the same task of a backfill's earlier date ends": async () => {
    await backfill("past_daily");
    await runs("past_daily", "running");
    const { id } = await rig.trigger("past_daily", day(2));
    await rig.taskIs(id, "b", "success");
    touch("past_daily_a");
    await rig.runIs(id, "success");
    touch("past_daily_b");
  },
  "a continuous DAG runs when it is published, when its run is ended manually, and when it is unpaused":
    async () => {
      await runs("endless", "running");
      const end = async () => {
        const [run] = await rig.rows<{ run_id: string }>(
          "SELECT run_id FROM dag_run WHERE dag_id = 'endless' AND state = 'running'",
        );
        await rig.call("PATCH", `/dags/endless/dagRuns/${encodeURIComponent(run?.run_id ?? "")}`, {
          state: "success",
        });
      };
      await end();
      await runs("endless", "success");
      await runs("endless", "running");
      await pause("endless", true);
      await end();
      await runs("endless", "success", 2);
      await pause("endless", false);
      await runs("endless", "running");
      await pause("endless", true);
      touch("endless");
    },
  "a wait for a time ends": async () => {
    await rig.runIs((await rig.trigger("moment")).id, "success");
  },
  "a wait for a task of another run ends": async () => {
    const { id: watched } = await rig.trigger("watched", { dag_run_id: "w" });
    const id = await waiting("watches_task");
    await rig.taskIs(watched, "a", "running");
    touch("watched_a");
    await rig.runIs(id, "success");
    touch("watched_b");
  },
  "a wait for the start of a run ends": async () => {
    const id = await waiting("watches_start");
    await rig.trigger("held", { dag_run_id: "begun" });
    await rig.runIs(id, "success");
    touch("begun");
  },
  "a signal through the API ends a wait and creates a run": async () => {
    const id = await waiting("watches_signal");
    await rig.call("POST", "/signals", { key: "paid", value: 1 });
    await rig.runIs(id, "success");
    await runs("on_signal", "success");
  },
  "a signal of a task creates a run": async () => {
    await rig.trigger("sends");
    await runs("on_sent", "success");
  },
  "a signal starts a task of a running run, and ends the run": async () => {
    const { id } = await rig.trigger("driven");
    await rig.runIs(id, "running");
    await rig.call("POST", "/signals", { key: "begin", value: 1 });
    await rig.taskIs(id, "a", "success");
    await rig.call("POST", "/signals", { key: "shut", value: 1 });
    await rig.runIs(id, "success");
  },
  "an asset of a task creates a run": async () => {
    await rig.trigger("produces");
    await runs("on_asset", "success");
  },
  "a retry starts when it is due, and the state of its run creates another": async () => {
    await rig.runIs((await rig.trigger("retried")).id, "success");
    await runs("on_state", "success");
  },
  "the next try of a run starts when it is due": async () => {
    await rig.runIs((await rig.trigger("retried_run")).id, "success");
  },
  "a run that takes too long fails at its timeout": async () => {
    await rig.runIs((await rig.trigger("timed_out", { dag_run_id: "never" })).id, "failed");
  },
  "a webhook ends a wait": async () => {
    const id = await waiting("hook");
    await rig.call("POST", "/webhooks/hook", { n: 1 });
    await rig.runIs(id, "success");
  },
  "a webhook creates a run": async () => {
    await rig.call("POST", "/webhooks/on_hook", { n: 1 });
    await runs("on_hook", "success");
  },
  "onCancel of a cancelled run is called, and its trigger stops": async () => {
    await waiting("cancelled");
    const [run] = await rig.rows<{ run_id: string }>("SELECT run_id FROM dag_run WHERE dag_id = 'cancelled'");
    await rig.call("POST", `/dags/cancelled/dagRuns/${encodeURIComponent(run?.run_id ?? "")}/cancel`);
    await touched("cancelled");
    await rig.is("SELECT WHERE NOT EXISTS (SELECT FROM trigger WHERE kind = 'test.never')");
  },
  "a sub-DAG is cancelled with its parent": async () => {
    const { runId } = await rig.trigger("parent");
    await runs("child", "running");
    await rig.call("POST", `/dags/parent/dagRuns/${encodeURIComponent(runId)}/cancel`);
    await runs("child", "failed");
  },
  "a sub-DAG is cancelled when the backfill's run around it times out": async () => {
    await backfill("parent_daily");
    await runs("child", "running");
    await runs("child", "failed", 2);
  },
  "a task that was cleared runs again": async () => {
    const { id, runId } = await rig.trigger("quick");
    await rig.runIs(id, "success");
    const what = { dag_run_id: runId, task_ids: ["a"], only_failed: false, reset_dag_runs: true };
    await rig.call("POST", "/dags/quick/clearTaskInstances", { dry_run: false, ...what });
    await rig.is("SELECT FROM dag_run WHERE id = $1 AND clear_number = 1 AND state = 'success'", [id]);
  },
  "a backfill starts, is resumed, gets a higher limit and is cancelled": async () => {
    const { id } = await backfill("daily", 5, { max_active_runs: 1 });
    await runs("daily", "running");
    await rig.call("PUT", `/backfills/${id}/pause`);
    touch("day_1");
    await runs("daily", "success");
    await rig.call("PUT", `/backfills/${id}/unpause`);
    await runs("daily", "running");
    await rig.call("PATCH", `/backfills/${id}`, { max_active_runs: 2 });
    await runs("daily", "running", 2);
    await rig.call("PUT", `/backfills/${id}/cancel`);
    await rig.is("SELECT FROM backfill WHERE id = $1 AND ended_at IS NOT NULL", [id]);
  },
  // Last: another scheduler runs from here on.
  "another scheduler takes over runs, backfills and callbacks of one that stops": async () => {
    await rig.trigger("calls");
    await touched("called");
    const held = await rig.trigger("held", { dag_run_id: "moved" });
    const { id } = await backfill("daily", 2, { reprocess_behavior: "completed" });
    await runs("daily", "running");
    await rig.taskIs(held.id, "a", "running");
    await rig.scheduler();
    await scheduler.stop();
    for (const name of ["moved", "call", "days"]) touch(name);
    await rig.runIs(held.id, "success");
    await touched("call_done");
    await rig.is("SELECT FROM backfill WHERE id = $1 AND ended_at IS NOT NULL", [id]);
  },
};

/** Longer than the wake-ups of one effect take. */
const QUIET_MS = 100;

it.each(Object.keys(effects))("%s", async (effect) => {
  await sleep(QUIET_MS);
  await effects[effect]?.();
});
