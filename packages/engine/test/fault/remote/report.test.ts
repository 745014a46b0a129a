/** A worker's report, and the batch that applies it: each dies before or after, loses the answer, meets another, is late. */
import { describe, expect, it } from "vitest";
import { reportEnds } from "../../../src/store/execute/reports.ts";
import { expireDeadJobs } from "../../../src/store/job/job-lease.ts";
import { RemoteRig } from "../../support/remote-rig.ts";
import type { Claim, ScriptedWorker } from "../../support/scripted-worker.ts";

const DAGS = {
  "remote.ts": `
    import { dag } from "tradewind";
    export const two = dag("two", { maxActiveRuns: 200 }, (d) => {
      const value = d.task("work", () => 1);
      d.task("after", { inputs: { value }, executor: "local" }, ({ value }) => value + 1);
    });
  `,
};
/** Of the batch that applies an end. */
const APPLY = "assignment-delete";

const remote = RemoteRig.ofFile(DAGS);

interface Claimed {
  readonly run: number;
  readonly worker: ScriptedWorker;
  readonly claim: Claim;
}

async function claimed(): Promise<Claimed> {
  const run = await remote.rig.trigger("two");
  const worker = await remote.scripted();
  return { run, worker, claim: await worker.take(await remote.assigned(run, "work")) };
}

/** The task succeeded with this output, in its first attempt, and the next task ran once. */
async function countsOnce(run: number, output: number): Promise<void> {
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.rig.output(run, "work")).toBe(output);
  expect(await remote.rig.output(run, "after")).toBe(output + 1);
  expect(await remote.lost(run, "work")).toEqual([]);
  expect(await remote.lost(run, "after")).toEqual([]);
  await remote.isClean();
}

describe("the worker", () => {
  it("dies before: another attempt follows, and the try is not used up", async () => {
    await remote.scheduler();
    const { claim, run, worker } = await claimed();
    await worker.started(claim);
    await remote.taskIs(run, "work", "running");
    await remote.expire(worker.id);
    const next = await remote.reassigned(run, "work", claim.assignment.id);
    const other = await remote.scripted();
    await other.succeeded(await other.take(next), 7);
    expect(await remote.rig.ended(run)).toBe("success");
    expect(await remote.rig.tasks(run)).toMatchObject({ work: { try_number: 1 } });
    expect(await remote.lost(run, "work")).toHaveLength(1);
    await remote.isClean();
  });

  it("dies after: its stored report counts, not its death", async () => {
    const { faults } = await remote.scheduler();
    const { claim, run, worker } = await claimed();
    const sleep = faults.sleepsBefore("report-read");
    await worker.succeeded(claim, 7);
    await sleep.asleep;
    await remote.expire(worker.id);
    expect((await expireDeadJobs(remote.rig.db)).map(({ id }) => id)).toContain(worker.id);
    sleep.wake();
    await countsOnce(run, 7);
  });

  it("lost answer: the repeated report is stored once", async () => {
    await remote.scheduler();
    const { claim, run, worker } = await claimed();
    await worker.succeeded(claim, 7);
    await worker.succeeded(claim, 8);
    await countsOnce(run, 7);
    expect(await worker.succeeded(claim, 9)).toEqual([claim.assignment.id]);
  });

  it("two at once: of an end and a loss, the first counts", async () => {
    await remote.scheduler();
    for (let round = 0; round < 5; round++) {
      const { claim, run, worker } = await claimed();
      const { id } = claim.assignment;
      await Promise.all([
        worker.succeeded(claim, 7),
        reportEnds(remote.rig.db, new Map([[id, { lost: "test" }]])),
      ]);
      await remote.is("SELECT 1 WHERE NOT EXISTS (SELECT FROM assignment WHERE id = $1)", [id]);
      if ((await remote.lost(run, "work")).length === 0) await countsOnce(run, 7);
      else await worker.succeeded(await worker.take(await remote.assigned(run, "work")), 7);
      expect(await remote.rig.ended(run)).toBe("success");
    }
    await remote.isClean();
  });

  it("late: the report of a worker that was declared dead does not count", async () => {
    await remote.scheduler();
    const { claim, run, worker } = await claimed();
    const { id } = claim.assignment;
    await remote.expire(worker.id);
    const next = await remote.reassigned(run, "work", id);
    expect(await worker.succeeded(claim, 7)).toEqual([id]);
    await worker.register();
    await worker.succeeded(await worker.take(next), 8);
    expect(await remote.rig.ended(run)).toBe("success");
    expect(await remote.rig.output(run, "work")).toBe(8);
    await remote.isClean();
  });
});

