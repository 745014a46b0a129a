/** Waits under adverse conditions: backlogs, values that cannot be stored, edits during a wait. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { pgProxy } from "../../test/support/pg-proxy.ts";
import { clearRun, type RunClear } from "../../test/support/run-edits.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { recordWebhook } from "../store/trigger/webhooks.ts";

/** More events than a scheduler reads in two turns: in the first it has no timer yet. */
const MANY = 4_100;

describe("deferrals under faults", () => {
  let rig: SchedulerRig;
  const stop: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await rig.publish({
      "faults.ts": `
        import { dag, Operator, Sensor, Trigger, type TaskContext, WebhookTrigger } from "tradewind";
        import { appendFileSync, existsSync, writeFileSync, writeSync } from "node:fs";
        class Never extends Trigger<{ key: string }, { n: number }> {
          static id = "test.never";
          async *run() { await new Promise(() => {}); yield { n: 0 }; }
        }
        class Plain extends Operator<{ key: string }, string> {
          execute(ctx: TaskContext) { return this.defer({ trigger: new Never(this.args), method: "go", kwargs: { by: ctx.attempt } }); }
          go(ctx: TaskContext, event: { n: number }) { return ctx.tryNumber + " " + event.n; }
        }
        /** A trigger call that the SDK would not create. */
        const call = (changes: object) => ({
          [Symbol.for("tradewind.triggerCall")]: () => ({
            kind: "test.never", args: { key: "x" }, source: "bundle", queue: "default", replicas: 1, wake: null, timed: null, ...changes,
          }),
        }) as never;

        export const many = dag("many", { maxActiveTasks: ${2 * MANY} }, (d) => {
          for (let i = 0; i < ${MANY}; i++) d.trigger("t" + i, new Never({ key: "many" }), { timeout: "1h" });
        });
        export const plain = dag("plain", {}, (d) => {
          d.operator("a", new Plain({ key: "plain" }), { pool: "tight" });
          d.task("b", { pool: "default_pool" }, () => "b");
        });
        export const wrong = dag("wrong", {}, (d) => {
          d.task("name", async (_, ctx) => ctx.until("a\\u0000b", new Never({ key: "name" })));
          d.task("queue", async (_, ctx) => ctx.until("w", call({ queue: "a\\u0000b" })));
          d.task("long", async (_, ctx) => ctx.until("w", call({ queue: [...Array(9000).keys()].join("-") })));
          d.task("kind", async (_, ctx) => ctx.until("w", call({ kind: "a\\u0000b" })));
          d.task("replicas", async (_, ctx) => ctx.until("w", call({ replicas: 3 })));
          d.task("past", async (_, ctx) => ctx.until("w", call({ wake: { at: new Date(-8.64e15).toISOString() } }), { timeout: 1 }));
          d.task("deep", async (_, ctx) => {
            const output = "[".repeat(5000) + "]".repeat(5000);
            writeSync(3, '{"k":"ended","id":"' + ctx.attempt + '","outcome":{"kind":"success","skip":[],"output":' + output + '},"logged":0,"dropped":0,"aborted":false,"crashed":false,"unclean":null}\\n');
            await new Promise((resolve) => setTimeout(resolve, 60_000));
          });
          d.task("check", async (_, ctx) => (ctx as never as Record<symbol, { host: { check(call: unknown): Promise<unknown> } }>)[Symbol.for("tradewind.attempt")]!.host.check({ kind: "tradewind.webhook" }));
        });
        /** Waits for a file of the test, then writes one. */
        const gate = async (name: string) => {
          while (!existsSync(${JSON.stringify(rig.root)} + "/" + name + "-go")) await new Promise((resolve) => setTimeout(resolve, 20));
          writeFileSync(${JSON.stringify(rig.root)} + "/" + name + "-gone", "");
        };
        export const gated = dag("gated", {}, (d) => {
          d.task("f", async () => { await gate("gated"); return "fine"; });
        });
        export const step = dag("step", {}, (d) => {
          d.task("f", { retries: 1, retryDelay: 0 }, async (_, ctx) => {
            await ctx.step("submit", async () => { await gate("step"); appendFileSync(${JSON.stringify(rig.root)} + "/submitted", "x"); });
            return ctx.tryNumber;
          });
        });
        class Gated extends Operator<void, string> {
          async execute() { await gate("both"); return this.defer({ trigger: new Never({ key: "both" }), method: "go", kwargs: {} }); }
          go() { return "?"; }
        }
        export const both = dag("both", { runTimeout: 3000 }, (d) => {
          d.operator("f", new Gated());
        });
        class Bell extends Sensor<void, object> {
          override trigger() { return new WebhookTrigger({ name: "bell" }); }
        }
        export const skewed = dag("skewed", {}, (d) => {
          d.operator("bell", new Bell({ mode: "poke", interval: 50 }));
          d.task("late", async (_, ctx) => ctx.until("x", new Never({ key: "late" }), { timeout: 1500 }).then(() => "?", (e) => e.name));
        });
        export const fine = dag("fine", {}, (d) => { d.task("f", () => "fine"); });
      `,
    });
    await rig.db.rows(adhoc("INSERT INTO pool (name, slots, include_deferred) VALUES ('tight', 1, true)"));
  });

  afterEach(async () => {
    for (const each of stop.splice(0).reverse()) await each();
  });

  const scheduler = async () => {
    const job = await rig.scheduler({ shared: false });
    stop.push(() => job.stop(0));
    return job;
  };
  const waits = (id: number) =>
    rig.db.rows<{ attempt: string; task_id: string }>(
      adhoc("SELECT * FROM deferral WHERE dag_run_id = $1 AND waits_on IS NOT NULL ORDER BY deferred_at"),
      [id],
    );
  const fireAll = (id: number) =>
    rig.db.rows(
      adhoc(`UPDATE deferral SET fired_at = now(), waits_on = NULL, outcome = '{"kind":"event","payload":{"n":3}}'
             WHERE dag_run_id = $1 AND ended_at IS NULL`),
      [id],
    );
  const clear = (id: number, edit: RunClear) => rig.db.transaction((tx) => clearRun(tx, id, edit));

  it("counts events before the timeout in any number, however late their owner reads them", async () => {
    const first = await scheduler();
    const id = await rig.trigger("many");
    await rig.until(async () => (await waits(id)).length === MANY, "all to wait");
    await first.stop(0);
    await fireAll(id);
    await rig.db.rows(
      adhoc("UPDATE deferral SET timeout_at = now() - interval '1 second' WHERE dag_run_id = $1"),
      [id],
    );
    await scheduler();
    expect(await rig.ended(id, 40_000)).toBe("success");
  });

  it("fails only the task whose wait cannot be stored", async () => {
    await scheduler();
    const id = await rig.trigger("wrong");
    const fine = await rig.trigger("fine");
    expect(await rig.ended(id, 40_000)).toBe("failed");
    expect(await rig.states(id)).toMatchObject({
      name: "failed",
      queue: "failed",
      long: "failed",
      kind: "failed",
      replicas: "failed",
      past: "failed",
      deep: "failed",
      check: "failed",
    });
    expect((await rig.tasks(id)).name?.reason).toContain("TW_STEP_NAME");
    expect(await rig.ended(fine)).toBe("success");
  });

  it("restarts a cleared task that was waiting, also between its event and its next worker", async () => {
    await scheduler();
    const id = await rig.trigger("plain");
    await rig.until(async () => (await waits(id)).length === 1, "the wait");
    // Resumed, and waiting for a pool slot.
    await rig.db.rows(adhoc("UPDATE pool SET slots = 0 WHERE name = 'tight'"));
    rig.wakeUps.send("pools");
    // A run that the scheduler claims later shows that it has read the change.
    expect(await rig.ended(await rig.trigger("fine"))).toBe("success");
    await fireAll(id);
    rig.wakeUps.send("fired");
    await rig.until(async () => (await rig.states(id)).a === "scheduled", "the task to resume");
    await clear(id, { tasks: ["a"] });
    rig.wakeUps.send(`run:${id}`);
    await rig.db.rows(adhoc("UPDATE pool SET slots = 1 WHERE name = 'tight'"));
    rig.wakeUps.send("pools");
    await rig.until(async () => (await waits(id)).length === 1, "the second wait");
    await fireAll(id);
    rig.wakeUps.send("fired");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "a")).toBe("2 3");
  });

  it("keeps the slot of a deferred task in its pool when its run gets another version", async () => {
    await scheduler();
    const id = await rig.trigger("plain");
    await rig.until(
      async () => (await waits(id)).length === 1 && (await rig.states(id)).b === "success",
      "the wait",
    );
    await rig.db.rows(
      adhoc(`UPDATE dag_version SET manifest = jsonb_set(manifest, '{tasks,0,pool}', '"default_pool"')
             WHERE dag_id = 'plain'`),
    );
    await clear(id, { latestVersion: true, tasks: ["b"] });
    // Counted in the other pool, it would be freed there, and both numbers would stay wrong.
    const place = adhoc("SELECT pool FROM task_instance WHERE dag_run_id = $1 AND task_id = 'a'");
    expect(await rig.db.one(place, [id])).toEqual({ pool: "tight" });
    rig.wakeUps.send(`run:${id}`);
    await fireAll(id);
    rig.wakeUps.send("fired");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.poolsAreExact()).toBe(true);
  });

  /** A run whose task ends its attempt while the database is unavailable; `back` restores it. */
  async function endsWhileAway(dagId: string): Promise<{ id: number; back: () => void }> {
    const proxy = await pgProxy(rig.url);
    stop.push(() => proxy.close());
    const job = await rig.scheduler({ url: proxy.url });
    stop.push(() => job.stop(0));
    const id = await rig.trigger(dagId);
    await rig.until(async () => (await rig.states(id)).f === "running", "the task");
    const beat = adhoc("SELECT max(heartbeat_at)::text AS at FROM job WHERE kind = 'scheduler'");
    const before = await rig.db.one(beat);
    // The next heartbeat is far away: until then there is no other query.
    await rig.until(async () => !isDeepStrictEqual(await rig.db.one(beat), before), "a heartbeat");
    proxy.set({ kind: "cut" });
    rig.wakeUps.send("fired");
    writeFileSync(`${rig.root}/${dagId}-go`, "");
    await rig.until(async () => existsSync(`${rig.root}/${dagId}-gone`), "the task's end");
    const cut = proxy.faults.cut;
    await rig.until(async () => proxy.faults.cut >= cut + 3, "failed queries of the scheduler");
    return { id, back: () => proxy.set({ kind: "pass" }) };
  }

  it("keeps a report that arrives while the database is unavailable and events are being read", async () => {
    const { id, back } = await endsWhileAway("gated");
    back();
    expect(await rig.ended(id)).toBe("success");
  });

  it("records a step as soon as the database is available again", async () => {
    const { id, back } = await endsWhileAway("step");
    back();
    expect(await rig.ended(id)).toBe("success");
    expect(readFileSync(`${rig.root}/submitted`, "utf8")).toBe("x");
    expect(await rig.output(id, "f")).toBe(1);
  });

  it("ends a wait that starts at the moment its run times out", async () => {
    const { id, back } = await endsWhileAway("both");
    const isLate = adhoc("SELECT 1 FROM dag_run WHERE id = $1 AND started_at < now() - interval '3 seconds'");
    await rig.until(async () => (await rig.db.one(isLate, [id])) !== undefined, "the run timeout");
    back();
    expect(await rig.ended(id)).toBe("failed");
    expect((await rig.run(id)).end_reason).toBe("timed_out");
    expect(await waits(id)).toEqual([]);
  });

  it("does not shorten a wait or drop a call because of a clock that differs from the database's", async () => {
    const now = Date.now;
    vi.spyOn(Date, "now").mockImplementation(() => now() + 3_600_000);
    stop.push(async () => void vi.restoreAllMocks());
    await scheduler();
    const id = await rig.trigger("skewed");
    await rig.until(async () => (await rig.states(id)).bell === "running", "the sensor");
    await rig.db.transaction((tx) =>
      recordWebhook(tx, { name: "bell", sender: "test", value: { body: 1, headers: {} } }),
    );
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "bell")).toMatchObject({ body: 1 });
    expect(await rig.output(id, "late")).toBe("DeferralTimeoutError");
    const lasted = adhoc(
      "SELECT extract(epoch FROM ended_at - deferred_at)::float8 AS s FROM deferral WHERE dag_run_id = $1",
    );
    const [wait] = await rig.db.rows<{ s: number }>(lasted, [id]);
    expect(wait?.s).toBeGreaterThan(1.3);
    expect(wait?.s).toBeLessThan(10);
  });
});
