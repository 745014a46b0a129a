/** Callbacks and calls of `onSignal` on workers, while schedulers and workers die: none is lost, none is stuck. */
import { describe, expect, it } from "vitest";
import { deleteRun } from "../../../src/store/edit/end-run.ts";
import { sendSignals } from "../../../src/store/signal/signals.ts";
import { RemoteRig } from "../../support/remote-rig.ts";
import type { Claim } from "../../support/scripted-worker.ts";

const DAGS = {
  "remote.ts": `
    import { dag, Operator, signal } from "tradewind";
    export const told = dag("told", { maxActiveRuns: 200, onSuccess: () => {} }, (d) => { d.task("work", () => 1); });
    export const failing = dag("failing", { maxActiveRuns: 200 }, (d) => {
      d.task("work", { queue: "gpu", onFailure: () => {} }, () => { throw new Error("as it should"); });
    });
    class Judge extends Operator {
      constructor() { super({}); this.setSignal(signal("score")); }
      execute() { return null; }
      onSignal() { return "START"; }
    }
    export const judging = dag("judging", { maxActiveRuns: 200, stop: signal("end") }, (d) => { d.operator("judge", new Judge()); });
  `,
};

const remote = RemoteRig.ofFile(DAGS);

/** Waits for an assignment of this kind that no worker has; returns its id. */
async function unclaimed(kind: string, run: number): Promise<string> {
  const sql = "SELECT id FROM assignment WHERE kind = $1 AND dag_run_id = $2 AND worker_job IS NULL";
  await remote.is(sql, [kind, run]);
  return (await remote.sql<{ id: string }>(sql, [kind, run]))[0]!.id;
}

const DONE = { error: null };
const STOPPED = { error: { name: "TaskError", message: "stopped", stack: null, code: "EXECUTOR_STOPPED" } };

describe("a callback", () => {
  /** A run that has succeeded, and whose callback a worker has claimed. */
  async function calledBack() {
    const run = await remote.rig.trigger("told");
    const worker = await remote.scripted();
    await worker.succeeded(await worker.take(await remote.assigned(run, "work")), 1);
    const id = await unclaimed("callback", run);
    return { run, id, worker, claim: await worker.take(id) };
  }

  async function isDone(id: string): Promise<void> {
    await remote.is("SELECT 1 WHERE NOT EXISTS (SELECT FROM callback WHERE id = $1)", [id]);
    await remote.isClean();
  }

  it("goes to the queue of its task", async () => {
    await remote.scheduler();
    const run = await remote.rig.trigger("failing");
    const worker = await remote.scripted({ queues: ["gpu"] });
    const claim = await worker.take(await remote.assigned(run, "work"));
    const error = { name: "Error", message: "as it should", stack: null, code: null };
    await worker.ended(claim, { kind: "failed", error, retry: true });
    const id = await unclaimed("callback", run);
    const other = await remote.scripted({ queues: ["default"] });
    expect(await other.claim(id)).toEqual([]);
    const callback = await worker.take(id);
    expect(callback.assignment).toMatchObject({ kind: "callback", event: "failure", queue: "gpu" });
    await worker.report(callback, "ended", DONE);
    await isDone(id);
  });

  it("that runs while its scheduler dies is adopted, not repeated", async () => {
    const first = await remote.scheduler();
    const { claim, id, worker } = await calledBack();
    await remote.isGone(first);
    const second = await remote.scheduler();
    await remote.is("SELECT 1 FROM callback WHERE id = $1 AND owner_job = $2", [id, second.id]);
    await remote.is("SELECT 1 FROM assignment WHERE id = $1 AND worker_job = $2 AND cancel IS NULL", [
      id,
      worker.id,
    ]);
    await worker.report(claim, "ended", DONE);
    await isDone(id);
  });

  it("that ended while it had no scheduler is not repeated", async () => {
    const first = await remote.scheduler();
    const { claim, id, worker } = await calledBack();
    await remote.isGone(first);
    await worker.report(claim, "ended", DONE);
    await remote.scheduler();
    await isDone(id);
  });

  it("is run by another worker when its worker dies", async () => {
    await remote.scheduler();
    const { id, run, worker } = await calledBack();
    await remote.expire(worker.id);
    expect(await unclaimed("callback", run)).toBe(id);
    const other = await remote.scripted();
    await other.report(await other.take(id), "ended", DONE);
    await isDone(id);
  });

  it("is run by another worker when its worker and its scheduler die", async () => {
    const first = await remote.scheduler();
    const { id, run, worker } = await calledBack();
    await remote.isGone(first);
    await remote.expire(worker.id);
    await remote.scheduler();
    expect(await unclaimed("callback", run)).toBe(id);
    const other = await remote.scripted();
    await other.report(await other.take(id), "ended", DONE);
    await isDone(id);
  });

  it("that kills its workers is given up after the fifth", async () => {
    await remote.scheduler();
    const { id, run, worker } = await calledBack();
    await remote.expire(worker.id);
    for (let death = 2; death <= 5; death++) {
      const next = await remote.scripted();
      await next.take(await unclaimed("callback", run));
      await remote.expire(next.id);
    }
    await remote.is("SELECT 1 FROM callback WHERE id = $1 AND tries = 5", [id]);
    await remote.isClean();
  });

  it("that its worker handed back can be assigned again", async () => {
    await remote.scheduler();
    const { claim, id, worker } = await calledBack();
    await worker.report(claim, "ended", STOPPED);
    await remote.isClean();
    await remote.is("SELECT 1 FROM callback WHERE id = $1 AND tries = 0", [id]);
    await remote.sql("DELETE FROM callback");
  });

  it("is stopped when its run is deleted, and nothing is left of it", async () => {
    await remote.scheduler();
    const { claim, id, run, worker } = await calledBack();
    await remote.rig.edit(run, (tx) => deleteRun(tx, run));
    expect((await worker.beat([id])).superseded).toEqual([id]);
    expect(await worker.report(claim, "ended", STOPPED)).toEqual([id]);
    await remote.isClean();
  });
});

