/** Single races, each constructed on purpose: the storms find unknown ones, these tests cover the known ones. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { SWEEP_EVERY } from "../../src/run/job/scheduler-job.ts";
import { clearTasks } from "../../src/store/edit/clear-tasks.ts";
import { cancelRun } from "../../src/store/edit/end-run.ts";
import { markTasks } from "../../src/store/edit/mark-tasks.ts";
import { isAlive } from "../support/process-alive.ts";
import { readLog } from "./component-process.ts";
import type { SchedulerProcess } from "./scheduler-process.ts";
import { Stage } from "./stage.ts";

test("an owner killed between queueing an attempt and its dispatch: the next owner starts another attempt, once", async () => {
  const stage = await Stage.open();
  const first = await stage.start(stage.place("first", { databaseUrl: stage.proxy.url }));
  const job = await stage.installation.jobOf(first);
  const reached = stage.pauseAtCommit(first, async () => (await stage.task("gated")).state === "queued");
  await stage.trigger();
  await reached;
  const queued = await stage.task("gated");
  expect(stage.starts()).toEqual([]);
  await first.kill();

  stage.openGate();
  await stage.start(stage.place("second"));
  expect(await stage.runEnds()).toBe("success");
  expect(stage.starts()).toHaveLength(1);
  // A scheduler that was suspended until it no longer trusts its lease gives up the attempts it has just queued.
  const [lost, ...givenUp] = await stage.history();
  expect(lost).toEqual({ attempt: queued.attempt, try_number: 1, executor_job: job });
  expect(await stage.task("gated")).toMatchObject({ try_number: 1, infra_losses: 1 + givenUp.length });
  expect(await stage.leaks()).toEqual([]);
});

test("ignores the report of a superseded attempt to its stopped scheduler", async () => {
  const stage = await Stage.open();
  const first = await stage.start(stage.place("first"));
  await stage.trigger();
  const { attempt: old } = await stage.started(1);
  await stage.isRunning(old);
  first.pause();
  // Before its lease expires: then its guardian would kill the attempt.
  stage.openGate(first);
  await stage.until("the old attempt ends", () => stage.installation.ledger.attempts().get(old)?.end != null);
  const second = await stage.start(stage.place("second"));
  const { attempt } = await stage.started(2);
  await stage.isRunning(attempt);
  first.resume();
  await stage.heartbeats(first, 3);
  expect(await stage.task("gated")).toMatchObject({ state: "running", attempt, try_number: 1 });

  stage.openGate(second);
  expect(await stage.runEnds()).toBe("success");
  expect(await stage.task("gated")).toMatchObject({ state: "success", attempt, try_number: 1 });
  const begun = stage.installation.ledger.attempts();
  expect((await stage.history()).filter((each) => begun.has(each.attempt))).toMatchObject([{ attempt: old }]);
  expect(await stage.leaks()).toEqual([]);
});

test("the fence rejects a report that was in flight while the run changed owners", async () => {
  const stage = await Stage.open();
  const place = stage.place("first");
  const first = await stage.start(place);
  await stage.trigger();
  const { attempt: old } = await stage.started(1);
  await stage.isRunning(old);
  const delivery = await stage.holdBatches();
  stage.openGate(first);
  await stage.until("the old attempt ends", () => stage.installation.ledger.attempts().get(old)?.end != null);
  await sleep(200);
  // If it ran, it would detect the dead connection and use another one.
  first.pause();
  const second = await stage.start(stage.place("second"));
  const { attempt } = await stage.started(2);
  await stage.isRunning(attempt);

  delivery.resume();
  first.resume();
  await stage.logs(place, "batch rejected");
  expect(readLog(place).filter((line) => line.reason)).toMatchObject([{ reason: "TW001" }]);
  expect(await stage.task("gated")).toMatchObject({ state: "running", attempt, try_number: 1 });

  stage.openGate(second);
  expect(await stage.runEnds()).toBe("success");
  expect(await stage.task("gated")).toMatchObject({ state: "success", attempt, try_number: 1 });
  expect(await stage.leaks()).toEqual([]);
});

test("three schedulers at once start each of 300 tasks exactly once", async () => {
  const stage = await Stage.open();
  const { installation } = stage;
  stage.openGate();
  // A scheduler that loses its lease stops its tasks, and they start again. With a short lease a slow machine causes that.
  const lease = [6_000, 2_000, 1_500] as const;
  await Promise.all(["first", "second", "third"].map((name) => stage.start(stage.place(name, { lease }))));
  // One by one: each run wakes all three, and they race for it.
  for (let n = 0; n < 150; n++) await installation.trigger(stage.dags[n % 6] as string, `run_${n}`);
  const open = "SELECT id FROM dag_run WHERE state IN ('queued', 'running')";
  await stage.until("all runs end", async () => (await installation.sql(open)).length === 0);
  const starts = installation.ledger.lines().filter((line) => line.event === "start");
  expect(new Set(starts.map((line) => `${line.run} ${line.task}`)).size).toBe(300);
  expect(starts).toHaveLength(300);
  expect(new Set(starts.map((line) => line.scheduler)).size).toBeGreaterThan(1);
  expect(await stage.leaks()).toEqual([]);
});

interface Edit {
  readonly name: string;
  readonly edit: (stage: Stage, run: number) => Promise<unknown>;
  readonly run: string;
  readonly states: Readonly<Record<string, string>>;
  /** All starts of the gated task. */
  readonly starts: number;
}

