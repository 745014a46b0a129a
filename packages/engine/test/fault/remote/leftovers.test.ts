/** What is left of remote attempts when their run ends first, or when no wake-up arrives: no row, and no occupied slot. */
import { expect, it } from "vitest";
import { cancelRun, deleteRun } from "../../../src/store/edit/end-run.ts";
import { RemoteRig, type RunningAttempt } from "../../support/remote-rig.ts";

const DAGS = {
  "remote.ts": `
    import { dag } from "tradewind";
    export const one = dag("one", { maxActiveRuns: 200 }, (d) => { d.task("work", () => 1); });
    export const timed = dag("timed", { maxActiveRuns: 200, runTimeout: "1s" }, (d) => { d.task("work", () => 1); });
    export const torn = dag("torn", { maxActiveRuns: 200 }, (d) => {
      const up = d.setup("up", () => 1);
      const work = d.task("work", { after: up }, () => 1);
      d.teardown("down", { of: up, after: work }, () => 1);
    });
  `,
};

const remote = RemoteRig.ofFile(DAGS);

/** The worker is notified to stop the attempt. */
async function isTold({ id, worker }: Omit<RunningAttempt, "claim">): Promise<void> {
  const { cancels, superseded } = await worker.beat([id]);
  expect([...superseded, ...cancels.map((each) => each.id)]).toContain(id);
}

async function stops(attempt: RunningAttempt): Promise<void> {
  await isTold(attempt);
  await attempt.worker.ended(attempt.claim, { kind: "cancelled" });
}

const SINGLE = { TRADEWIND_QUEUE_PARALLELISM: "1" };

it("a run that is cancelled while its attempt runs leaves nothing, and its slot is free", async () => {
  await remote.scheduler(SINGLE);
  const attempt = await remote.running();
  await remote.rig.cancel(attempt.run);
  const next = await remote.running();
  await stops(attempt);
  await next.worker.succeeded(next.claim, 1);
  await remote.isClean();
});

it("a task that is marked while its attempt runs leaves nothing, and its slot is free", async () => {
  await remote.scheduler(SINGLE);
  const attempt = await remote.running();
  await remote.rig.mark(attempt.run, "work", "success");
  expect(await remote.rig.ended(attempt.run)).toBe("success");
  // The worker has not stopped it yet: the run that has ended does not wait for that.
  const next = await remote.running();
  await stops(attempt);
  await next.worker.succeeded(next.claim, 1);
  await remote.isClean();
});

it("a run that times out while its attempt runs leaves nothing, and its slot is free", async () => {
  await remote.scheduler(SINGLE);
  const attempt = await remote.running("timed");
  expect(await remote.rig.ended(attempt.run)).toBe("failed");
  const next = await remote.running();
  await stops(attempt);
  await next.worker.succeeded(next.claim, 1);
  await remote.isClean();
});

it("a run that was cancelled while it had no scheduler leaves nothing", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  await remote.isGone(first);
  await remote.rig.db.transaction((tx) => cancelRun(tx, attempt.run, "test"));
  await stops(attempt);
  await remote.isClean();
});

it("a worker that dies after the end of its run leaves nothing", async () => {
  await remote.scheduler();
  const attempt = await remote.running();
  await remote.rig.cancel(attempt.run);
  await remote.is("SELECT 1 FROM assignment WHERE id = $1 AND cancel IS NOT NULL", [attempt.id]);
  await remote.expire(attempt.worker.id);
  await remote.isClean();
});

it("a report that is stored while its run ends leaves nothing", async () => {
  const { faults } = await remote.scheduler();
  const { claim, run, worker } = await remote.running();
  const sleep = faults.sleepsBefore("report-read");
  await worker.succeeded(claim, 1);
  await sleep.asleep;
  await remote.rig.db.transaction((tx) => cancelRun(tx, run, "test"));
  sleep.wake();
  await remote.isClean();
});

it("a run that is deleted while its worker still stops the attempt leaves nothing", async () => {
  await remote.scheduler();
  const { claim, id, run, worker } = await remote.running();
  await remote.rig.cancel(run);
  await remote.rig.edit(run, (tx) => deleteRun(tx, run));
  expect((await worker.beat([id])).superseded).toEqual([id]);
  expect(await worker.ended(claim, { kind: "cancelled" })).toEqual([id]);
  await remote.isClean();
});

it("a teardown waits for the attempt that a worker is still stopping, and not for one without a worker", async () => {
  await remote.scheduler();
  const up = await remote.running("torn", "up");
  await up.worker.succeeded(up.claim, 1);
  const id = await remote.assigned(up.run, "work");
  const claim = await up.worker.take(id);
  await remote.rig.mark(up.run, "work", "success");
  await isTold({ ...up, id });
  await remote.is("SELECT 1 FROM assignment WHERE id = $1 AND cancel IS NOT NULL", [id]);
  expect(await remote.rig.states(up.run)).toMatchObject({ down: expect.stringMatching(/pending|scheduled/) });
  await up.worker.ended(claim, { kind: "cancelled" });
  const down = await remote.assigned(up.run, "down");
  await up.worker.succeeded(await up.worker.take(down), 1);
  expect(await remote.rig.ended(up.run)).toBe("success");

  const other = await remote.running("torn", "up");
  await other.worker.succeeded(other.claim, 1);
  await remote.assigned(other.run, "work");
  await remote.rig.mark(other.run, "work", "success");
  const last = await remote.assigned(other.run, "down");
  await other.worker.succeeded(await other.worker.take(last), 1);
  expect(await remote.rig.ended(other.run)).toBe("success");
  await remote.isClean();
});

it("without any wake-up, sweeps find assignments, reports and cancels", async () => {
  const deaf = await remote.api({ leaseMs: 2_000, notifies: false });
  await remote.scheduler({}, { notifies: false });
  const run = await remote.rig.trigger("one");
  const id = await remote.assigned(run, "work");
  const worker = await remote.scripted({ api: deaf });
  await worker.take(id);
  await remote.rig.db.transaction((tx) => cancelRun(tx, run, "test"));
  expect((await worker.beat([id])).superseded).toEqual([id]);
  const again = await remote.rig.trigger("one");
  await worker.succeeded(await worker.take(await remote.assigned(again, "work")), 1);
  expect(await remote.rig.ended(again)).toBe("success");
});