describe("a call of onSignal", () => {
  async function called() {
    const run = await remote.rig.trigger("judging");
    await remote.is("SELECT 1 FROM run_drive WHERE dag_run_id = $1", [run]);
    await send("score");
    const worker = await remote.scripted();
    const id = await unclaimed("reaction", run);
    return { run, id, worker, claim: await worker.take(id) };
  }

  async function send(key: string): Promise<void> {
    await sendSignals(remote.rig.db, [{ namespace: "default", key, value: 1, sender: "test" }]);
    remote.rig.wakeUps.send("signals");
  }

  /** The task started once, and the run ends. */
  async function startsOnce(run: number): Promise<void> {
    const worker = await remote.scripted();
    await worker.succeeded(await worker.take(await remote.assigned(run, "judge")), null);
    await remote.taskIs(run, "judge", "success");
    await send("end");
    expect(await remote.rig.ended(run)).toBe("success");
    expect(await remote.rig.tasks(run)).toMatchObject({ judge: { try_number: 1 } });
    await remote.isClean();
  }

  const answer = async ({
    claim,
    worker,
  }: {
    claim: Claim;
    worker: Awaited<ReturnType<typeof called>>["worker"];
  }) => worker.report(claim, "ended", { action: "START", error: null });

  it("is answered by a worker", async () => {
    await remote.scheduler();
    const call = await called();
    expect(call.claim.assignment).toMatchObject({ kind: "reaction", taskId: "judge" });
    expect(await answer(call)).toEqual([]);
    await startsOnce(call.run);
  });

  it("is repeated by the next owner of its run, and only the second answer counts", async () => {
    const first = await remote.scheduler();
    const call = await called();
    await remote.isGone(first);
    await remote.scheduler();
    const again = await unclaimed("reaction", call.run);
    expect(again).not.toBe(call.id);
    expect((await call.worker.beat([call.id])).superseded).toEqual([call.id]);
    expect(await answer(call)).toEqual([call.id]);
    await answer({ ...call, claim: await call.worker.take(again) });
    await startsOnce(call.run);
  });

  it("whose answer was read counts once, although its row could not be deleted", async () => {
    const { faults } = await remote.scheduler();
    const call = await called();
    const lost = faults.losesAnswerOf("assignment-delete");
    await answer(call);
    await lost;
    await startsOnce(call.run);
  });

  it("is repeated when its worker dies", async () => {
    await remote.scheduler();
    const call = await called();
    await remote.expire(call.worker.id);
    const again = await unclaimed("reaction", call.run);
    const worker = await remote.scripted();
    await answer({ worker, claim: await worker.take(again) });
    await startsOnce(call.run);
  });

  it("leaves nothing when its run ends before the answer", async () => {
    await remote.scheduler();
    const call = await called();
    await remote.rig.cancel(call.run);
    expect((await call.worker.beat([call.id])).superseded).toEqual([call.id]);
    await answer(call);
    await remote.isClean();
  });
});
