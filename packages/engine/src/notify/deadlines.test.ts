import { readFile, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NoticeFixture, type PostReceiver } from "../../test/support/notice-fixture.ts";
import type { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";

describe("deadlines of runs and tasks", () => {
  let rig: SchedulerRig;
  let desk: NoticeFixture;
  let gate: string;
  let receiver: PostReceiver;

  beforeAll(async () => {
    ({ desk, receiver, rig } = await NoticeFixture.open());
    gate = `${rig.root}/gate`;
    await writeFile(rig.ledger, "");
    await rig.publish({
      "late.ts": `
        import { averageOf, dag, deadline, sendSignal, signal, webhook } from "tradewind";
        import { appendFileSync, existsSync } from "node:fs";
        import { setTimeout as sleep } from "node:timers/promises";
        const told = (what) => appendFileSync(${JSON.stringify(rig.ledger)}, what + "\\n");
        const opened = async () => { while (!existsSync(${JSON.stringify(gate)})) await sleep(20); };
        const late = signal("late");
        export const slow = dag("slow", {
          deadline: [
            deadline({ after: "queued", within: "300ms", then: [
              (ctx) => told([ctx.event, ctx.run.id, ctx.taskId, ctx.deadline.ordinal, ctx.deadline.dueAt instanceof Date].join(" ")),
              webhook(${JSON.stringify(receiver.url)}),
              sendSignal(late, { why: "slow" }),
            ] }),
            deadline({ after: "start", within: "1d" }),
            deadline({ after: "logicalDate", within: "1d" }),
          ],
        }, (d) => {
          const first = d.task("first", { deadline: deadline({ after: "queued", within: "1d" }) }, () => 1);
          d.task("waits", { after: first, deadline: deadline({ after: "start", within: "200ms", then: [sendSignal(late)] }) }, opened);
        });
        export const fails = dag("fails", { deadline: deadline({ after: "queued", within: "1h" }) }, (d) => {
          d.task("only", () => { if (!existsSync(${JSON.stringify(gate)}.concat(".fails"))) throw new Error("no"); });
        });
        export const usual = dag("usual", { deadline: deadline({ after: averageOf(5, { atLeast: 2 }), within: "1h" }) }, (d) => {
          d.task("only", { deadline: deadline({ after: averageOf(5, { atLeast: 3 }), within: "1h" }) }, () => 1);
        });
        export const mapped = dag("mapped", (d) => {
          const items = d.task("items", () => [1, 2, 3]);
          const day = deadline({ after: "start", within: "1d" });
          d.map("each", { over: items, deadline: day }, (item) => item * 2);
          const none = d.task("none", () => []);
          d.map("nothing", { over: none, deadline: day }, (item) => item);
          d.map("stuck", { over: items, deadline: deadline({ after: "start", within: "50ms" }) },
            async (item) => { if (item === 2) await sleep(500); });
        });
        export const stuck = dag("stuck", {
          deadline: deadline({ after: "queued", within: "100ms", then: [sendSignal(late, { why: "stuck" })] }),
        }, (d) => { d.task("only", () => 1); });
        export const throws = dag("throws", {
          deadline: deadline({ after: "queued", within: "50ms", then: [
            () => { told("thrown"); if (!existsSync(${JSON.stringify(gate)}.concat(".throws"))) throw new Error("not yet"); },
          ] }),
        }, (d) => { d.task("only", async () => { await sleep(300); }); });
      `,
    });
    await rig.scheduler();
  });
  afterAll(() => receiver.close());

  const signals = async (namespace: string, key: string) =>
    (
      await rig.db.rows<{ value: Record<string, unknown> }>(
        adhoc("SELECT value FROM signal WHERE namespace = $1 AND key LIKE $2 ORDER BY id"),
        [namespace, key],
      )
    ).map(({ value }) => value);

  it("records and reports a miss while the run is running, once per notice, without ending the run", async () => {
    await desk.host();
    const id = await rig.trigger("slow", { runId: "r1" });
    await rig.until(async () => {
      const states = await desk.states(id);
      return states["waits#0"] === "missed" && states["#0"] === "missed";
    }, "both misses");
    const rows = await desk.settled(id);
    expect(await desk.states(id)).toEqual({
      "#0": "missed",
      "#1": "pending",
      "first#0": "pending",
      "waits#0": "missed",
    });
    expect((await rig.run(id)).state).toBe("running");
    expect(rows.map(({ state }) => state)).toEqual(["done", "done", "done", "done"]);
    expect((await readFile(rig.ledger, "utf8")).trim()).toBe("deadline r1  0 true");
    expect(receiver.received).toHaveLength(1);
    expect(JSON.parse(receiver.received[0]?.text ?? "")).toMatchObject({
      event: "deadline.missed",
      dag_id: "slow",
      dag_run_id: "r1",
      task_id: null,
      after: "queued",
    });
    expect(new Set(await signals("deadline", "slow/r1%"))).toEqual(
      new Set([
        expect.objectContaining({ state: "missed", taskId: null, ordinal: 0, after: "queued" }),
        expect.objectContaining({ state: "missed", taskId: "waits", ordinal: 0, after: "start" }),
      ]),
    );
    expect(new Set(await signals("default", "late"))).toEqual(
      new Set([{ why: "slow" }, expect.objectContaining({ taskId: "waits" })]),
    );
    await writeFile(gate, "");
    expect(await rig.ended(id)).toBe("success");
    await rig.until(async () => (await desk.states(id))["#1"] === "met", "the end");
    expect(await desk.states(id)).toEqual({
      "#0": "missed",
      "#1": "met",
      "first#0": "met",
      "waits#0": "missed",
    });
  });

  it("counts from the logical date of a run that has one", async () => {
    await desk.host();
    const id = await rig.trigger("slow", { logicalDate: new Date("2020-01-01T00:00:00Z") });
    await rig.until(async () => (await desk.states(id))["#2"] === "missed", "the miss");
    const row = (await desk.deadlines(id)).find(({ ordinal, task_id }) => task_id === "" && ordinal === 2);
    expect(row?.due_at).toEqual(new Date("2020-01-02T00:00:00Z"));
  });

  it("is met by success only: a failed run that is cleared and succeeds in time meets it", async () => {
    await desk.host();
    const id = await rig.trigger("fails");
    expect(await rig.ended(id)).toBe("failed");
    await rig.until(async () => (await desk.states(id))["#0"] === "pending", "the row");
    const [before] = await desk.deadlines(id);
    await writeFile(`${gate}.fails`, "");
    await rig.clear(id);
    await rig.until(async () => (await desk.states(id))["#0"] === "met", "the success");
    const [after] = await desk.deadlines(id);
    expect(after?.clear_number).toBe(1);
    // It counts from the time it was queued again.
    expect(after?.due_at.getTime()).toBeGreaterThan(before?.due_at.getTime() ?? 0);
  });

  it("uses the average of the last runs, once there are enough of them", async () => {
    await desk.host();
    const ids: number[] = [];
    for (let round = 0; round < 4; round++) {
      const id = await rig.trigger("usual");
      expect(await rig.ended(id)).toBe("success");
      await rig.until(
        async () => (await rig.db.rows(adhoc("SELECT 1 FROM deadline_note"))).length === 0,
        "the notes",
      );
      ids.push(id);
    }
    const found = await Promise.all(ids.map(async (id) => Object.keys(await desk.states(id))));
    expect(found).toEqual([[], [], ["#0"], ["#0", "only#0"]]);
  });

  it("of a mapped task is met when all its items have succeeded", async () => {
    await desk.host();
    const id = await rig.trigger("mapped");
    expect(await rig.ended(id)).toBe("success");
    await rig.until(async () => (await desk.states(id))["each#0"] === "met", "the verdict");
    expect(await desk.states(id)).toEqual({ "each#0": "met", "nothing#0": "met", "stuck#0": "missed" });
  });

  it("is missed by a run that never starts", async () => {
    await desk.host();
    await rig.db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id = 'stuck'"));
    const id = await rig.trigger("stuck");
    await rig.until(async () => (await desk.states(id))["#0"] === "missed", "the miss");
    expect((await rig.run(id)).state).toBe("queued");
    expect((await desk.settled(id)).map(({ state }) => state)).toEqual(["done"]);
  });

  it("calls a function again after it threw", async () => {
    await desk.host();
    const id = await rig.trigger("throws");
    await rig.until(async () => (await desk.deliveries(id))[0]?.error === "not yet", "the first call");
    expect((await desk.deliveries(id))[0]).toMatchObject({ state: "pending", attempts: 1 });
    await writeFile(`${gate}.throws`, "");
    await desk.hurry();
    expect(await desk.settled(id)).toMatchObject([{ state: "done", attempts: 2, error: null }]);
    expect(await rig.ended(id)).toBe("success");
  });
});
