/** Processes that die, and answers that are lost, between a failure and its notice. */
import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { SchedulerProcess } from "../../test/fault/scheduler-process.ts";
import { NoticeFixture, type PostReceiver } from "../../test/support/notice-fixture.ts";
import type { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { CommitUnknownError } from "../store/database/connection-error.ts";
import { adhoc, Database } from "../store/database/database.ts";
import { claimDeliveries, deliverSignal } from "../store/notify/deliveries.ts";

describe("a notice", () => {
  let rig: SchedulerRig;
  let desk: NoticeFixture;
  let gate: string;
  let started: string;
  let receiver: PostReceiver;

  beforeAll(async () => {
    ({ desk, receiver, rig } = await NoticeFixture.open());
    gate = `${rig.root}/gate`;
    started = `${rig.root}/started`;
    await writeFile(started, "");
    await rig.publish({
      "alerts.ts": `
        import { dag, sendSignal, signal, webhook } from "tradewind";
        import { appendFileSync, existsSync } from "node:fs";
        import { setTimeout as sleep } from "node:timers/promises";
        const hook = webhook(${JSON.stringify(receiver.url)});
        const fail = () => { throw new Error("no disk"); };
        export const fails = dag("fails", { onFailure: hook }, (d) => { d.task("broken", { onFailure: hook }, fail); });
        export const sends = dag("sends", { onFailure: sendSignal(signal("failed")) }, (d) => { d.task("broken", fail); });
        export const waits = dag("waits", { onFailure: hook }, (d) => {
          d.task("broken", { onFailure: hook }, async () => {
            appendFileSync(${JSON.stringify(started)}, "started\\n");
            while (!existsSync(${JSON.stringify(gate)})) await sleep(20);
            fail();
          });
        });
      `,
    });
  });
  beforeEach(() => {
    receiver.received.length = 0;
  });
  afterAll(() => receiver.close());

  const events = () =>
    receiver.received.map(({ text }) => (JSON.parse(text) as { event: string }).event).sort();

  it("is stored once if the answer to the commit of its failure is lost", async () => {
    const database = Database.connect(rig.url);
    onTestFinished(() => database.close());
    const { pipeline } = database;
    let lost = 0;
    database.pipeline = async (calls) => {
      const answer = await pipeline.call(database, calls);
      if (calls.some(({ statement }) => statement.name === "delivery-add") && lost++ < 2)
        throw new CommitUnknownError("the connection was lost");
      return answer;
    };
    const scheduler = await rig.scheduler({ database });
    onTestFinished(() => scheduler.stop());
    const id = await rig.trigger("fails");
    expect(await rig.ended(id)).toBe("failed");
    expect(lost).toBeGreaterThan(0);
    const rows = await desk.deliveries(id);
    expect(rows.map(({ event, state, task_id }) => [event, task_id, state])).toEqual([
      ["failure", "broken", "pending"],
      ["failure", null, "pending"],
    ]);
    // The scheduler may be gone by then: any host delivers.
    await desk.host();
    await desk.settled(id);
    expect(events()).toEqual(["run.failed", "task.failed"]);
  });

  it("is sent once if the scheduler is killed while the task runs, and another one stores the failure", async () => {
    const place = {
      home: `${rig.root}/first`,
      databaseUrl: rig.url,
      ledger: `${rig.root}/ledger`,
      parallelism: 2,
      lease: [2_000, 500, 400] as const,
    };
    const first = new SchedulerProcess(place);
    onTestFinished(() => first.discard());
    expect(await first.ready).toBe("up");
    const id = await rig.trigger("waits");
    await rig.until(async () => (await rig.states(id))["broken"] === "running", "the task", 60_000);
    await first.kill();
    expect(await desk.deliveries(id)).toEqual([]);
    await writeFile(gate, "");
    const second = await rig.scheduler();
    onTestFinished(() => second.stop());
    await desk.host();
    expect(await rig.ended(id, 90_000)).toBe("failed");
    await desk.settled(id);
    expect(events()).toEqual(["run.failed", "task.failed"]);
  }, 180_000);

  it("is sent as a signal by one of two attempts", async () => {
    const scheduler = await rig.scheduler();
    onTestFinished(() => scheduler.stop());
    const id = await rig.trigger("sends");
    await rig.ended(id);
    const take = async () => (await claimDeliveries(rig.db, { limit: 5, leaseMs: 0 })).own[0]!;
    const [late, latest] = [await take(), await take()];
    expect([late.attempts, latest.attempts]).toEqual([1, 2]);
    const draft = { namespace: "default", key: "failed", value: null, sender: "test" };
    expect(await deliverSignal(rig.db, late, draft)).toBe(false);
    expect(await deliverSignal(rig.db, latest, draft)).toBe(true);
    expect(await deliverSignal(rig.db, latest, draft)).toBe(false);
    const sent = await rig.db.rows(
      adhoc("SELECT 1 FROM signal WHERE namespace = 'default' AND key = 'failed'"),
    );
    expect(sent).toHaveLength(1);
    expect(await desk.deliveries(id)).toMatchObject([{ state: "done" }]);
  });
});
