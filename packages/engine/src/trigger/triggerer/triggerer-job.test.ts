import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { pgProxy } from "../../../test/support/pg-proxy.ts";
import {
  seedTrigger,
  seedTriggerer,
  seedWait,
  triggerRow,
  waitRow,
} from "../../../test/support/trigger-seed.ts";
import { LONG_LEASE, TriggererRig } from "../../../test/support/triggerer-rig.ts";
import { adhoc } from "../../store/database/database.ts";
import { LOOK_EVERY } from "./triggerer-options.ts";

let rig: TriggererRig;
beforeEach(async () => {
  rig = await TriggererRig.open();
  return () => rig.close();
});

const AT_ONCE = "yield args.say ?? 'done';";
const NEVER = "await new Promise((resolve) => host.abort.addEventListener('abort', resolve));";

/** Continues when the file `args.mark` + "-go" exists: see `go`. */
const ON_GO = `
  const fs = await import("node:fs");
  while (!fs.existsSync(args.mark + "-go")) await new Promise((r) => setTimeout(r, 20));`;
const markOf = () => join(rig.root, "mark");
const go = () => writeFileSync(`${markOf()}-go`, "");

describe("a triggerer", () => {
  it("runs triggers of a bundle and built-in triggers, and resumes the waiting tasks", async () => {
    await rig.triggerer({ lease: LONG_LEASE });
    const bundle = await rig.bundle("demo.say", AT_ONCE);
    const said = await rig.wait("demo.say", bundle, { args: { say: "hello" } });
    const missing = await rig.wait("demo.other", bundle);
    const noBundle = await rig.wait("tradewind.file", null, {
      args: { path: import.meta.filename, intervalMs: 100 },
    });
    expect(await rig.outcome(said.attempt)).toEqual({ kind: "event", payload: "hello" });
    expect(await rig.outcome(missing.attempt)).toMatchObject({
      kind: "failed",
      error: { code: "TRIGGER_KIND_UNKNOWN" },
    });
    expect(await rig.outcome(noBundle.attempt)).toMatchObject({ kind: "event" });
    expect(await rig.owners()).toEqual([]);
  });

  it("passes on how a trigger ends a task", async () => {
    await rig.triggerer();
    const ending = { kind: "skipped", reason: "nothing there" };
    const { attempt } = await rig.wait("demo.end", await rig.bundle("demo.end", "yield { ending: args };"), {
      args: ending,
    });
    expect(await rig.outcome(attempt)).toEqual({ kind: "ending", ending });
  });

  it("fires timed triggers at their time, not before, and wakes cold triggers then", async () => {
    await rig.triggerer({ lease: LONG_LEASE });
    const timed = await rig.wait("tradewind.datetime", null, { timed: { payload: "now" }, wakeMs: 400 });
    const cold = await rig.wait("demo.cold", await rig.bundle("demo.cold", AT_ONCE), { wakeMs: 900 });
    const moment = (await triggerRow(rig.db, timed.triggerId))?.wake_at ?? new Date(0);
    expect((await triggerRow(rig.db, cold.triggerId))?.owner_job).toBeNull();
    expect(await rig.outcome(timed.attempt)).toEqual({ kind: "event", payload: "now" });
    const { fired_at } = await waitRow(rig.db, timed.attempt);
    expect(fired_at?.getTime()).toBeGreaterThanOrEqual(moment.getTime());
    expect((fired_at?.getTime() ?? 0) - moment.getTime()).toBeLessThan(1_000);
    expect(await rig.outcome(cold.attempt)).toEqual({ kind: "event", payload: "done" });
  });

  it("runs a shared trigger once for all tasks, and stops it when the last wait has ended", async () => {
    const { job } = await rig.triggerer();
    const bundle = await rig.bundle("demo.wait", NEVER);
    const { triggerId, attempt } = await rig.wait("demo.wait", bundle);
    const second = await seedWait(rig.db, { runId: rig.runId, triggerId, taskId: "t1" });
    await rig.until(() => job.size === 1, "the trigger to run");
    const leave = (one: string) =>
      rig.db.rows(
        adhoc(
          "UPDATE deferral SET waits_on = NULL, ended_at = now(), end_kind = 'cancelled' WHERE attempt = $1",
        ),
        [one],
      );
    await leave(attempt);
    await rig.notify("unwaited");
    await leave(second);
    await rig.notify("unwaited");
    await rig.until(() => job.size === 0, "the trigger to be stopped");
    expect(await triggerRow(rig.db, triggerId)).toBeUndefined();
  });

  it("fails only the trigger that cannot be loaded", async () => {
    await rig.triggerer();
    const hash = await rig.bundle("demo.x", "");
    await rig.db.rows(adhoc("UPDATE bundle SET code = '' WHERE hash = $1"), [hash]);
    const { attempt } = await rig.wait("demo.x", hash);
    const outcome = await rig.outcome(attempt);
    expect(outcome).toMatchObject({ kind: "failed", error: { code: "TRIGGER_NOT_LOADED" } });
  });

  it("reports its load and the triggers that wait for capacity", async () => {
    const { job } = await rig.triggerer({ capacity: 2 });
    const bundle = await rig.bundle("demo.wait", NEVER);
    for (let i = 0; i < 5; i++) await rig.wait("demo.wait", bundle);
    const facts = async () =>
      (await rig.db.one<{ facts: object }>(adhoc("SELECT facts FROM job WHERE id = $1"), [job.jobId]))?.facts;
    await rig.until(
      async () => JSON.stringify(await facts()).includes('"unclaimed":3'),
      "the rest to be seen",
    );
    expect(await facts()).toMatchObject({ triggers: 2, capacity: 2, queues: ["default"], blocked: 0 });
  });
});

