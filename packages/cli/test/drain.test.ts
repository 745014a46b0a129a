/** Real `tradewind scheduler` processes on one database; one of them gets SIGTERM. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { adhoc } from "../../engine/src/store/database/database.ts";
import { pgProxy } from "../../engine/test/support/pg-proxy.ts";
import { SchedulerRig } from "../../engine/test/support/scheduler-rig.ts";
import { spawnCli } from "./support/standalone-process.ts";

let rig: SchedulerRig;
const schedulers: Scheduler[] = [];

/** A scheduler process from start to end. */
class Scheduler {
  readonly child: ChildProcess;
  readonly gone: Promise<number | null>;
  stderr = "";

  constructor(args: readonly string[], env: NodeJS.ProcessEnv) {
    this.child = spawnCli(["--home", join(rig.root, "home"), ...args], env);
    this.child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.gone = once(this.child, "exit").then(([code]) => code as number | null);
    schedulers.push(this);
  }

  async says(pattern: RegExp): Promise<void> {
    await rig.until(async () => pattern.test(this.stderr), `${pattern} in:\n${this.stderr}`);
  }

  get isAlive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** The id of its job. */
  get job(): number {
    return Number(/scheduler\W.*job=(\d+)/.exec(this.stderr)?.[1]);
  }

  terminate(): void {
    this.child.kill("SIGTERM");
  }
}

async function start(
  drain: string,
  env: NodeJS.ProcessEnv & { readonly parallelism?: string } = {},
): Promise<Scheduler> {
  const { parallelism = "4", ...more } = env;
  const args = ["scheduler", "--drain", drain, "--parallelism", parallelism];
  const scheduler = new Scheduler(args, { DATABASE_URL: rig.url, TRADEWIND_STOP_GRACE_MS: "500", ...more });
  await scheduler.says(/The scheduler is running/);
  return scheduler;
}

/** Tasks write their steps and process ids to a file. `gate` waits until the test opens it. */
beforeEach(async () => {
  rig = await SchedulerRig.open();
  const path = (name: string) => JSON.stringify(join(rig.root, name));
  await rig.publish({
    "drained.ts": `
      import { appendFileSync, existsSync } from "node:fs";
      import { setTimeout as sleep } from "node:timers/promises";
      import { dag, TimeDeltaTrigger } from "tradewind";
      const note = (what, ctx) => {
        ctx.abort.addEventListener("abort", () => appendFileSync(${path("notes")}, what + " abort\\n"));
        appendFileSync(${path("notes")}, what + " start\\n");
      };
      const gate = async () => { while (!existsSync(${path("gate")})) await sleep(20); };
      export const chain = dag("chain", { maxActiveRuns: 100 }, (d) => {
        const a = d.task("a", async (_, ctx) => { note("a", ctx); await gate(); return process.ppid; });
        d.task("b", { inputs: { a } }, (_, ctx) => { note("b", ctx); return process.ppid; });
      });
      export const wait = dag("wait", (d) => { d.trigger("w", new TimeDeltaTrigger({ delta: "1h" })); });
      export const quick = dag("quick", (d) => { d.task("q", () => process.ppid); });
      const listen = async (ctx) => { while (!ctx.abort.aborted) await sleep(20); };
      export const stream = dag("stream", (d) => {
        d.task("s", { lifetime: "streaming", grace: "30s" }, (_, ctx) => { note("s", ctx); return listen(ctx); });
      });
      export const both = dag("both", (d) => {
        d.task("t", { lifetime: "streaming" }, (_, ctx) => { note("t", ctx); return listen(ctx); });
        d.task("u", async (_, ctx) => { note("u", ctx); await gate(); });
      });`,
  });
});

afterEach(async () => {
  await writeFile(join(rig.root, "gate"), "");
  for (const { child, gone, isAlive } of schedulers.splice(0)) {
    if (isAlive) child.kill("SIGKILL");
    await gone;
  }
  await rig.close();
});

const notes = async () =>
  (await readFile(join(rig.root, "notes"), "utf8").catch(() => "")).trim().split("\n");
const noted = (line: string, times = 1) =>
  rig.until(
    async () => (await notes()).filter((each) => each === line).length >= times,
    `${times} × ${line}`,
  );
const owner = async (run: number) => {
  const sql = "SELECT owner_job FROM dag_run WHERE id = $1";
  return (await rig.db.one<{ owner_job: number | null }>(adhoc(sql), [run]))?.owner_job ?? null;
};
const attempts = async (run: number) => {
  const sql = "SELECT task_id, try_number, reason FROM task_attempt WHERE dag_run_id = $1 ORDER BY task_id";
  return rig.db.rows(adhoc(sql), [run]);
};

