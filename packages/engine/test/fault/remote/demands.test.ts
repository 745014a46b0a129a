/** What a queue executor has to offer, one demand per test: of executors in general, then of the queue executor. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Executor } from "../../../src/execute/contract.ts";
import { LocalExecutor } from "../../../src/execute/local/local-executor.ts";
import { QueueLauncher } from "../../../src/execute/queue/queue-launcher.ts";
import { RemoteExecutor } from "../../../src/execute/remote/remote-executor.ts";
import { launcherHost } from "../../support/launcher-host.ts";
import { RemoteRig } from "../../support/remote-rig.ts";

const remote = RemoteRig.ofFile((root) => ({
  "demands.ts": `
    import { dag } from "tradewind";
    import { appendFileSync, existsSync } from "node:fs";
    import { setTimeout as sleep } from "node:timers/promises";
    const root = ${JSON.stringify(root)};
    const note = (ctx, what) =>
      appendFileSync(root + "/" + ctx.run.id, [what, ctx.taskId, process.pid, process.ppid, Date.now()].join(" ") + "\\n");
    const short = async (_, ctx) => { note(ctx, "start"); await sleep(20); note(ctx, "end"); };
    const gated = async (_, ctx) => {
      note(ctx, "start");
      while (!existsSync(root + "/" + ctx.run.id + ".open")) await sleep(10, undefined, { signal: ctx.abort });
      note(ctx, "end");
    };
    const many = (count, task, options = {}) => (d) => {
      for (let n = 0; n < count; n++) d.task("t" + n, { retries: 0, ...options }, task);
    };
    export const wide = dag("wide", { maxActiveRuns: 200 }, many(12, short));
    export const burst = dag("burst", { maxActiveRuns: 200, maxActiveTasks: 100 }, many(80, short));
    export const gate = dag("gate", { maxActiveRuns: 200 }, many(2, gated));
    export const fresh = dag("fresh", { maxActiveRuns: 200 }, many(3, short, { isolation: "fresh" }));
    export const ranked = dag("ranked", { maxActiveRuns: 200 }, (d) => {
      for (const priority of [1, 5, 3, 9, 7]) d.task("p" + priority, { priority, weightRule: "absolute" }, short);
    });
    export const routed = dag("routed", { maxActiveRuns: 200 }, (d) => {
      d.task("cpu", short);
      d.task("gpu", { queue: "gpu" }, short);
    });
    export const chain = dag("chain", { maxActiveRuns: 200 }, (d) => {
      let before = d.task("t0", short);
      for (let n = 1; n < 10; n++) before = d.task("t" + n, { after: before }, short);
    });
  `,
}));

/** Starts a worker, which stops with the test. */
async function worker(options: { readonly slots?: number; readonly queues?: readonly string[] } = {}) {
  const started = await remote.worker(options);
  onTestFinished(() => started.stop());
  return started;
}

interface Line {
  readonly what: string;
  readonly task: string;
  readonly pid: number;
  readonly parent: number;
  readonly at: number;
}

function lines(runId: string, what?: string): Line[] {
  const path = `${remote.rig.root}/${runId}`;
  if (!existsSync(path)) return [];
  const all = readFileSync(path, "utf8").trim().split("\n").filter(Boolean);
  return all
    .map((line) => line.split(" "))
    .map(([said = "", task = "", pid, parent, at]) => {
      return { what: said, task, pid: Number(pid), parent: Number(parent), at: Number(at) };
    })
    .filter((line) => what === undefined || line.what === what);
}

/** The largest number of tasks that were running at once. */
function mostAtOnce(runId: string): number {
  let [now, most] = [0, 0];
  for (const { what } of lines(runId)) {
    now += what === "start" ? 1 : -1;
    most = Math.max(most, now);
  }
  return most;
}

function open(runId: string): void {
  writeFileSync(`${remote.rig.root}/${runId}.open`, "");
}

async function count(sql: string): Promise<number> {
  return (await remote.sql<{ n: number }>(`SELECT count(*)::int AS n FROM ${sql}`))[0]!.n;
}

