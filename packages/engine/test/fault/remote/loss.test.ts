/** A worker is declared dead: by a job that dies before or after, loses the answer, by two at once, or by a late one. */
import { expect, it } from "vitest";
import { expireDeadJobs } from "../../../src/store/job/job-lease.ts";
import { RemoteRig, type RunningAttempt } from "../../support/remote-rig.ts";

const BURY = "job-bury";

const remote = RemoteRig.ofFile();

/** Exactly one other attempt follows, of the same try. */
async function isLostOnce({ id, run }: RunningAttempt): Promise<void> {
  const next = await remote.reassigned(run, "work", id);
  const other = await remote.scripted();
  await other.succeeded(await other.take(next), 1);
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.lost(run, "work")).toMatchObject([{ attempt: id, try_number: 1 }]);
  expect(await remote.rig.tasks(run)).toMatchObject({ work: { try_number: 1 } });
  await remote.isClean();
}

it("dies before: another job declares the worker dead", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  const died = first.faults.diesAt("before", BURY);
  await remote.expire(attempt.worker.id);
  await died;
  await remote.isGone(first);
  await remote.scheduler();
  await isLostOnce(attempt);
});

it("dies after: the loss is stored, and the next owner applies it", async () => {
  const first = await remote.scheduler();
  const attempt = await remote.running();
  const died = first.faults.diesAt("after", BURY);
  await remote.expire(attempt.worker.id);
  await died;
  await remote.is("SELECT 1 FROM report WHERE assignment_id = $1 AND type = 'ended'", [attempt.id]);
  await remote.isGone(first);
  await remote.scheduler();
  await isLostOnce(attempt);
});

it("lost answer: the loss is found anyway", async () => {
  const { faults } = await remote.scheduler();
  const attempt = await remote.running();
  const lost = faults.losesAnswerOf(BURY);
  await remote.expire(attempt.worker.id);
  await lost;
  await isLostOnce(attempt);
});

it("two at once: the attempt is lost once", async () => {
  await Promise.all([remote.scheduler(), remote.scheduler()]);
  const attempt = await remote.running();
  await remote.expire(attempt.worker.id);
  await Promise.all([expireDeadJobs(remote.rig.db), expireDeadJobs(remote.rig.db)]);
  await isLostOnce(attempt);
});

it("late: a worker that has renewed its lease meanwhile keeps its assignment", async () => {
  const { faults } = await remote.scheduler();
  const { claim, id, run, worker } = await remote.running();
  const sleep = faults.sleepsBefore(BURY);
  await remote.expire(worker.id);
  await sleep.asleep;
  const beat = worker.beat([id]).catch(() => {});
  await remote.is("SELECT 1 FROM job WHERE id = $1 AND lease_until > now()", [worker.id]);
  sleep.wake();
  await worker.succeeded(claim, 1);
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.lost(run, "work")).toEqual([]);
  await remote.isClean();
  void beat;
});
