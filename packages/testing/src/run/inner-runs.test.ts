import { dag, skip, TimeDeltaTrigger, TriggerDagRunOperator } from "@tradewind/sdk";
import { expect, test } from "vitest";
import { z } from "zod";
import { runDag } from "../index.ts";

const scores = dag("scores", { params: z.object({ region: z.string() }) }, (d) => {
  const pause = d.trigger("pause", new TimeDeltaTrigger({ delta: "1h" }));
  return d.task("score", { after: pause }, async (_, ctx) => {
    if (ctx.params.region === "nowhere") throw new Error("no such region");
    if (ctx.params.region === "empty") return skip("nothing to score");
    ctx.log.info("scored");
    return `${ctx.params.region} ${await ctx.variable("quarter")} ${ctx.run.dataInterval?.start.toISOString()}`;
  });
});

test("runs a sub-DAG in the same process, on the same clock, and returns its result", async () => {
  const parent = dag("parent", (d) => {
    const eu = d.dag("eu", scores, { params: { region: "eu" } });
    const all = d.mapDag("all", scores, { over: ["us", "asia"], params: (region) => ({ region }) });
    d.task("report", { inputs: { eu, all } }, ({ eu, all }) => [eu, ...all]);
  });
  const seen: string[] = [];
  const run = await runDag(parent, {
    logicalDate: "2027-01-04",
    variables: { quarter: "Q1" },
    onEvent: (event) => event.type === "log" && seen.push(`${event.taskId}: ${event.message}`),
  });
  expect(run.state).toBe("success");
  const of = (region: string) => `${region} Q1 2027-01-04T00:00:00.000Z`;
  expect(run.outputs["report"]).toEqual([of("eu"), of("us"), of("asia")]);
  expect(run.timeline.at(-1)?.atMs).toBe(3_600_000);
  expect(seen).toContain("eu > score: scored");
  expect(run.triggeredRuns).toEqual([]);
  expect(run.subRuns.map(({ dagId, taskId, mapIndex }) => [dagId, taskId, mapIndex])).toEqual(
    expect.arrayContaining([
      ["scores", "eu", -1],
      ["scores", "all", 0],
      ["scores", "all", 1],
    ]),
  );
});

test("fails the task if its run fails, creates one run per try, and skips the task if the result was skipped", async () => {
  const parent = dag("parent", (d) => {
    d.dag("failing", scores, { params: { region: "nowhere" }, retries: 1 });
    d.dag("empty", scores, { params: { region: "empty" } });
    d.dag("late", scores, { params: { region: "eu" }, timeout: "10m" });
    d.latestOnly("latest");
  });
  const run = await runDag(parent, { variables: { quarter: "Q1" } });
  expect(run.states).toEqual({ failing: "failed", empty: "skipped", late: "failed", latest: "success" });
  expect(run.task("failing")).toMatchObject({ tries: 2, error: { code: "TW_DAG_RUN_FAILED" } });
  expect(run.task("late").error).toMatchObject({ code: "TASK_TIMEOUT" });
  const failed = run.subRuns.filter(({ taskId }) => taskId === "failing");
  expect(failed.map(({ run }) => run.state)).toEqual(["failed", "failed"]);
  expect(failed[0]?.run.runId).not.toBe(failed[1]?.run.runId);
});

test("uses the end state and outputs that the test gives instead of running the DAG", async () => {
  const parent = dag("parent", (d) => {
    d.dag("sub", scores, { params: { region: "eu" } });
    d.operator("named", new TriggerDagRunOperator({ dagId: "sales", wait: true, outputs: ["count"] }));
    d.operator("typed", new TriggerDagRunOperator({ dag: scores, conf: { region: "us" }, wait: true }));
  });
  const event = { dagId: "", runId: "r", logicalDate: null, state: "success" };
  const run = await runDag(parent, {
    variables: { quarter: "Q1" },
    triggers: {
      sub: { ...event, outputs: { score: 7 } },
      named: (args: { runId: string }) => ({
        ...event,
        dagId: "sales",
        runId: args.runId,
        outputs: { count: 3 },
      }),
    },
  });
  expect(run.outputs["named"]).toMatchObject({ state: "success", outputs: { count: 3 } });
  expect(run.outputs["typed"]).toMatchObject({ state: "success", outputs: expect.stringContaining("us Q1") });
  expect(run.triggeredRuns.map(({ dagId }) => dagId).sort()).toEqual(["sales", "scores"]);
  expect(run.subRuns).toHaveLength(1);
});