describe("an executor", () => {
  it("one base contract, with priority and queue: waiting tasks start in the order of their priority", async () => {
    const contract = ["submit", "cancel", "freeSlots", "slots", "start", "stop"] satisfies (keyof Executor)[];
    for (const each of [LocalExecutor, RemoteExecutor])
      for (const method of contract) expect(each.prototype).toHaveProperty(method);
    await remote.scheduler();
    const run = await remote.rig.trigger("ranked", { runId: "ranked" });
    // All of them wait for the only slot.
    await remote.rig.until(
      async () => (await count("assignment WHERE worker_job IS NULL")) === 5,
      "5 assignments",
    );
    const rows = await remote.sql("SELECT queue, priority FROM assignment ORDER BY priority");
    expect(rows).toEqual([1, 3, 5, 7, 9].map((priority) => ({ queue: "default", priority })));
    const ids = (await remote.assignments()).map(({ id }) => id);
    for (const id of ids) await remote.isSent(id);
    await worker({ slots: 1 });
    expect(await remote.rig.ended(run)).toBe("success");
    expect(lines("ranked", "start").map(({ task }) => task)).toEqual(["p9", "p7", "p5", "p3", "p1"]);
  });

  it.each([
    // A flag of the rig sets the parallelism of the local executor.
    ["local", { TRADEWIND_EXECUTOR: "local" }],
    ["queue", { TRADEWIND_QUEUE_PARALLELISM: "4" }],
  ])("never more than parallelism − running: %s", async (name, settings) => {
    await remote.scheduler(settings);
    if (name === "queue") await worker({ slots: 8 });
    const runId = `bounded-${name}`;
    const run = await remote.rig.trigger("wide", { runId });
    let most = 0;
    const watch = (async () => {
      while ((await remote.rig.run(run)).state !== "success")
        most = Math.max(most, await count("task_instance WHERE state IN ('queued', 'running')"));
    })();
    expect(await remote.rig.ended(run)).toBe("success");
    await watch;
    expect(mostAtOnce(runId)).toBeLessThanOrEqual(4);
    expect(most).toBeGreaterThanOrEqual(4);
    // A local executor has the next tasks ready.
    if (name === "queue") expect(most).toBe(4);
  });

  it("asynchronous execution and status sync: the scheduler goes on, and learns of start and end", async () => {
    await remote.scheduler();
    await worker();
    const first = await remote.rig.trigger("gate", { runId: "async" });
    await remote.taskIs(first, "t0", "running");
    await remote.taskIs(first, "t1", "running");
    const { t0 } = await remote.rig.tasks(first);
    expect(lines("async", "start").map(({ pid }) => pid)).toContain(t0?.pid);
    const other = await remote.rig.trigger("wide", { runId: "meanwhile" });
    open("meanwhile");
    await remote.rig.until(
      async () => (await count(`assignment WHERE dag_run_id = ${other}`)) > 0,
      "other tasks",
    );
    open("async");
    expect(await remote.rig.ended(first)).toBe("success");
    expect(await remote.rig.ended(other)).toBe("success");
  });

  it("only one scheduler enqueues a task: three start each task once", async () => {
    await Promise.all([remote.scheduler(), remote.scheduler(), remote.scheduler()]);
    await worker({ slots: 8 });
    await remote.sql("CREATE TABLE enqueued (id uuid, task_id text, dag_run_id bigint)");
    await remote.sql(`CREATE FUNCTION enqueue() RETURNS trigger LANGUAGE plpgsql AS
                      $$ BEGIN INSERT INTO enqueued VALUES (NEW.id, NEW.task_id, NEW.dag_run_id); RETURN NEW; END $$`);
    await remote.sql(
      "CREATE TRIGGER enqueue AFTER INSERT ON assignment FOR EACH ROW EXECUTE FUNCTION enqueue()",
    );
    onTestFinished(async () => {
      await remote.sql("DROP TRIGGER enqueue ON assignment");
    });
    const runs = await Promise.all(Array.from({ length: 8 }, () => remote.rig.trigger("wide")));
    for (const run of runs) expect(await remote.rig.ended(run)).toBe("success");
    expect(await count("(SELECT DISTINCT dag_run_id, task_id FROM enqueued) AS tasks")).toBe(96);
    expect(await count("enqueued")).toBe(96);
  });
});