describe("the owner of the run", () => {
  it("dies before it applies the report: the next owner applies it", async () => {
    const first = await remote.scheduler();
    const { claim, run, worker } = await claimed();
    const died = first.faults.diesAt("before", APPLY);
    await worker.succeeded(claim, 7);
    await died;
    await remote.isGone(first);
    await remote.scheduler();
    await countsOnce(run, 7);
  });

  it("dies after: nothing is left to apply", async () => {
    const first = await remote.scheduler();
    const { claim, run, worker } = await claimed();
    const died = first.faults.diesAt("after", APPLY);
    await worker.succeeded(claim, 7);
    await died;
    expect(await remote.assignments()).toEqual([]);
    await remote.isGone(first);
    await remote.scheduler();
    expect(await remote.rig.ended(run)).toBe("success");
    expect(await remote.lost(run, "work")).toEqual([]);
    await remote.isClean();
  });

  it("lost answer: the report is applied once", async () => {
    const { faults } = await remote.scheduler();
    const { claim, run, worker } = await claimed();
    const lost = faults.losesAnswerOf(APPLY);
    await worker.succeeded(claim, 7);
    await lost;
    expect(await remote.rig.ended(run)).toBe("success");
    expect(await remote.rig.output(run, "work")).toBe(7);
    expect(await remote.lost(run, "work")).toEqual([]);
    await remote.isClean();
  });

  it("two at once, late: a former owner that has read the report cannot apply it", async () => {
    const first = await remote.scheduler();
    const { claim, run, worker } = await claimed();
    const sleep = first.faults.sleepsBefore(APPLY);
    await worker.succeeded(claim, 7);
    await sleep.asleep;
    await remote.expire(first.id);
    await remote.scheduler();
    await countsOnce(run, 7);
    sleep.wake();
    await remote.is("SELECT 1 FROM job WHERE kind = 'scheduler' AND id > $1 AND state = 'running'", [
      first.id,
    ]);
    await countsOnce(run, 7);
  });

  it("lost: a try whose workers die too often fails", async () => {
    await remote.scheduler();
    const run = await remote.rig.trigger("two");
    let attempt = await remote.assigned(run, "work");
    for (let losses = 0; losses < 3; losses++) {
      await reportEnds(remote.rig.db, new Map([[attempt, { lost: "its worker is gone" }]]));
      attempt = await remote.reassigned(run, "work", attempt);
    }
    await reportEnds(remote.rig.db, new Map([[attempt, { lost: "its worker is gone" }]]));
    expect(await remote.rig.ended(run)).toBe("failed");
    const { work } = await remote.rig.tasks(run);
    expect(work).toMatchObject({ try_number: 1, reason: "its worker is gone" });
    await remote.isClean();
  });

  it("handed back: what a worker gives back counts as no loss", async () => {
    await remote.scheduler();
    const { claim, run, worker } = await claimed();
    let last = claim;
    for (let times = 0; times < 5; times++) {
      await worker.ended(last, { kind: "lost", reason: "it drains" });
      last = await worker.take(await remote.reassigned(run, "work", last.assignment.id));
    }
    await worker.succeeded(last, 7);
    expect(await remote.rig.ended(run)).toBe("success");
  });
});