describe("several triggerers", () => {
  it("take over the triggers of a dead triggerer", async () => {
    const dead = await seedTriggerer(rig.db, 600);
    const bundle = await rig.bundle("demo.say", AT_ONCE);
    const { attempt, triggerId } = await rig.wait("demo.say", bundle, { ownerJob: dead });
    await rig.triggerer();
    expect(await rig.outcome(attempt)).toEqual({ kind: "event", payload: "done" });
    expect(await triggerRow(rig.db, triggerId)).toBeUndefined();
  });

  it("take over from a triggerer without progress, and ignore its late outcome", async () => {
    const stalled = await rig.triggerer({ stallMs: 600 });
    // Fires in the second start only: the first one is stopped before it can.
    const body = "await new Promise((resolve) => setTimeout(resolve, 2_500)); yield args.say;";
    const { attempt, triggerId } = await rig.wait("demo.slow", await rig.bundle("demo.slow", body), {
      args: { say: "once" },
    });
    await rig.until(() => stalled.job.size === 1, "the trigger to run");
    const first = stalled.job.jobId;
    process.kill(stalled.runner.pid ?? 0, "SIGSTOP");
    const other = await rig.triggerer();
    await rig.until(
      async () => (await triggerRow(rig.db, triggerId))?.owner_job === other.job.jobId,
      "a take-over",
    );
    expect(await rig.outcome(attempt)).toEqual({ kind: "event", payload: "once" });
    process.kill(stalled.runner.pid ?? 0, "SIGCONT");
    await rig.until(() => stalled.job.jobId !== first && stalled.job.size === 0, "it to come back again");
  });

  it("share evenly when one joins, and lose nothing", async () => {
    const first = await rig.triggerer();
    const body =
      "await host.variable('x'); while (!host.abort.aborted) { await new Promise((r) => setTimeout(r, 50)); }";
    const bundle = await rig.bundle("demo.wait", body);
    for (let i = 0; i < 60; i++) await rig.wait("demo.wait", bundle);
    await rig.until(() => first.job.size === 60, "the first to have all");
    const second = await rig.triggerer();
    await rig.until(() => second.job.size >= 20 && first.job.size + second.job.size === 60, "an even share");
    expect(first.job.size).toBeGreaterThanOrEqual(20);
    const before = await rig.owners();
    const sizes = [first.job.size, second.job.size];
    await Promise.all([first, second].map(({ job }) => rig.heartbeats(job.jobId, LOOK_EVERY + 1)));
    expect([first.job.size, second.job.size]).toEqual(sizes);
    expect(await rig.owners()).toEqual(before);
  });

  it("share evenly although the second started before the first heartbeat of the first", async () => {
    const lease = { ttlMs: 20_000, renewMs: 3_000, marginMs: 1_000 };
    const bundle = await rig.bundle("demo.wait", NEVER);
    for (let i = 0; i < 40; i++) await rig.wait("demo.wait", bundle);
    const first = await rig.triggerer({ lease });
    await rig.until(() => first.job.size === 40, "the first to have all");
    const second = await rig.triggerer({ lease });
    await rig.until(() => second.job.size >= 10 && first.job.size + second.job.size === 40, "an even share");
  });

  it("hand over at once when one stops in order", async () => {
    const first = await rig.triggerer({ lease: LONG_LEASE });
    const bundle = await rig.bundle("demo.wait", NEVER);
    for (let i = 0; i < 5; i++) await rig.wait("demo.wait", bundle);
    await rig.until(() => first.job.size === 5, "the first to have all");
    // Its heartbeat is a minute away: only the wake-up of the first one can make it poll.
    const second = await rig.triggerer({ lease: LONG_LEASE });
    await first.stop();
    await rig.until(() => second.job.size === 5, "the second to have all", 5_000);
  });

  it("run a trigger with two replicas twice, and resume the waiting task once", async () => {
    const bundle = await rig.bundle("demo.two", `${ON_GO} yield "one";`);
    const args = { mark: markOf() };
    const { triggerId, attempt } = await rig.wait("demo.two", bundle, { replicas: 2, args });
    const both = [await rig.triggerer(), await rig.triggerer()];
    await rig.until(() => both.every(({ job }) => job.size === 1), "both to run it");
    const row = await triggerRow(rig.db, triggerId);
    expect([row?.owner_job, row?.standby_job].sort()).toEqual(both.map(({ job }) => job.jobId).sort());
    go();
    expect(await rig.outcome(attempt)).toEqual({ kind: "event", payload: "one" });
    await rig.until(() => both.every(({ job }) => job.size === 0), "both to be done");
  });

  it("do not claim triggers of other queues", async () => {
    const { job } = await rig.triggerer({ queues: ["slow"] });
    const bundle = await rig.bundle("demo.say", AT_ONCE);
    const other = await rig.wait("demo.say", bundle);
    const mine = await rig.wait("demo.say", bundle, { queue: "slow" });
    await rig.outcome(mine.attempt);
    expect(await triggerRow(rig.db, other.triggerId)).toMatchObject({ owner_job: null });
    expect(job.size).toBe(0);
  });
});