describe("the queue executor", () => {
  it("batch send in parallel: all messages are on their way before the first answer", async () => {
    const relay = await withheldAnswers(remote.redis.port);
    const launcher = new QueueLauncher({ url: `redis://127.0.0.1:${relay.port}`, sendTimeoutMs: 20_000 });
    const requests = (queue: string, count: number) =>
      Array.from({ length: count }, () => ({ id: crypto.randomUUID(), queue, priority: 1, config: null }));
    await launcher.start(launcherHost());
    onTestFinished(() => launcher.stop());
    // The connections are open.
    launcher.launch([...requests("one", 1), ...requests("two", 1)]);
    const sent = (queue: string) => remote.redis.client.zcard(`tradewind:${queue}`);
    await remote.rig.until(async () => (await sent("one")) + (await sent("two")) === 2, "open connections");
    relay.withhold();
    launcher.launch([...requests("one", 600), ...requests("two", 600)]);
    await remote.rig.until(async () => (await sent("one")) + (await sent("two")) === 1_202, "all messages");
    expect(relay.withheld).toBeGreaterThan(0);
    relay.release();
  });

  it("a timeout on each send, and a defined outcome: what could not be sent is sent when Redis is back", async () => {
    await remote.scheduler();
    await worker();
    const before = await remote.rig.trigger("wide");
    expect(await remote.rig.ended(before)).toBe("success");
    remote.redis.pause();
    const run = await remote.rig.trigger("wide", { runId: "away" });
    // The scheduler waits for no answer of Redis: it goes on, and nothing has failed.
    await remote.rig.until(
      async () => (await count(`assignment WHERE dag_run_id = ${run}`)) === 12,
      "12 assignments",
    );
    expect(new Set(Object.values(await remote.rig.states(run)))).toEqual(new Set(["queued"]));
    remote.redis.resume();
    expect(await remote.rig.ended(run)).toBe("success");
    expect(lines("away", "start")).toHaveLength(12);
  });

  it("routing by queue: a task runs on a worker of its queue, and waits while there is none", async () => {
    await remote.scheduler();
    await worker();
    const run = await remote.rig.trigger("routed", { runId: "routed" });
    await remote.taskIs(run, "cpu", "success");
    expect(await remote.rig.states(run)).toMatchObject({ gpu: "queued" });
    await worker({ queues: ["gpu"] });
    expect(await remote.rig.ended(run)).toBe("success");
    const tasks = await remote.rig.tasks(run);
    const executors = await remote.sql<{ queues: string[] }>(
      "SELECT j.queues FROM task_instance t JOIN job j ON j.id = t.executor_job WHERE t.dag_run_id = $1 ORDER BY t.task_id",
      [run],
    );
    expect(Object.keys(tasks)).toHaveLength(2);
    expect(executors.map(({ queues }) => queues)).toEqual([["default"], ["gpu"]]);
  });

  it("a process per task on the worker: two at once never share one, and a fresh task has its own", async () => {
    await remote.scheduler();
    await worker({ slots: 2 });
    const warm = await remote.rig.trigger("gate", { runId: "processes" });
    await remote.rig.until(async () => lines("processes", "start").length === 2, "two starts");
    const [one, two] = lines("processes", "start");
    expect(one?.pid).not.toBe(two?.pid);
    expect([one?.parent, two?.parent]).toEqual([process.pid, process.pid]);
    open("processes");
    const fresh = await remote.rig.trigger("fresh", { runId: "own" });
    expect(await remote.rig.ended(warm)).toBe("success");
    expect(await remote.rig.ended(fresh)).toBe("success");
    expect(new Set(lines("own", "start").map(({ pid }) => pid)).size).toBe(3);
  });

  it("near real-time start: an idle worker starts a task within a tenth of a second", async () => {
    await remote.scheduler();
    await worker();
    const warm = await remote.rig.trigger("chain");
    expect(await remote.rig.ended(warm)).toBe("success");
    const run = await remote.rig.trigger("chain", { runId: "soon" });
    expect(await remote.rig.ended(run)).toBe("success");
    const ends = lines("soon", "end").map(({ at }) => at);
    const gaps = lines("soon", "start")
      .slice(1)
      .map(({ at }, n) => at - (ends[n] ?? 0));
    const [median = 0] = gaps.sort((a, b) => a - b).slice(gaps.length >> 1);
    expect(median).toBeLessThan(100);
  });

  it("accepting more work than the cluster's capacity: all is queued at once, and all succeeds", async () => {
    await remote.scheduler();
    const run = await remote.rig.trigger("burst", { runId: "burst" });
    await remote.rig.until(
      async () => (await count("task_instance WHERE state = 'queued'")) === 80,
      "80 queued tasks",
    );
    await worker({ slots: 2 });
    expect(await remote.rig.ended(run)).toBe("success");
    expect(mostAtOnce("burst")).toBe(2);
    expect(lines("burst", "start")).toHaveLength(80);
  });

  it("scale-out and scale-in: a new worker takes part at once, a stopped one loses nothing", async () => {
    await remote.scheduler();
    const first = await worker({ slots: 2 });
    const run = await remote.rig.trigger("burst", { runId: "scale" });
    await remote.rig.until(async () => lines("scale", "end").length >= 10, "10 tasks");
    await worker({ slots: 2 });
    const jobs = "(SELECT DISTINCT executor_job FROM task_instance WHERE dag_run_id = $1) AS jobs";
    await remote.rig.until(async () => {
      const [row] = await remote.sql<{ n: number }>(
        `SELECT count(*)::int AS n FROM ${jobs} WHERE executor_job IS NOT NULL`,
        [run],
      );
      return row?.n === 2;
    }, "the second worker");
    await first.stop();
    expect(await remote.rig.ended(run)).toBe("success");
    expect(lines("scale", "start")).toHaveLength(80);
    // What it had claimed and not started was handed back.
    expect(await count(`task_instance WHERE dag_run_id = ${run} AND try_number <> 1`)).toBe(0);
  });
});

/** A relay to Redis that can withhold its answers. */
async function withheldAnswers(port: number) {
  const held: (() => void)[] = [];
  let isWithholding = false;
  const server = createServer((client) => {
    const redis = connect(port, "127.0.0.1");
    for (const socket of [client, redis])
      socket
        .on("error", () => {})
        .on("close", () => {
          client.destroy();
          redis.destroy();
        });
    client.on("data", (bytes) => redis.write(bytes));
    redis.on("data", (bytes) => {
      const forward = () => void (client.destroyed || client.write(bytes));
      if (isWithholding) held.push(forward);
      else forward();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return {
    port: (server.address() as { port: number }).port,
    withhold: () => {
      isWithholding = true;
    },
    release: () => {
      isWithholding = false;
      for (const forward of held.splice(0)) forward();
    },
    get withheld() {
      return held.length;
    },
  };
}
