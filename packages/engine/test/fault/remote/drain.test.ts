/** A scheduler with remote attempts stops: its runs go to a peer, and no attempt is disturbed or started twice. */
import { expect, it } from "vitest";
import { type MortalScheduler, RemoteRig } from "../../support/remote-rig.ts";

const DAGS = {
  "remote.ts": `
    import { dag } from "tradewind";
    export const one = dag("one", { maxActiveRuns: 200, onSuccess: () => {} }, (d) => { d.task("work", () => 1); });
  `,
};
const INSERT = "assignment-insert";

const remote = RemoteRig.ofFile(DAGS);

async function ownerOf(run: number): Promise<number | null> {
  const [row] = await remote.sql<{ owner_job: number | null }>(
    "SELECT owner_job FROM dag_run WHERE id = $1",
    [run],
  );
  return row?.owner_job ?? null;
}

function isOwnedBy(run: number, { id }: MortalScheduler): Promise<void> {
  return remote.rig.until(async () => (await ownerOf(run)) === id, `run ${run} belongs to job ${id}`);
}

/** A worker runs the task and the callback of the run. */
async function ends(run: number, id: string): Promise<void> {
  const worker = await remote.scripted();
  await worker.succeeded(await worker.take(id), 1);
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.lost(run, "work")).toEqual([]);
  const callback = "SELECT id FROM assignment WHERE kind = 'callback' AND dag_run_id = $1";
  await remote.is(callback, [run]);
  const [row] = await remote.sql<{ id: string }>(callback, [run]);
  await worker.report(await worker.take(row!.id), "ended", { error: null });
}

it("keeps a run until the assignment of its attempt is stored, and releases the others at once", async () => {
  const first = await remote.scheduler();
  const stored = await remote.rig.trigger("one");
  const storedId = await remote.assigned(stored, "work");
  const insert = first.faults.holds(INSERT);
  const pending = await remote.rig.trigger("one");
  await insert.held;
  const second = await remote.scheduler();
  const drained = first.job.drain();
  await isOwnedBy(stored, second);
  expect(await ownerOf(pending)).toBe(first.id);
  insert.letThrough();
  await isOwnedBy(pending, second);
  await drained;
  await first.job.stop(0);
  await ends(stored, storedId);
  await ends(pending, await remote.assigned(pending, "work"));
  await remote.isClean();
});

it("does not wait for a callback that runs on a worker", async () => {
  const first = await remote.scheduler();
  const run = await remote.rig.trigger("one");
  const worker = await remote.scripted();
  await worker.succeeded(await worker.take(await remote.assigned(run, "work")), 1);
  const callback = "SELECT id FROM assignment WHERE kind = 'callback'";
  await remote.is(callback);
  const [row] = await remote.sql<{ id: string }>(callback);
  const claim = await worker.take(row!.id);
  // Longer than the timeout of this test.
  await first.job.drain();
  await first.job.stop(0);
  await remote.scheduler();
  await worker.report(claim, "ended", { error: null });
  await remote.isClean();
}, 4_000);

it("stops although an assignment cannot be stored, which uses up no try", async () => {
  const first = await remote.scheduler();
  const insert = first.faults.holds(INSERT);
  const run = await remote.rig.trigger("one");
  await insert.held;
  const stopped = first.job.stop(0);
  first.faults.kill();
  await stopped;
  await remote.expire(first.id);
  await remote.scheduler();
  const [row] = await remote.sql<{ attempt: string }>(
    "SELECT attempt FROM task_instance WHERE dag_run_id = $1",
    [run],
  );
  const next = await remote.reassigned(run, "work", row!.attempt).catch(() => row!.attempt);
  const worker = await remote.scripted();
  await worker.succeeded(await worker.take(next), 1);
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.rig.tasks(run)).toMatchObject({ work: { try_number: 1 } });
});
