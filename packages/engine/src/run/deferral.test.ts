/** Waits as their owner handles them. The tests fire triggers themselves, to choose the order of events. */
import { existsSync, readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { clearRun } from "../../test/support/run-edits.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { cancelRun } from "../store/edit/end-run.ts";

interface WaitRow {
  readonly attempt: string;
  readonly waits_on: number | null;
  readonly kind: string;
  readonly fired_at: Date | null;
  readonly ended_at: Date | null;
  readonly end_kind: string | null;
}

describe("deferrals", () => {
  let rig: SchedulerRig;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await rig.publish({
      "waits.ts": `
        import { dag, DeferralTimeoutError, Operator, Trigger, type TaskContext } from "tradewind";
        import { appendFileSync } from "node:fs";
        const note = (text: string) => appendFileSync(${JSON.stringify(`${rig.root}/notes`)}, text + "\\n");

        class Never extends Trigger<{ key: string }, { n: number }> {
          static id = "test.never";
          async *run() { await new Promise(() => {}); yield { n: 0 }; }
        }

        class Twice extends Operator<{ key: string }, string> {
          execute(_ctx: TaskContext) {
            note("execute " + this.args.key);
            return this.defer({ trigger: new Never({ key: this.args.key + "-1" }), method: "second", kwargs: { from: "execute" } });
          }
          second(_ctx: TaskContext, event: { n: number }, kwargs: { from: string }) {
            note("second " + event.n + " " + kwargs.from);
            return this.defer({ trigger: new Never({ key: this.args.key + "-2" }), method: "third", kwargs: { sum: event.n } });
          }
          third(ctx: TaskContext, event: { n: number }, kwargs: { sum: number }) {
            note("third " + ctx.attempt);
            if (event.n === 666) process.kill(process.pid, "SIGKILL");
            return this.args.key + " " + (kwargs.sum + event.n);
          }
        }

        const wait = (key: string, more: object = {}) => class extends Operator<void, string> {
          execute() { return this.defer({ trigger: new Never({ key }), method: "go", kwargs: {}, ...more }); }
          go(_ctx: TaskContext, event: { n: number }) { return "event " + event.n; }
        };
        const [Short, Fatal, Soft] = [wait("short", { timeout: 300 }), wait("fatal", { timeout: 300, onTimeout: "fatal" }), wait("soft", { timeout: 300, onTimeout: "skip" })];
        const Plain = wait("plain");

        export const twice = dag("twice", {}, (d) => {
          const a = d.operator("a", new Twice({ key: "twice" }), { retries: 1, retryDelay: 0 });
          d.task("b", { inputs: { a } }, ({ a }) => a + "!");
        });
        export const steps = dag("steps", {}, (d) => {
          d.task("f", async (_, ctx) => {
            const job = await ctx.step("submit", () => { note("submit"); return { id: 7 }; });
            const first = await ctx.until("first", new Never({ key: "first" }));
            const double = await ctx.step("double", () => { note("double"); return first.n * 2; });
            const second = await ctx.until("second", new Never({ key: "second" }));
            return [job.id, first.n, double, second.n];
          });
        });
        export const late = dag("late", {}, (d) => {
          d.task("f", async (_, ctx) => {
            try { return (await ctx.until("x", new Never({ key: "late" }), { timeout: 200 })).n; }
            catch (error) { return error instanceof DeferralTimeoutError ? "too late" : "?"; }
          });
        });
        export const timeouts = dag("timeouts", {}, (d) => {
          d.operator("short", new Short(), { retries: 1, retryDelay: 0, onFailure: () => note("callback short") });
          d.operator("fatal", new Fatal(), { retries: 1, retryDelay: 0 });
          d.operator("soft", new Soft());
          d.operator("whole", new Plain(), { timeout: 400 });
        });
        export const plain = dag("plain", {}, (d) => {
          d.operator("a", new Plain(), { onSuccess: () => note("callback plain") });
        });
        export const pooled = dag("pooled", {}, (d) => {
          d.operator("a", new Plain(), { pool: "counted" });
          d.task("b", { pool: "counted", priority: -5 }, () => "b");
        });
        export const node = dag("node", {}, (d) => {
          const event = d.trigger("event", new Never({ key: "node" }));
          d.task("use", { inputs: { event } }, ({ event }) => event.n + 1);
        });
      `,
    });
    await rig.db.rows(adhoc("INSERT INTO pool (name, slots, include_deferred) VALUES ('counted', 1, true)"));
    await rig.scheduler();
  });

  const waits = (id: number, task: string) =>
    rig.db.rows<WaitRow>(
      adhoc("SELECT * FROM deferral WHERE dag_run_id = $1 AND task_id = $2 ORDER BY deferred_at"),
      [id, task],
    );
  const waiting = async (id: number, task: string, count = 1) => {
    await rig.until(async () => {
      const rows = await waits(id, task);
      return rows.length === count && rows.at(-1)?.waits_on !== null;
    }, `wait ${count} of ${task}`);
    return (await waits(id, task)).at(-1) as WaitRow;
  };
  const fire = async (wait: WaitRow, outcome: object, how: { quietly?: boolean } = {}) => {
    await rig.db.transaction(async (tx) => {
      await tx.rows(
        adhoc("UPDATE deferral SET fired_at = now(), waits_on = NULL, outcome = $2 WHERE attempt = $1"),
        [wait.attempt, JSON.stringify(outcome)],
      );
      await tx.rows(adhoc("DELETE FROM trigger WHERE id = $1"), [wait.waits_on]);
    });
    if (!how.quietly) rig.wakeUps.send("fired");
  };
  const event = (n: number) => ({ kind: "event", payload: { n } });
  const notes = () => readFileSync(`${rig.root}/notes`, "utf8").trim().split("\n");
  const occupied = async (pool = "default_pool") =>
    (await rig.db.one<{ occupied: number }>(adhoc("SELECT occupied FROM pool WHERE name = $1"), [pool]))
      ?.occupied;

  it("resumes an operator at the named method, with event and kwargs, any number of times", async () => {
    const id = await rig.trigger("twice");
    const first = await waiting(id, "a");
    expect((await rig.tasks(id)).a).toMatchObject({ state: "deferred", attempt: first.attempt });
    expect(await occupied()).toBe(0);
    await fire(first, event(20));
    const second = await waiting(id, "a", 2);
    expect(second.attempt).not.toBe(first.attempt);
    await fire(second, event(22));
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "b")).toBe("twice 42!");
    expect((await rig.tasks(id)).a).toMatchObject({ try_number: 1 });
    expect((await waits(id, "a")).map((row) => row.end_kind)).toEqual(["resumed", "resumed"]);
    expect(notes()).toContain("second 20 execute");
  });

  it("starts the next try at the beginning after a failure that follows a wait", async () => {
    const id = await rig.trigger("twice");
    await fire(await waiting(id, "a"), event(1));
    await fire(await waiting(id, "a", 2), event(666));
    const again = await waiting(id, "a", 3);
    expect((await rig.tasks(id)).a).toMatchObject({ try_number: 2 });
    await fire(again, event(2));
    await fire(await waiting(id, "a", 4), event(3));
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "a")).toBe("twice 5");
  });

  it("runs each step of a function task once, and finds its events by name", async () => {
    const id = await rig.trigger("steps");
    await fire(await waiting(id, "f"), event(5));
    await fire(await waiting(id, "f", 2), event(6));
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "f")).toEqual([7, 5, 10, 6]);
    expect(notes().filter((line) => line === "submit" || line === "double")).toEqual(["submit", "double"]);
  });

  it("reports a timeout to a function task", async () => {
    const id = await rig.trigger("late");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "f")).toBe("too late");
  });

  it("fails, fails without a retry, or skips a task after a timeout, which covers the whole try", async () => {
    const id = await rig.trigger("timeouts");
    expect(await rig.ended(id)).toBe("failed");
    const tasks = await rig.tasks(id);
    expect(tasks.short).toMatchObject({ state: "failed", try_number: 2 });
    expect(tasks.short?.reason).toContain("TASK_WAIT_TIMEOUT");
    expect(tasks.short?.reason).toContain("after its timeout of 300 ms");
    expect(tasks.fatal).toMatchObject({ state: "failed", try_number: 1 });
    expect(tasks.soft?.state).toBe("skipped");
    expect(tasks.whole?.reason).toContain("TASK_TIMEOUT");
    await rig.until(async () => notes().includes("callback short"), "the failure callback");
    const left = adhoc("SELECT 1 FROM deferral WHERE dag_run_id = $1 AND ended_at IS NULL");
    expect(await rig.db.rows(left, [id])).toEqual([]);
  });

  it("counts an event before the timeout, even if its owner reads it later", async () => {
    const id = await rig.trigger("late");
    const wait = await waiting(id, "f");
    await fire(wait, event(9), { quietly: true });
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "f")).toBe(9);
  });

  it("ends a task by its trigger: success with output, failure, skip", async () => {
    const ending = async (value: object) => {
      const id = await rig.trigger("plain");
      await fire(await waiting(id, "a"), { kind: "ending", ending: value });
      await rig.ended(id);
      return { ...(await rig.tasks(id)).a, output: await rig.output(id, "a") };
    };
    expect(await ending({ kind: "success", output: 4 })).toMatchObject({ state: "success", output: 4 });
    await rig.until(async () => notes().includes("callback plain"), "the success callback");
    expect(await ending({ kind: "skipped", reason: "no" })).toMatchObject({ state: "skipped", reason: "no" });
    expect(await ending({ kind: "failed", reason: "bad", retry: false })).toMatchObject({ state: "failed" });
  });

  it("fails the try of a trigger that fails", async () => {
    const id = await rig.trigger("plain");
    const error = { name: "Error", message: "no such key", stack: null, code: "X" };
    await fire(await waiting(id, "a"), { kind: "failed", error });
    expect(await rig.ended(id)).toBe("failed");
    expect((await rig.tasks(id)).a?.reason).toBe("X: no such key");
  });

  it("keeps the slot in a pool that counts deferred tasks", async () => {
    const id = await rig.trigger("pooled");
    const wait = await waiting(id, "a");
    expect(await occupied("counted")).toBe(1);
    expect((await rig.states(id)).b).toBe("scheduled");
    await fire(wait, event(1));
    expect(await rig.ended(id)).toBe("success");
    expect(await occupied("counted")).toBe(0);
  });

  it("runs a trigger task without a worker, with its event as output", async () => {
    const id = await rig.trigger("node");
    const wait = await waiting(id, "event");
    expect((await rig.tasks(id)).event).toMatchObject({ state: "deferred", pid: null });
    await fire(wait, event(1));
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "use")).toBe(2);
  });

  const clear = (id: number) => rig.db.transaction((tx) => clearRun(tx, id));

  it("ends the wait of a cleared task, which starts over", async () => {
    const id = await rig.trigger("plain");
    const wait = await waiting(id, "a");
    await clear(id);
    rig.wakeUps.send(`run:${id}`);
    const next = await waiting(id, "a", 2);
    expect((await waits(id, "a"))[0]).toMatchObject({ end_kind: "cancelled", waits_on: null });
    // The old trigger is shared with the new wait; an event for the old wait alone has no effect.
    await fire({ ...wait, waits_on: null }, event(13));
    await fire(next, event(14));
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "a")).toBe("event 14");
  });

  it("ends all waits of a cancelled run", async () => {
    const id = await rig.trigger("plain");
    await waiting(id, "a");
    await rig.db.transaction((tx) => cancelRun(tx, id, "cancelled manually"));
    rig.wakeUps.send(`run:${id}`);
    expect(await rig.ended(id)).toBe("failed");
    expect((await waits(id, "a"))[0]).toMatchObject({ end_kind: "cancelled", waits_on: null });
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it("takes over waits with their timeouts, and resumes lost attempts", async () => {
    const own = await SchedulerRig.open();
    await own.publish({
      "over.ts": `
        import { dag, Operator, Trigger, type TaskContext } from "tradewind";
        import { appendFileSync, existsSync, readFileSync } from "node:fs";
        const note = ${JSON.stringify(`${own.root}/resumed`)};
        class Never extends Trigger<{ key: string }, { n: number }> {
          static id = "test.never";
          async *run() { await new Promise(() => {}); yield { n: 0 }; }
        }
        class Held extends Operator<void, number> {
          execute(_ctx: TaskContext) { return this.defer({ trigger: new Never({ key: "c" }), method: "go", kwargs: {} }); }
          async go(ctx: TaskContext, event: { n: number }) {
            const isFirst = !existsSync(note);
            appendFileSync(note, ctx.attempt + "\\n");
            if (isFirst) await new Promise(() => setTimeout(() => {}, 60_000));
            return event.n;
          }
        }
        export default dag("over", {}, (d) => {
          d.operator("held", new Held());
          d.task("fired", async (_, ctx) => (await ctx.until("x", new Never({ key: "a" }))).n);
          d.task("late", async (_, ctx) => ctx.until("x", new Never({ key: "b" }), { timeout: 1500 }).then(() => "?", (e) => e.name));
        });
      `,
    });
    const first = await own.scheduler({ shared: false });
    const id = await own.trigger("over");
    const unfired = adhoc("SELECT * FROM deferral WHERE dag_run_id = $1 AND waits_on IS NOT NULL");
    await own.until(async () => (await own.db.rows(unfired, [id])).length === 3, "all to wait");
    const fire = adhoc(
      `UPDATE deferral SET fired_at = now(), waits_on = NULL, outcome = '{"kind":"event","payload":{"n":3}}'
       WHERE dag_run_id = $1 AND task_id = $2`,
    );
    await own.db.rows(fire, [id, "held"]);
    own.wakeUps.send("fired");
    await own.until(async () => existsSync(`${own.root}/resumed`), "the resumed attempt");
    await first.stop(0);
    await own.db.rows(fire, [id, "fired"]);
    await own.scheduler({ shared: false });
    expect(await own.ended(id)).toBe("success");
    expect(await own.output(id, "fired")).toBe(3);
    expect(await own.output(id, "held")).toBe(3);
    const attempts = readFileSync(`${own.root}/resumed`, "utf8").trim().split("\n");
    expect(new Set(attempts).size).toBe(2);
    expect((await own.tasks(id)).held).toMatchObject({ try_number: 1 });
    expect(await own.output(id, "late")).toBe("DeferralTimeoutError");
  });
});
