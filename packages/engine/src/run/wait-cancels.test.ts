/** `onCancel` hooks, which run when a wait ends without its event. No triggerer runs: the test fires the triggers. */
import { readFileSync, writeFileSync } from "node:fs";
import { beforeAll, beforeEach, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { cancelRun, deleteRun } from "../store/edit/end-run.ts";
import { markTasks } from "../store/edit/mark-tasks.ts";
import { LEASE } from "./job/dag-run-job-options.ts";
import type { SchedulerJob } from "./job/scheduler-job.ts";

let rig: SchedulerRig;
let scheduler: SchedulerJob;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "waits.ts": `
      import { type CancelContext, dag, Operator, Trigger, type TaskContext } from "tradewind";
      import { appendFileSync, existsSync, writeFileSync } from "node:fs";
      const note = (text: string) => appendFileSync(${JSON.stringify(rig.ledger)}, text + "\\n");

      class Never extends Trigger<{ key: string }, { n: number }> {
        static id = "test.never";
        async *run() { await new Promise(() => {}); yield { n: 0 }; }
      }
      class Kills extends Never {
        static id = "test.kills";
        override onCancel(ctx: CancelContext) { note("trigger " + this.args.key + " " + ctx.cause + " " + JSON.stringify(ctx.kwargs)); }
      }
      class Job extends Operator<{ job: string; timeout?: number; kill?: string }, string> {
        execute() {
          const { job, timeout } = this.args;
          return this.defer({ trigger: new Never({ key: job }), method: "go", kwargs: { id: job + "!" }, ...(timeout && { timeout }) });
        }
        go(_ctx: TaskContext, event: { n: number }) { return "event " + event.n; }
        override async onCancel(ctx: CancelContext<{ id: string }>) {
          const { kill } = this.args;
          if (kill && !existsSync(kill)) { writeFileSync(kill, ""); process.kill(process.pid, "SIGKILL"); }
          note("operator " + this.args.job + " " + ctx.kwargs.id + " " + ctx.cause + " " + ctx.taskId + " " + ctx.mapIndex + " " + (ctx.params as { who: string }).who);
        }
      }
      const params = { "~standard": { version: 1, vendor: "x", validate: (value: unknown) => ({ value: { who: "ada", ...(value as object) } }) } } as never;
      const told = { onCancel: (ctx: CancelContext) => note("task " + ctx.wait + " " + JSON.stringify(ctx.trigger) + " " + ctx.cause) };

      export const job = dag("job", { params }, (d) => { d.operator("a", new Job({ job: "j" }), { retries: 1, retryDelay: 0 }); });
      export const late = dag("late", { params }, (d) => { d.operator("a", new Job({ job: "l", timeout: 200 })); });
      export const fn = dag("fn", (d) => {
        d.task("a", told, async (_, ctx) => (await ctx.until("x", new Never({ key: "f" }))).n);
      });
      export const resumes = dag("resumes", (d) => {
        d.task("a", told, async (_, ctx) => {
          try { return (await ctx.until("x", new Never({ key: "r" }), { timeout: 100 })).n; } catch { return -1; }
        });
      });
      export const tried = dag("tried", (d) => {
        d.task("a", { ...told, timeout: 300 }, async (_, ctx) => (await ctx.until("x", new Never({ key: "t" }))).n);
      });
      export const node = dag("node", (d) => { d.trigger("a", new Kills({ key: "n" })); });
      export const joint = dag("joint", (d) => {
        d.task("a", (_, ctx) => ctx.until("both", { one: new Never({ key: "1" }), two: new Kills({ key: "2" }) }));
      });
      export const mapped = dag("mapped", { params }, (d) => {
        const list = d.task("list", () => ["x", "y"]);
        d.mapOperator("a", { over: list }, (item) => new Job({ job: item }));
      });
      export const killed = dag("killed", { params }, (d) => {
        d.operator("a", new Job({ job: "k", kill: ${JSON.stringify(`${rig.root}/killed`)} }));
      });
    `,
  });
  scheduler = await rig.scheduler();
});

beforeEach(() => writeFileSync(rig.ledger, ""));

const lines = () => readFileSync(rig.ledger, "utf8").split("\n").filter(Boolean).sort();
const callbacks = async () =>
  (await rig.db.rows(adhoc("SELECT 1 FROM callback WHERE event = 'cancel'"))).length;
