import { dag } from "@tradewind/sdk";
import { expect, test } from "vitest";
import { runDag } from "../run-dag.ts";

test("retries a failed group as a whole and runs its callbacks", async () => {
  const calls: string[] = [];
  const tell = (ctx: { groupId: string; event: string; tryNumber: number }) =>
    void calls.push(`${ctx.groupId} ${ctx.event} ${ctx.tryNumber}`);
  const grouped = dag("grouped", {}, (d) => {
    const g = d.group("g", { retries: 2, retryDelay: "1h", onRetry: tell, onSuccess: tell }, (g) => {
      const a = g.task("a", (_, ctx) => ctx.tryNumber);
      g.task("b", { inputs: { a } }, ({ a }) => {
        if (a < 3) throw new Error("not yet");
      });
      return a;
    });
    d.task("after", { inputs: { a: g.result } }, ({ a }) => a);
  });
  const run = await runDag(grouped);
  expect(run.state).toBe("success");
  expect(run.task("after")).toMatchObject({ output: 3, tries: 1 });
  expect(run.task("g.a").history.map(({ startedMs }) => startedMs)).toEqual([0, 3_600_000, 7_200_000]);
  expect(calls).toEqual(["g retry 1", "g retry 2", "g success 3"]);
});

test("retries an item of a mapped group separately and passes its map index to callbacks", async () => {
  const calls: string[] = [];
  const tell = (ctx: { event: string; mapIndex: number; tryNumber: number }) =>
    void calls.push(`${ctx.mapIndex} ${ctx.event} ${ctx.tryNumber}`);
  const on = { onRetry: tell, onSuccess: tell, onFailure: tell };
  const mapped = dag("mapped", {}, (d) => {
    const m = d.mapGroup("m", { over: [1, 2, 3], retries: 1, retryDelay: "1h", ...on }, (g, item) => {
      const a = g.task("a", { inputs: { item } }, ({ item }, ctx) => item * 10 + ctx.tryNumber);
      g.task("b", { inputs: { a } }, ({ a }) => {
        if (a === 21) throw new Error("not yet");
      });
      return a;
    });
    d.task("after", { inputs: { all: m.result } }, ({ all }) => all);
  });
  const run = await runDag(mapped);
  expect(run.state).toBe("success");
  expect(run.task("after")).toMatchObject({ output: [11, 22, 31], tries: 1 });
  expect(calls.sort()).toEqual(["0 success 1", "1 retry 1", "1 success 2", "2 success 1"]);
});

test("retries a failed run up to its limit before it fails", async () => {
  const calls: string[] = [];
  const retried = dag(
    "retried",
    { runRetries: 1, runRetryDelay: "10m", onFailure: (ctx) => void calls.push(ctx.event) },
    (d) => {
      const kept = d.task("kept", (_, ctx) => ctx.tryNumber);
      d.task("bad", { inputs: { kept } }, () => {
        throw new Error("bad");
      });
    },
  );
  const run = await runDag(retried);
  expect(run).toMatchObject({ state: "failed", reason: "task_failure", tries: 2 });
  expect(run.task("kept").tries).toBe(1);
  expect(run.task("bad").history.map(({ startedMs }) => startedMs)).toEqual([0, 600_000]);
  expect(calls).toEqual(["failure"]);
});

test("does not retry a run that timed out", async () => {
  const late = dag("late", { runRetries: 3, runRetryDelay: "10m", runTimeout: "15m" }, (d) => {
    d.task("bad", () => {
      throw new Error("bad");
    });
  });
  expect(await runDag(late)).toMatchObject({ state: "failed", reason: "timed_out", tries: 2 });
});
