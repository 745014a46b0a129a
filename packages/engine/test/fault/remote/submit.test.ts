/** A scheduler stores an assignment: it dies before or after, loses the answer, meets another owner, or is late. */
import { expect, it } from "vitest";
import { RemoteRig } from "../../support/remote-rig.ts";

const INSERT = "assignment-insert";

const remote = RemoteRig.ofFile();

/** The attempt that the task had first. */
async function firstAttempt(run: number): Promise<string> {
  const sql = "SELECT attempt FROM task_instance WHERE dag_run_id = $1 AND attempt IS NOT NULL";
  await remote.is(sql, [run]);
  return (await remote.sql<{ attempt: string }>(sql, [run]))[0]!.attempt;
}

/** A worker runs the attempt, which has to be the current one. */
async function runs(id: string): Promise<void> {
  const worker = await remote.scripted();
  await worker.succeeded(await worker.take(id), 1);
}

/** A run whose first owner sleeps before it stores the assignment, and that has another owner since. */
async function overtaken() {
  const first = await remote.scheduler();
  const sleep = first.faults.sleepsBefore(INSERT);
  const run = await remote.rig.trigger("one");
  await sleep.asleep;
  const old = await firstAttempt(run);
  await remote.expire(first.id);
  await remote.scheduler();
  return { run, old, sleep };
}

it("dies before: the next owner starts another attempt of the same try", async () => {
  const first = await remote.scheduler();
  const died = first.faults.diesAt("before", INSERT);
  const run = await remote.rig.trigger("one");
  await died;
  const attempt = await firstAttempt(run);
  expect(await remote.assignments()).toEqual([]);
  await remote.isGone(first);
  await remote.scheduler();
  await runs(await remote.reassigned(run, "work", attempt));
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.lost(run, "work")).toMatchObject([{ attempt, try_number: 1 }]);
  expect(await remote.rig.tasks(run)).toMatchObject({ work: { try_number: 1 } });
  await remote.isClean();
});

it("dies after, before the launch: the next owner adopts the attempt and launches it", async () => {
  const first = await remote.scheduler();
  const died = first.faults.diesAt("after", INSERT);
  const run = await remote.rig.trigger("one");
  await died;
  const id = await remote.assigned(run, "work");
  expect(await remote.hasMessage(id)).toBe(false);
  await remote.isGone(first);
  await remote.scheduler();
  await remote.isSent(id);
  await runs(id);
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.lost(run, "work")).toEqual([]);
  await remote.isClean();
});

it("lost answer: the assignment is stored and launched once", async () => {
  const first = await remote.scheduler();
  const lost = first.faults.losesAnswerOf(INSERT);
  const run = await remote.rig.trigger("one");
  await lost;
  const id = await remote.assigned(run, "work");
  await remote.isSent(id);
  expect(await remote.assignments()).toHaveLength(1);
  await runs(id);
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.lost(run, "work")).toEqual([]);
  await remote.isClean();
});

it("two at once: only the attempt of the current owner can be claimed", async () => {
  const { old, run, sleep } = await overtaken();
  const id = await remote.reassigned(run, "work", old);
  sleep.wake();
  await remote.is("SELECT 1 FROM assignment WHERE id = $1", [old]);
  const worker = await remote.scripted();
  const claims = await worker.claim(old, id);
  expect(claims.map(({ assignment }) => assignment.id)).toEqual([id]);
  await worker.succeeded(claims[0]!, 1);
  expect(await remote.rig.ended(run)).toBe("success");
  await remote.isClean();
});

it("late: an assignment that is stored after the end of its run is never started, and is removed", async () => {
  const { old, run, sleep } = await overtaken();
  await runs(await remote.reassigned(run, "work", old));
  expect(await remote.rig.ended(run)).toBe("success");
  sleep.wake();
  await remote.isSent(old);
  const worker = await remote.scripted();
  expect(await worker.claim(old)).toEqual([]);
  await remote.isClean();
});