it("lets a running task finish, and hands over its other runs to the peer at once", async () => {
  const old = await start("10m");
  const busy = await rig.trigger("chain");
  await noted("a start");
  const waiting = await rig.trigger("wait");
  await rig.until(async () => (await rig.states(waiting)).w === "deferred", "the wait");
  const peer = await start("10m");
  old.terminate();
  await old.says(/draining.* runs=2 .*attempts=1 .*remaining_ms=\d{6}/);
  await rig.until(async () => (await owner(waiting)) === peer.job, "the peer owns the run that waits", 5_000);
  const created = await rig.trigger("quick");
  expect(await rig.ended(created, 5_000)).toBe("success");
  expect(await rig.output(created, "q")).toBe(peer.child.pid);
  const sql = "SELECT state, free_slots, facts FROM job WHERE id = $1";
  expect(await rig.db.one(adhoc(sql), [old.job])).toMatchObject({
    state: "running",
    free_slots: 0,
    facts: { draining: true, runs: 1, attempts: 1, drain_until: expect.any(String) },
  });
  expect(await owner(busy)).toBe(old.job);
  const renewed =
    "SELECT lease_until > started_at + interval '14 seconds' AS is_renewed FROM job WHERE id = $1";
  const isRenewed = async () =>
    (await rig.db.one<{ is_renewed: boolean }>(adhoc(renewed), [old.job]))?.is_renewed === true;
  await rig.until(isRenewed, "renewals of the lease");
  expect(old.isAlive).toBe(true);
  await writeFile(join(rig.root, "gate"), "");
  expect(await old.gone).toBe(0);
  expect(old.stderr).toMatch(/drained/);
  expect(await rig.ended(busy)).toBe("success");
  expect(await rig.output(busy, "a")).toBe(old.child.pid);
  expect(await rig.output(busy, "b")).toBe(peer.child.pid);
  expect(await notes()).toEqual(["a start", "b start"]);
  expect(await attempts(busy)).toEqual([]);
  expect(await rig.poolsAreExact()).toBe(true);
});

it("starts a task that waited for a slot of the draining scheduler on the peer", async () => {
  const old = await start("10m", { parallelism: "1" });
  await rig.trigger("chain");
  await noted("a start");
  const second = await rig.trigger("chain");
  const owned = async () => (await rig.states(second)).a === "scheduled" && (await owner(second)) === old.job;
  await rig.until(owned, "the second run");
  old.terminate();
  await old.says(/draining/);
  await rig.until(async () => (await owner(second)) === null, "its release", 5_000);
  await start("10m");
  await noted("a start", 2);
  expect(old.isAlive).toBe(true);
});

it("stops a task that outlasts the drain, and restarts it on the peer without using up a try", async () => {
  const old = await start("300ms");
  const run = await rig.trigger("chain");
  await noted("a start");
  const peer = await start("10m");
  old.terminate();
  expect(await old.gone).toBe(0);
  expect(old.stderr).toMatch(/drain ended.*reason=.*time is up/);
  await noted("a start", 2);
  expect(await notes()).toEqual(["a start", "a abort", "a start"]);
  await writeFile(join(rig.root, "gate"), "");
  expect(await rig.ended(run)).toBe("success");
  expect(await rig.output(run, "a")).toBe(peer.child.pid);
  expect((await rig.tasks(run)).a).toMatchObject({ try_number: 1 });
  expect(await attempts(run)).toEqual([{ task_id: "a", try_number: 1, reason: "the executor is stopping" }]);
});

it("stops a streaming task when no other task of its run is active", async () => {
  const old = await start("10m");
  await rig.trigger("stream");
  const both = await rig.trigger("both");
  for (const task of ["s", "t", "u"]) await noted(`${task} start`);
  const peer = await start("10m");
  old.terminate();
  await noted("s start", 2);
  expect(await notes()).not.toContain("t abort");
  expect(await owner(both)).toBe(old.job);
  await writeFile(join(rig.root, "gate"), "");
  await noted("t start", 2);
  expect(await old.gone).toBe(0);
  expect(await owner(both)).toBe(peer.job);
  expect((await notes()).filter((line) => line.startsWith("u"))).toEqual(["u start"]);
});

it("ends the drain on a second signal and the process on a third", async () => {
  const old = await start("10m", { TRADEWIND_STOP_GRACE_MS: "60000" });
  const run = await rig.trigger("chain");
  await noted("a start");
  old.terminate();
  await old.says(/draining/);
  await new Promise((resolve) => setTimeout(resolve, 500));
  old.terminate();
  await old.says(/drain ended.*told to end/);
  await noted("a abort");
  await new Promise((resolve) => setTimeout(resolve, 500));
  old.terminate();
  expect(await old.gone).toBe(143);
  await start("10m");
  await noted("a start", 2);
  await writeFile(join(rig.root, "gate"), "");
  expect(await rig.ended(run)).toBe("success");
});

it.each(["cut", "hang"] as const)("does not wait for an unreachable database: %s", async (kind) => {
  const proxy = await pgProxy(rig.url);
  try {
    const old = await start("10m", { DATABASE_URL: proxy.url });
    const run = await rig.trigger("chain");
    await noted("a start");
    proxy.set({ kind });
    const began = performance.now();
    old.terminate();
    expect(await old.gone).toBe(0);
    // The time until the lease is no longer trusted, the grace period, and the last writes.
    expect(performance.now() - began).toBeLessThan(20_000);
    await start("10m");
    await noted("a start", 2);
    await writeFile(join(rig.root, "gate"), "");
    expect(await rig.ended(run)).toBe("success");
    expect((await rig.tasks(run)).a).toMatchObject({ try_number: 1 });
  } finally {
    proxy.set({ kind: "cut" });
    await proxy.close();
  }
});