const said = async (...expected: string[]) => {
  await rig.until(
    async () => lines().length >= expected.length,
    `the hooks to run; so far: ${lines()}`,
    10_000,
  );
  await rig.until(async () => (await callbacks()) === 0, "their rows to be deleted");
  expect(lines()).toEqual(expected);
};
const waiting = async (dagId: string, count = 1) => {
  const id = await rig.trigger(dagId);
  await rig.until(async () => {
    const sql = "SELECT 1 FROM deferral WHERE dag_run_id = $1 AND waits_on IS NOT NULL";
    return (await rig.db.rows(adhoc(sql), [id])).length === count;
  }, `the waits of ${dagId}`);
  return id;
};
const cancel = async (id: number) => {
  await rig.db.transaction((tx) => cancelRun(tx, id, "cancelled"));
  rig.wakeUps.send(`run:${id}`);
};
const fire = async (id: number, isTold = true) => {
  const sql = `UPDATE deferral SET fired_at = now(), waits_on = NULL, outcome = '{"kind":"event","payload":{"n":1}}'
               WHERE dag_run_id = $1 AND waits_on IS NOT NULL`;
  await rig.db.rows(adhoc(sql), [id]);
  if (isTold) rig.wakeUps.send("fired");
};

it("runs the operator's hook within a second of a cancel, with args and kwargs of the deferral", async () => {
  const id = await waiting("job");
  const begun = performance.now();
  await cancel(id);
  await rig.until(async () => lines().length > 0, "the hook");
  expect(performance.now() - begun).toBeLessThan(1_000);
  await said("operator j j! cancelled a -1 ada");
});

it("runs the hook once per wait of a marked or cleared task, and not for a wait that its event ended", async () => {
  const tasks = (id: number) => [{ dagRunId: id, tasks: [{ taskId: "a", mapIndex: null }] }];
  const marked = await waiting("job");
  await rig.db.transaction((tx) => markTasks(tx, { runs: tasks(marked), state: "success", dryRun: false }));
  await said("operator j j! cancelled a -1 ada");
  const cleared = await waiting("job");
  await rig.clear(cleared, { tasks: ["a"] });
  await said("operator j j! cancelled a -1 ada", "operator j j! cancelled a -1 ada");
  await rig.until(async () => (await rig.states(cleared)).a === "deferred", "the cleared task to wait again");
  await fire(cleared);
  expect(await rig.ended(cleared)).toBe("success");
  expect(lines()).toHaveLength(2);
  expect(await callbacks()).toBe(0);
});

it("passes the reason timeout to the hook of a wait that timed out", async () => {
  const id = await rig.trigger("late");
  expect(await rig.ended(id)).toBe("failed");
  await said("operator l l! timeout a -1 ada");
});

it("runs the hook of a function task, but not when the function continues after a timeout", async () => {
  const resumed = await rig.trigger("resumes");
  expect(await rig.ended(resumed)).toBe("success");
  const tried = await rig.trigger("tried");
  expect(await rig.ended(tried)).toBe("failed");
  await said('task x {"kind":"test.never","args":{"key":"t"}} timeout');
  await cancel(await waiting("fn"));
  await said(
    'task x {"kind":"test.never","args":{"key":"f"}} cancelled',
    'task x {"kind":"test.never","args":{"key":"t"}} timeout',
  );
});

it("runs the hook of the trigger class for a trigger task and for a joint wait", async () => {
  await cancel(await waiting("node"));
  await cancel(await waiting("joint"));
  await said("trigger 2 cancelled {}", "trigger n cancelled {}");
});

it("runs the hook with the operator of each mapped item", async () => {
  await cancel(await waiting("mapped", 2));
  await said("operator x x! cancelled a 0 ada", "operator y y! cancelled a 1 ada");
});

it("runs the hook of one wait and keeps another wait on the same trigger", async () => {
  const [one, other] = [await waiting("node"), await waiting("node")];
  await cancel(one);
  await said("trigger n cancelled {}");
  const sql = "SELECT t.id FROM deferral d JOIN trigger t ON t.id = d.waits_on WHERE d.dag_run_id = $1";
  expect(await rig.db.rows(adhoc(sql), [other])).toHaveLength(1);
  await cancel(other);
  await said("trigger n cancelled {}", "trigger n cancelled {}");
});

it("runs the hook when the task is cancelled after its trigger fired and before it resumed", async () => {
  const id = await waiting("job");
  await fire(id, false);
  await cancel(id);
  await said("operator j j! cancelled a -1 ada");
});

it("runs the hook although every process has died and the run is deleted", async () => {
  const id = await waiting("job");
  await scheduler.stop(0);
  await cancel(id);
  await rig.db.transaction((tx) => deleteRun(tx, id));
  // A dead scheduler that owned the callback.
  const dead = await rig.db.one<{ id: number }>(
    adhoc(`INSERT INTO job (kind, hostname, pid, version, state, lease_until)
           VALUES ('scheduler', 'gone', 1, '0', 'dead', now()) RETURNING id`),
  );
  await rig.db.rows(adhoc("UPDATE callback SET owner_job = $1"), [dead?.id]);
  expect(await callbacks()).toBe(1);
  // A sweep every second instead of every ten seconds.
  scheduler = await rig.scheduler({ lease: { ...LEASE, renewMs: 200 } });
  await said("operator j j! cancelled a -1 ada");
});

it("runs the hook again when its process was killed", async () => {
  await cancel(await waiting("killed"));
  await rig.until(async () => lines().length > 0, "the hook", 30_000);
  await said("operator k k! cancelled a -1 ada");
});
