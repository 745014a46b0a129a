import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";

describe("a scheduler drives runs to their end", () => {
  let rig: SchedulerRig;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await rig.publish({
      "flow.ts": `
        import { dag, fail, skip } from "tradewind";
        export const data = dag("data", {}, (d) => {
          const numbers = d.task("numbers", () => [1, 2, 3]);
          const sum = d.task("sum", { inputs: { numbers } }, ({ numbers }) => numbers.reduce((a, b) => a + b, 0));
          d.task("report", { inputs: { sum, numbers } }, ({ sum, numbers }) => ({ sum, count: numbers.length }));
        });
        export const retries = dag("retries", {}, (d) => {
          const flaky = d.task("flaky", { retries: 2, retryDelay: "50ms" }, (_, ctx) => {
            if (ctx.tryNumber < 3) throw new Error("not yet");
            return ctx.tryNumber;
          });
          const doomed = d.task("doomed", { retries: 1, retryDelay: 10 }, () => { throw new Error("never"); });
          const hopeless = d.task("hopeless", { retries: 5 }, () => fail("no use"));
          d.task("after_flaky", { after: [flaky] }, () => {});
          d.task("after_doomed", { after: [doomed] }, () => {});
          d.task("cleanup", { inputs: { doomed, hopeless }, rule: "allDone" }, ({ doomed, hopeless }) => [doomed.state, hopeless.state]);
        });
        export const branch = dag("branch", {}, (d) => {
          const way = d.branch("way", () => "left");
          const left = d.task("left", { after: [way] }, () => "l");
          const right = d.task("right", { after: [way] }, () => "r");
          d.task("join", { inputs: { left, right }, rule: "noneFailedMinOneSuccess" }, ({ left, right }) => [left.state, right.state]);
          const gate = d.shortCircuit("gate", () => false);
          const behind = d.task("behind", { after: [gate] }, () => {});
          d.task("far_behind", { after: [behind], rule: "allDone" }, () => {});
          d.task("skipped", () => skip("nothing to do"));
        });
        export const ways = dag("ways", {}, (d) => {
          const way = d.branch("way", () => "large");
          const large = d.group("large", { after: way }, (g) => {
            const first = g.task("first", () => 1);
            g.group("rest", { after: first }, (h) => { h.task("second", () => 2); });
          });
          const many = d.mapGroup("many", { over: [1, 2], after: way }, (g, item) => g.task("each", { inputs: { item } }, ({ item }) => item));
          d.task("join", { after: [large, many], rule: "noneFailedMinOneSuccess" }, () => {});
          const cluster = d.setup("create", () => "c");
          const gate = d.shortCircuit("gate", { after: cluster, respectRules: true }, () => false);
          const direct = d.task("direct", { after: gate }, () => {});
          const next = d.task("next", { after: direct }, () => {});
          d.task("regardless", { after: [next], rule: "allDone" }, () => {});
          const stop = d.shortCircuit("stop", { after: cluster }, () => false);
          d.task("none", { after: stop, rule: "allDone" }, () => {});
          d.teardown("delete", { of: cluster }, (made) => made);
        });
        export const several = ["one", "two"].map((id) => dag("array_" + id, {}, (d) => { d.task("only", () => id); }));
        export const conf = dag("conf", {}, (d) => {
          d.task("show", (_, ctx) => ({ run: ctx.run.id, date: ctx.run.logicalDate?.toISOString() ?? null }));
        });
      `,
    });
    await rig.scheduler();
  });

  it("passes outputs along typed edges", async () => {
    const id = await rig.trigger("data");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "report")).toEqual({ sum: 6, count: 3 });
  });

  it("retries, fails after the last try or without a retry, and applies trigger rules downstream", async () => {
    const id = await rig.trigger("retries");
    expect(await rig.ended(id)).toBe("failed");
    const tasks = await rig.tasks(id);
    expect(tasks.flaky).toMatchObject({ state: "success", try_number: 3 });
    expect(tasks.doomed).toMatchObject({ state: "failed", try_number: 2 });
    expect(tasks.hopeless).toMatchObject({ state: "failed", try_number: 1 });
    expect(tasks.after_flaky?.state).toBe("success");
    expect(tasks.after_doomed?.state).toBe("upstream_failed");
    expect(await rig.output(id, "cleanup")).toEqual(["failed", "failed"]);
  });

  it("follows branches, short-circuits and skips", async () => {
    const id = await rig.trigger("branch");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.states(id)).toEqual({
      way: "success",
      left: "success",
      right: "skipped",
      join: "success",
      gate: "success",
      behind: "skipped",
      far_behind: "skipped",
      skipped: "skipped",
    });
    expect(await rig.output(id, "join")).toEqual(["success", "skipped"]);
  });

  it("branches into groups, short-circuits with and without downstream rules, and always runs teardowns", async () => {
    const id = await rig.trigger("ways");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.states(id)).toEqual({
      way: "success",
      "large.first": "success",
      "large.rest.second": "success",
      "many.each": "skipped",
      join: "success",
      create: "success",
      gate: "success",
      direct: "skipped",
      next: "skipped",
      regardless: "success",
      stop: "success",
      none: "skipped",
      delete: "success",
    });
  });

  it("runs DAGs that a file exports in an array", async () => {
    const id = await rig.trigger("array_two");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "only")).toBe("two");
  });

  it("passes the facts of the run to a task", async () => {
    const id = await rig.trigger("conf", { runId: "by_hand", logicalDate: new Date("2026-01-02T03:04:05Z") });
    await rig.ended(id);
    expect(await rig.output(id, "show")).toEqual({ run: "by_hand", date: "2026-01-02T03:04:05.000Z" });
  });

  it("leaves no slot occupied", async () => {
    expect(await rig.poolsAreExact()).toBe(true);
  });
});
