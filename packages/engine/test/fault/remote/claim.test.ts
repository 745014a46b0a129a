/** The claim of an assignment by a worker: it dies before or after, loses the answer, is one of two, or is late. */
import { beforeEach, expect, it } from "vitest";
import { adhoc } from "../../../src/store/database/database.ts";
import { cancelAssignments, claimAssignments } from "../../../src/store/execute/assignments.ts";
import { expireDeadJobs } from "../../../src/store/job/job-lease.ts";
import { openTransaction } from "../../support/open-transaction.ts";
import { type MortalScheduler, RemoteRig } from "../../support/remote-rig.ts";

const remote = RemoteRig.ofFile();
let scheduler: MortalScheduler;

beforeEach(async () => {
  scheduler = await remote.scheduler();
});

async function assigned(): Promise<{ run: number; id: string }> {
  const run = await remote.rig.trigger("one");
  return { run, id: await remote.assigned(run, "work") };
}

it("a worker that dies before its claim leaves the assignment to another one", async () => {
  const { id, run } = await assigned();
  const [, second] = [await remote.scripted(), await remote.scripted()];
  await remote.isSent(id);
  await second.succeeded(await second.take(id), 1);
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.lost(run, "work")).toEqual([]);
  await remote.isClean();
});

it("a worker that dies after its claim: the attempt is started again elsewhere, and no try is used up", async () => {
  const { id, run } = await assigned();
  const [first, second] = [await remote.scripted(), await remote.scripted()];
  await first.take(id);
  await remote.expire(first.id);
  const claim = await second.take(await remote.reassigned(run, "work", id));
  expect(claim.assignment).toMatchObject({ tryNumber: 1 });
  await second.succeeded(claim, 1);
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.lost(run, "work")).toMatchObject([{ attempt: id, try_number: 1 }]);
  await remote.isClean();
});

it("a worker that lost the answer claims again, and gets the same assignment", async () => {
  const { id, run } = await assigned();
  const worker = await remote.scripted();
  await worker.take(id);
  const again = await worker.take(id);
  expect(again).toMatchObject({ is_void: false, assignment: { id } });
  await worker.succeeded(again, 1);
  expect(await remote.rig.ended(run)).toBe("success");
  await remote.isClean();
});

it("a claim of an assignment whose end is reported is rejected, so that nothing runs twice", async () => {
  const { id, run } = await assigned();
  const worker = await remote.scripted();
  const claim = await worker.take(id);
  // The owner reads the report only when it can lock the run.
  const held = await openTransaction(remote.rig.db, (tx) =>
    tx.rows(adhoc("SELECT 1 FROM dag_run WHERE id = $1 FOR UPDATE"), [run]),
  );
  await worker.succeeded(claim, 1);
  const again = await worker.claim(id);
  await held.commit();
  expect(again).toEqual([]);
  expect(await remote.rig.ended(run)).toBe("success");
});

it("of two claims at once, one succeeds", async () => {
  const { id, run } = await assigned();
  const workers = await Promise.all(Array.from({ length: 4 }, () => remote.scripted()));
  const claims = await Promise.all(workers.map((worker) => worker.claim(id)));
  const winners = workers.filter((_, at) => claims[at]!.length > 0);
  expect(winners).toHaveLength(1);
  await winners[0]!.succeeded(claims.flat()[0]!, 1);
  expect(await remote.rig.ended(run)).toBe("success");
});

it("a worker that is being declared dead claims nothing", async () => {
  const { id, run } = await assigned();
  const worker = await remote.scripted();
  const burial = await openTransaction(remote.rig.db, (tx) =>
    tx.rows(adhoc("UPDATE job SET state = 'dead', ended_at = now() WHERE id = $1"), [worker.id]),
  );
  const claim = worker.claim(id);
  await remote.is(
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  );
  await burial.commit();
  expect(await claim).toEqual([]);
  const other = await remote.scripted();
  await other.succeeded(await other.take(id), 1);
  expect(await remote.rig.ended(run)).toBe("success");
});

it("a worker is not declared dead while its claim is being stored, and loses it afterwards", async () => {
  const { id, run } = await assigned();
  const [worker, other] = [await remote.scripted(), await remote.scripted()];
  const burial = scheduler.faults.sleepsBefore("job-bury");
  await remote.expire(worker.id);
  await burial.asleep;
  const claim = await openTransaction(remote.rig.db, (tx) => claimAssignments(tx, worker.id, [id]));
  expect(await expireDeadJobs(remote.rig.db)).toEqual([]);
  await claim.commit();
  burial.wake();
  await other.succeeded(await other.take(await remote.reassigned(run, "work", id)), 1);
  expect(await remote.rig.ended(run)).toBe("success");
  await remote.isClean();
});

it("a late claim, after the attempt was superseded, is rejected and removes the assignment", async () => {
  const { id, run } = await assigned();
  await remote.sql("UPDATE task_instance SET attempt = gen_random_uuid() WHERE attempt = $1", [id]);
  const worker = await remote.scripted();
  expect(await worker.claim(id)).toEqual([]);
  expect((await remote.assignments()).map((row) => row.id)).not.toContain(id);
  await remote.rig.cancel(run);
});

it("a claim that was cancelled before its answer arrived is void, and its end frees the task", async () => {
  const { id, run } = await assigned();
  const worker = await remote.scripted();
  // The answer is lost: the worker does not know that it has the assignment.
  await worker.take(id);
  await remote.taskIs(run, "work", "queued");
  await remote.rig.clear(run);
  await remote.is("SELECT 1 FROM assignment WHERE id = $1 AND cancel IS NOT NULL", [id]);
  expect(await worker.beat()).toMatchObject({ unknown: [id] });
  const claim = await worker.take(id);
  expect(claim.is_void).toBe(true);
  await worker.ended(claim, { kind: "cancelled" });
  await worker.succeeded(await worker.take(await remote.reassigned(run, "work", id)), 1);
  expect(await remote.rig.ended(run)).toBe("success");
});

it("of a claim and a cancel at once, one counts", async () => {
  const worker = await remote.scripted();
  for (let round = 0; round < 10; round++) {
    const { id } = await assigned();
    const [claims, unheld] = await Promise.all([
      worker.claim(id),
      cancelAssignments(remote.rig.db, new Map([[id, { reason: "test" }]])),
    ]);
    expect(claims.length + unheld.length).toBe(1);
  }
});