const EDITS: readonly Edit[] = [
  {
    name: "cleared",
    edit: ({ installation: { db } }, run) =>
      db.transaction((tx) =>
        clearTasks(tx, {
          runs: [{ dagRunId: run, tasks: [{ taskId: "gated", mapIndex: null }] }],
          only: "any",
          resetRuns: true,
          latestVersion: false,
          refuseRunning: false,
          dryRun: false,
        }),
      ),
    run: "success",
    states: { gated: "success", after: "success" },
    starts: 2,
  },
  {
    name: "marked as successful",
    edit: ({ installation: { db } }, run) =>
      db.transaction((tx) =>
        markTasks(tx, {
          runs: [{ dagRunId: run, tasks: [{ taskId: "gated", mapIndex: null }] }],
          state: "success",
          dryRun: false,
        }),
      ),
    run: "success",
    states: { gated: "success", after: "success" },
    starts: 1,
  },
  {
    name: "cancelled with its run",
    edit: ({ installation: { db } }, run) => db.transaction((tx) => cancelRun(tx, run, "cancelled manually")),
    run: "failed",
    states: { gated: "failed", after: "skipped" },
    starts: 1,
  },
];

const FATES: Readonly<Record<string, (owner: SchedulerProcess) => Promise<void>>> = {
  "killed before it is notified": (owner) => owner.kill(),
  "notified afterwards": async (owner) => owner.resume(),
};

for (const [fate, befall] of Object.entries(FATES)) {
  for (const { name, edit, run, states, starts } of EDITS) {
    test(`a running task is ${name}, its scheduler ${fate}`, async () => {
      const stage = await Stage.open();
      const owner = await stage.start(stage.place("first"));
      const id = await stage.trigger();
      const { attempt, pid } = await stage.started(1);
      await stage.isRunning(attempt);
      owner.pause();
      await edit(stage, id);
      await befall(owner);
      await stage.start(stage.place("second"));
      await stage.until("the old attempt is gone", () => !isAlive(pid) || stage.wasAborted(attempt));
      stage.openGate();

      expect(await stage.runEnds()).toBe(run);
      expect(Object.fromEntries((await stage.states()).map((row) => [row.task_id, row.state]))).toEqual(
        states,
      );
      expect(stage.starts()).toHaveLength(starts);
      expect(stage.installation.ledger.attempts().get(attempt)?.end).toBeNull();
      expect((await stage.task("gated")).try_number).toBe(starts);
      expect(await stage.leaks()).toEqual([]);
    });
  }
}

/** After this many heartbeats a sweep has run, and its findings have been handled. */
const SWEEP = SWEEP_EVERY + 1;

type Meanwhile = (stage: Stage, run: number, owner: SchedulerProcess) => Promise<unknown>;

/** Events of a queued attempt while its scheduler waits for access to the bundle. */
const UNSTARTED: Readonly<Record<string, Meanwhile>> = {
  "cleared meanwhile": async (stage, run, owner) => {
    await (EDITS[0] as Edit).edit(stage, run);
    await stage.heartbeats(owner, SWEEP);
  },
  "marked as successful meanwhile": async (stage, run, owner) => {
    await (EDITS[1] as Edit).edit(stage, run);
    await stage.heartbeats(owner, SWEEP);
  },
  "given up by a scheduler that was declared dead": async (stage, _, owner) => {
    owner.pause();
    const place = stage.place("second");
    await stage.start(place);
    await stage.logs(place, "took over runs");
    owner.resume();
    await stage.heartbeats(owner, SWEEP);
  },
};

for (const [what, happen] of Object.entries(UNSTARTED)) {
  test(`an attempt that waits for its dispatch and is ${what} never starts`, async () => {
    const stage = await Stage.open();
    stage.openGate();
    const owner = await stage.start(stage.place("first"));
    const run = await stage.withoutBundles(async () => {
      const id = await stage.trigger();
      await stage.until("it is queued", async () => (await stage.task("gated")).state === "queued");
      const { attempt } = await stage.task("gated");
      await happen(stage, id, owner);
      return { id, attempt };
    });
    expect(await stage.runEnds()).toBe("success");
    expect(stage.starts().map((line) => line.attempt)).not.toContain(run.attempt);
    expect(await stage.leaks()).toEqual([]);
  });
}
