/** A scheduler cancels a running attempt: it dies before or after, loses the answer, meets the end, or is late. */
import { expect, it } from "vitest";
import { cancelAssignments } from "../../../src/store/execute/assignments.ts";
import { RemoteRig, type RunningAttempt } from "../../support/remote-rig.ts";

const CANCEL = "assignment-cancel";

const remote = RemoteRig.ofFile();

/** The worker is notified to stop the attempt; when it has, the next try runs, and the run succeeds. */
async function restarts({ claim, id, run, worker }: RunningAttempt): Promise<void> {
  expect((await worker.beat([id])).cancels).toMatchObject([{ id }]);
  await remote.taskIs(run, "work", "restarting");
  await worker.ended(claim, { kind: "cancelled" });
  await succeedsAfter({ run, id, worker });
}

async function succeedsAfter({ id, run, worker }: Omit<RunningAttempt, "claim">): Promise<void> {
  const next = await worker.take(await remote.reassigned(run, "work", id));
  expect(next.assignment).toMatchObject({ tryNumber: 2 });
  await worker.succeeded(next, 1);
  expect(await remote.rig.ended(run)).toBe("success");
  await remote.isClean();
}

it("dies before: the next owner cancels", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  const died = first.faults.diesAt("before", CANCEL);
  await remote.rig.clear(attempt.run);
  await died;
  await remote.isGone(first);
  await remote.scheduler();
  await restarts(attempt);
});

it("dies after: the worker stops, and the next owner applies the end", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  const died = first.faults.diesAt("after", CANCEL);
  await remote.rig.clear(attempt.run);
  await died;
  await remote.isGone(first);
  expect((await attempt.worker.beat([attempt.id])).cancels).toMatchObject([{ id: attempt.id }]);
  await attempt.worker.ended(attempt.claim, { kind: "cancelled" });
  await remote.scheduler();
  await succeedsAfter(attempt);
});

it("lost answer: the cancel is repeated", async () => {
  const { faults } = await remote.scheduler();
  const attempt = await remote.running();
  const lost = faults.losesAnswerOf(CANCEL);
  await remote.rig.clear(attempt.run);
  await lost;
  await restarts(attempt);
});

it("lost answer: an attempt that no worker had is ended, although its row is gone", async () => {
  const { faults } = await remote.scheduler();
  const run = await remote.rig.trigger("one");
  const id = await remote.assigned(run, "work");
  const lost = faults.losesAnswerOf(CANCEL);
  await remote.rig.clear(run);
  await lost;
  await succeedsAfter({ run, id, worker: await remote.scripted() });
});

it("two at once: an end that the worker reports while it is cancelled leads to the next try once", async () => {
  await remote.scheduler();
  const attempt = await remote.running();
  await Promise.all([
    remote.rig.clear(attempt.run, { only: "any" }),
    attempt.worker.succeeded(attempt.claim, 1),
  ]);
  // Cleared first, or after its success: in both cases it runs again.
  await succeedsAfter(attempt);
});

it("late: a cancel that arrives after the end of the attempt changes nothing", async () => {
  await remote.scheduler();
  const { claim, id, run, worker } = await remote.running();
  await worker.succeeded(claim, 1);
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await cancelAssignments(remote.rig.db, new Map([[id, { reason: "late" }]]))).toEqual([id]);
  expect(await remote.rig.states(run)).toEqual({ work: "success" });
  await remote.isClean();
});

it("a heartbeat names a cancel until the end is reported, and not until the owner has applied it", async () => {
  const { faults } = await remote.scheduler();
  const { claim, id, run, worker } = await remote.running();
  await remote.rig.clear(run);
  expect((await worker.beat([id])).cancels).toMatchObject([{ id }]);
  const sleep = faults.sleepsBefore("report-read");
  await worker.ended(claim, { kind: "cancelled" });
  await sleep.asleep;
  const quiet = worker.beat().catch(() => {});
  const isAnswered = await Promise.race([quiet.then(() => true), sleepMs(300).then(() => false)]);
  sleep.wake();
  expect(isAnswered).toBe(false);
  await succeedsAfter({ run, id, worker });
});

function sleepMs(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