describe("a triggerer after a failure", () => {
  it("returns with a new job after it was declared dead", async () => {
    const { job } = await rig.triggerer();
    const { triggerId } = await rig.wait("demo.wait", await rig.bundle("demo.wait", NEVER));
    await rig.until(() => job.size === 1, "the trigger to run");
    const former = job.jobId;
    await rig.db.rows(adhoc("UPDATE job SET state = 'dead', lease_until = now() WHERE id = $1"), [former]);
    await rig.until(
      async () => job.jobId !== former && (await triggerRow(rig.db, triggerId))?.owner_job === job.jobId,
      "it to run the trigger again",
    );
  });

  it("keeps an outcome while the database is unavailable", async () => {
    const proxy = await pgProxy(rig.url);
    const { job } = await rig.triggerer({ url: proxy.url });
    const body = `${ON_GO} fs.writeFileSync(args.mark, ""); yield "kept";`;
    const mark = markOf();
    const { attempt } = await rig.wait("demo.late", await rig.bundle("demo.late", body), { args: { mark } });
    await rig.until(() => job.size === 1, "the trigger to run");
    proxy.set({ kind: "cut" });
    go();
    await rig.until(() => existsSync(mark), "the event");
    expect((await waitRow(rig.db, attempt)).fired_at).toBeNull();
    proxy.set({ kind: "pass" });
    expect(await rig.outcome(attempt)).toEqual({ kind: "event", payload: "kept" });
    await proxy.close();
  });

  /** Code after a yield runs after the event was acknowledged: it creates a file. */
  const MARKS = `${ON_GO} yield "x"; fs.writeFileSync(args.mark, "");`;

  it("acknowledges an event although the answer to its commit was lost", async () => {
    const proxy = await pgProxy(rig.url);
    const { job } = await rig.triggerer({ url: proxy.url, lease: LONG_LEASE });
    const mark = markOf();
    const { attempt } = await rig.wait("demo.ack", await rig.bundle("demo.ack", MARKS), { args: { mark } });
    await rig.until(() => job.size === 1, "the trigger to run");
    proxy.set({ kind: "drop-commit-answer" });
    go();
    await rig.outcome(attempt);
    expect(existsSync(mark)).toBe(false);
    proxy.set({ kind: "pass" });
    await rig.until(() => existsSync(mark), "the acknowledgement");
    expect(proxy.faults.dropped).toBeGreaterThan(0);
    await proxy.close();
  });

  it("does not acknowledge an event that it could not store because it lost the trigger", async () => {
    const { job } = await rig.triggerer({ lease: LONG_LEASE });
    const mark = markOf();
    const { attempt, triggerId } = await rig.wait("demo.ack", await rig.bundle("demo.ack", MARKS), {
      args: { mark },
    });
    await rig.until(() => job.size === 1, "the trigger to run");
    const other = await seedTriggerer(rig.db);
    await rig.db.rows(adhoc("UPDATE trigger SET owner_job = $2 WHERE id = $1"), [triggerId, other]);
    go();
    await rig.until(() => job.size === 0, "it to let go");
    expect((await waitRow(rig.db, attempt)).fired_at).toBeNull();
    const bundle = await rig.bundle("demo.say", AT_ONCE);
    // An event that happens later in the same runner: an acknowledgement would have arrived by then.
    await rig.outcome((await rig.wait("demo.say", bundle)).attempt);
    expect(existsSync(mark)).toBe(false);
  });
});

it("sweeps a trigger that was seeded without a wait", async () => {
  const { job } = await rig.triggerer();
  const id = await seedTrigger(rig.db, { kind: "demo.unknown" });
  await rig.notify("unwaited");
  await rig.until(async () => (await triggerRow(rig.db, id)) === undefined && job.size === 0, "the sweep");
});

it("deletes a timed trigger without waiters long before its time", async () => {
  await rig.triggerer();
  const seed = { timed: { payload: null }, wakeMs: 3_600_000 };
  const left = await rig.wait("tradewind.datetime", null, seed);
  const kept = await rig.wait("tradewind.datetime", null, seed);
  await rig.db.rows(
    adhoc("UPDATE deferral SET waits_on = NULL, ended_at = now(), end_kind = 'timeout' WHERE attempt = $1"),
    [left.attempt],
  );
  await rig.notify("unwaited");
  await rig.until(async () => (await triggerRow(rig.db, left.triggerId)) === undefined, "the sweep");
  expect(await triggerRow(rig.db, kept.triggerId)).toBeDefined();
});
