/** A scheduler adopts the remote attempts of a run: it dies before or after, loses the answer, is one of two, or is late. */
import { expect, it } from "vitest";
import { type MortalScheduler, RemoteRig, type RunningAttempt } from "../../support/remote-rig.ts";

const TAKE_OVER = "claim-take-over";
const ADOPT = "assignment-of-runs";

const remote = RemoteRig.ofFile();

async function hasOwner(run: number, owner: MortalScheduler): Promise<void> {
  await remote.is("SELECT 1 FROM dag_run WHERE id = $1 AND owner_job = $2", [run, owner.id]);
}

/** The worker was never told to stop, and its first attempt counts. */
async function isUndisturbed({ claim, id, run, worker }: RunningAttempt): Promise<void> {
  expect((await remote.assignments()).find((row) => row.id === id)).toMatchObject({
    worker_job: worker.id,
    cancel: null,
  });
  await worker.succeeded(claim, 1);
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.lost(run, "work")).toEqual([]);
  await remote.isClean();
}

it("dies before: the one after it adopts the attempt", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  const second = await remote.scheduler();
  const died = second.faults.diesAt("before", ADOPT);
  await remote.isGone(first);
  await died;
  await remote.isGone(second);
  await hasOwner(attempt.run, await remote.scheduler());
  await isUndisturbed(attempt);
});

it("dies after: the one after it adopts the attempt again", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  const second = await remote.scheduler();
  const died = second.faults.diesAt("after", ADOPT);
  await remote.isGone(first);
  await died;
  await remote.isGone(second);
  await hasOwner(attempt.run, await remote.scheduler());
  await isUndisturbed(attempt);
});

it("lost answer of the take-over: the new owner finds the run and adopts the attempt", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  const second = await remote.scheduler();
  const lost = second.faults.losesAnswerOf(TAKE_OVER);
  await remote.isGone(first);
  await lost;
  await hasOwner(attempt.run, second);
  await isUndisturbed(attempt);
});

it("lost answer while adopting: the attempt is not taken for lost", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  const second = await remote.scheduler();
  const lost = second.faults.losesAnswerOf(ADOPT);
  await remote.isGone(first);
  await lost;
  await hasOwner(attempt.run, second);
  await isUndisturbed(attempt);
});

it("two at once: one of two schedulers adopts the attempt", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  await Promise.all([remote.scheduler(), remote.scheduler()]);
  await remote.isGone(first);
  await remote.is("SELECT 1 FROM dag_run WHERE id = $1 AND owner_job <> $2", [attempt.run, first.id]);
  await isUndisturbed(attempt);
});

it("late: a former owner that wakes up disturbs nothing", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  const sleep = first.faults.sleepsBefore("job-renew");
  await sleep.asleep;
  await remote.expire(first.id);
  const second = await remote.scheduler();
  await hasOwner(attempt.run, second);
  await remote.is("SELECT 1 FROM job WHERE id = $1 AND state = 'dead'", [first.id]);
  sleep.wake();
  await remote.is("SELECT 1 FROM job WHERE kind = 'scheduler' AND id > $1 AND state = 'running'", [
    second.id,
  ]);
  await isUndisturbed(attempt);
});

it("a scheduler without the executor adopts the attempt, too", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  await remote.isGone(first);
  await hasOwner(attempt.run, await remote.scheduler({ TRADEWIND_EXECUTOR: "local", REDIS_URL: "" }));
  await isUndisturbed(attempt);
});

it("a scheduler that stops leaves the attempt to its peer at once", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  const second = await remote.scheduler();
  await first.job.drain();
  await first.job.stop(0);
  await hasOwner(attempt.run, second);
  await isUndisturbed(attempt);
});
