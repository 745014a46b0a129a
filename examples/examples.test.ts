import { runDag } from "@tradewind/testing";
import { describe, expect, it } from "vitest";
import etl from "./etl.ts";
import hello from "./hello.ts";
import release from "./release.ts";
import training from "./training.ts";

describe("hello", () => {
  it("greets", async () => {
    const run = await runDag(hello);
    expect(run.state).toBe("success");
    expect(run.outputs).toEqual({ who: "world", greet: "Hello, world!", shout: "HELLO, WORLD!" });
  });
});

describe("etl", () => {
  it("retries a source that fails once, and loads a few orders at once", async () => {
    const run = await runDag(etl, { conf: { orders: 3 } });
    expect(run.state).toBe("success");
    expect(run.task("extract").tries).toBe(2);
    expect(run.states).toMatchObject({ load_at_once: "success", load_in_parts: "skipped" });
    expect(run.outputs["report"]).toEqual({ rows: 3, sum: 0 + 37 + 74 });
  });

  it("loads many orders in parts", async () => {
    const run = await runDag(etl, { conf: { orders: 2000 } });
    expect(run.states).toMatchObject({ load_at_once: "skipped", load_in_parts: "success" });
    expect(run.outputs["cleanup"]).toBe("removed 2000 temporary rows");
  });

  it("rejects a conf that violates its params", async () => {
    const run = await runDag(etl, { conf: { orders: -1 } });
    expect(run.state).toBe("failed");
    expect(run.task("extract").error?.message).toContain("orders");
  });
});

describe("training", () => {
  it("submits its job once, and publishes after two waits", async () => {
    const run = await runDag(training, { triggers: { "example.job_done": { accuracy: 0.95 } } });
    expect(run.state).toBe("success");
    expect(run.outputs["train"]).toMatchObject({ accuracy: 0.95 });
    expect(run.logs["train"]?.filter((line) => line.message === "submitted")).toHaveLength(1);
  });
});

describe("release", () => {
  it("publishes where the person said", async () => {
    const run = await runDag(release, {
      approvals: { approve: "approve", target: { answer: { region: "us" } } },
    });
    expect(run.outputs["publish"]).toBe("10 % in us");
  });

  it("skips everything after a rejection", async () => {
    const run = await runDag(release, { approvals: { approve: "reject" } });
    expect(run.states).toMatchObject({ approve: "skipped", target: "skipped", publish: "skipped" });
  });
});
