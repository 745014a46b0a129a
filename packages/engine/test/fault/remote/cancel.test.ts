/** A scheduler cancels a running attempt: it dies before or after, loses the answer, meets the end, or is late. */
import { afterEach, beforeAll, expect, it } from "vitest";
import { cancelAssignments } from "../../../src/store/execute/assignments.ts";
import { type MortalApi, type MortalScheduler, RemoteRig } from "../../support/remote-rig.ts";
import type { Claim, ScriptedWorker } from "../../support/scripted-worker.ts";

const DAGS = {
  "remote.ts": `
    import { dag } from "tradewind";
    export const one = dag("one", { maxActiveRuns: 200 }, (d) => { d.task("work", () => 1); });
  `,
};
const CANCEL = "assignment-cancel";

let remote: RemoteRig;
let api: MortalApi;
let schedulers: MortalScheduler[] = [];

beforeAll(async () => {
  remote = await RemoteRig.open(DAGS);
  api = await remote.api();
});

afterEach(async () => {
  await remote.retire(...schedulers);
  schedulers = [];
});

async function scheduler(): Promise<MortalScheduler> {
  const started = await remote.scheduler();
  schedulers.push(started);
  return started;
}

interface Running {
  readonly run: number;
  readonly id: string;
  readonly worker: ScriptedWorker;
  readonly claim: Claim;
}

async function running(): Promise<Running> {
  const run = await remote.rig.trigger("one");
  const id = await remote.assigned(run, "work");
  const worker = await remote.scripted(api);
  const claim = await worker.take(id);
  await worker.started(claim);
  await remote.taskIs(run, "work", "running");
  return { run, id, worker, claim };
}

/** The worker is notified to stop the attempt; when it has, the next try runs, and the run succeeds. */
async function restarts({ claim, id, run, worker }: Running): Promise<void> {
  expect((await worker.beat([id])).cancels).toMatchObject([{ id }]);
  await remote.taskIs(run, "work", "restarting");
  await worker.ended(claim, { kind: "cancelled" });
  await succeedsAfter({ run, id, worker });
}

async function succeedsAfter({ id, run, worker }: Omit<Running, "claim">): Promise<void> {
  const next = await worker.take(await remote.reassigned(run, "work", id));
  expect(next.assignment).toMatchObject({ tryNumber: 2 });
  await worker.succeeded(next, 1);
  expect(await remote.rig.ended(run)).toBe("success");
  await remote.isClean();
}

it("dies before: the next owner cancels", async () => {
  const first = await scheduler();
  const attempt = await running();
  const died = first.faults.diesAt("before", CANCEL);
  await remote.rig.clear(attempt.run);
  await died;
  await remote.isGone(first);
  await scheduler();
  await restarts(attempt);
});

it("dies after: the worker stops, and the next owner applies the end", async () => {
  const first = await scheduler();
  const attempt = await running();
  const died = first.faults.diesAt("after", CANCEL);
  await remote.rig.clear(attempt.run);
  await died;
  await remote.isGone(first);
  expect((await attempt.worker.beat([attempt.id])).cancels).toMatchObject([{ id: attempt.id }]);
  await attempt.worker.ended(attempt.claim, { kind: "cancelled" });
  await scheduler();
  await succeedsAfter(attempt);
});

it("lost answer: the cancel is repeated", async () => {
  const { faults } = await scheduler();
  const attempt = await running();
  const lost = faults.losesAnswerOf(CANCEL);
  await remote.rig.clear(attempt.run);
  await lost;
  await restarts(attempt);
});

it("lost answer: an attempt that no worker had is ended, although its row is gone", async () => {
  const { faults } = await scheduler();
  const run = await remote.rig.trigger("one");
  const id = await remote.assigned(run, "work");
  const lost = faults.losesAnswerOf(CANCEL);
  await remote.rig.clear(run);
  await lost;
  await succeedsAfter({ run, id, worker: await remote.scripted(api) });
});

it("two at once: an end that the worker reports while it is cancelled leads to the next try once", async () => {
  await scheduler();
  const attempt = await running();
  await Promise.all([
    remote.rig.clear(attempt.run, { only: "any" }),
    attempt.worker.succeeded(attempt.claim, 1),
  ]);
  // Cleared first, or after its success: in both cases it runs again.
  await succeedsAfter(attempt);
});

it("late: a cancel that arrives after the end of the attempt changes nothing", async () => {
  await scheduler();
  const { claim, id, run, worker } = await running();
  await worker.succeeded(claim, 1);
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await cancelAssignments(remote.rig.db, new Map([[id, { reason: "late" }]]))).toEqual([id]);
  expect(await remote.rig.states(run)).toEqual({ work: "success" });
  await remote.isClean();
});

it("a heartbeat names a cancel until the end is reported, and not until the owner has applied it", async () => {
  const { faults } = await scheduler();
  const { claim, id, run, worker } = await running();
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
