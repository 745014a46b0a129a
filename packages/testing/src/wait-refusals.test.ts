/** Waits that the engine rejects are rejected in a test, too. */
import { dag, TimeDeltaTrigger } from "@tradewind/sdk";
import { expect, test } from "vitest";
import { runDag } from "./index.ts";

const hour = () => new TimeDeltaTrigger({ delta: "1h" });

test.each(["all", "race"] as const)("fails without a retry on Promise.%s of two waits", async (how) => {
  const defined = dag("together", (d) => {
    d.task("t", { retries: 2 }, async (_, ctx) => {
      const waits = [ctx.until("a", hour()), ctx.until("b", hour())];
      await (how === "all" ? Promise.all(waits) : Promise.race(waits));
    });
  });
  const run = await runDag(defined);
  expect(run.task("t").error).toMatchObject({ code: "TW_STEP_CONCURRENT" });
  expect(run.timeline.map(({ state }) => state)).toEqual(["running", "failed"]);
});

test("fails without a retry when wait names change on every resume", async () => {
  let calls = 0;
  const defined = dag("unstable", (d) => {
    d.task("t", { retries: 2 }, (_, ctx) => ctx.until(`wait-${++calls}`, hour()));
  });
  const run = await runDag(defined);
  expect(run.task("t").error).toMatchObject({
    code: "TW_STEP_UNSTABLE",
    message: expect.stringContaining('"wait-1", "wait-2", "wait-3"'),
  });
  expect(calls).toBe(4);
});

test("accepts a loop of waits with an index in the name", async () => {
  const defined = dag("ticks", (d) => {
    d.task("t", async (_, ctx) => {
      for (let i = 0; i < 10; i++) await ctx.until(`tick-${i}`, hour());
      return "done";
    });
  });
  expect((await runDag(defined)).outputs["t"]).toBe("done");
});
