import { dag, fail } from "@tradewind/sdk";
import { describe, expect, test } from "vitest";
import { runDag } from "./index.ts";

describe("a setup and its teardown", () => {
  const clustered = (how: {
    readonly setup?: boolean;
    readonly work?: boolean;
    readonly teardown?: boolean;
  }) =>
    dag("clustered", (d) => {
      const cluster = d.setup("create", () => (how.setup === false ? fail("no machines") : { id: "c1" }));
      const rows = d.task("crunch", { inputs: { cluster } }, ({ cluster }) =>
        how.work === false ? fail("bad data") : `rows of ${cluster.id}`,
      );
      d.task("check", { after: rows, rule: "allDone" }, () => "checked");
      d.teardown("delete", { of: cluster, inputs: { rows } }, (made, { rows }) =>
        how.teardown === false ? fail("gone") : `${made.id} after ${rows.state}`,
      );
      d.task("report", { inputs: { rows } }, ({ rows }) => rows);
    });

  test("runs the teardown after all users of the setup, with the setup's output", async () => {
    const run = await runDag(clustered({}));
    expect(run.state).toBe("success");
    expect(run.outputs["delete"]).toBe("c1 after success");
    const order = run.timeline.filter(({ state }) => state === "running").map(({ taskId }) => taskId);
    expect(order.indexOf("delete")).toBeGreaterThan(order.indexOf("check"));
  });

  test("runs the teardown after a failure, and ignores its own failure", async () => {
    const failed = await runDag(clustered({ work: false }));
    expect(failed.states).toMatchObject({ crunch: "failed", check: "success", delete: "success" });
    expect(failed.state).toBe("failed");
    const unclean = await runDag(clustered({ teardown: false }));
    expect(unclean.states).toMatchObject({ delete: "failed", report: "success" });
    expect(unclean.state).toBe("success");
  });

  test("runs nothing that needs a failed setup, under any rule", async () => {
    const run = await runDag(clustered({ setup: false }));
    expect(run.states).toMatchObject({
      create: "failed",
      crunch: "upstream_failed",
      check: "upstream_failed",
      delete: "upstream_failed",
    });
  });

  test("fails the run with failsRun", async () => {
    const run = await runDag(
      dag("strict", (d) => {
        const lock = d.setup("lock", () => "l");
        d.task("work", { after: lock }, () => 1);
        d.teardown("unlock", { of: lock, failsRun: true }, () => fail("still locked"));
      }),
    );
    expect(run.state).toBe("failed");
  });

  test("does not wait for the teardowns of a group; each item of a map has its own", async () => {
    const run = await runDag(
      dag("scoped", (d) => {
        const each = d.mapGroup("each", { over: ["a", "b"] }, (g, name) => {
          const schema = g.setup("schema", { inputs: { name } }, ({ name }) => `tmp_${name}`);
          const load = g.task("load", { inputs: { schema } }, ({ schema }) =>
            schema === "tmp_b" ? fail("b is bad") : schema,
          );
          g.teardown("drop", { of: schema }, (schema) => `dropped ${schema}`);
          return load;
        });
        d.task("after", { after: each, rule: "allDone" }, () => "done");
      }),
    );
    expect(run.outputs["each.drop"]).toEqual(["dropped tmp_a", "dropped tmp_b"]);
    const manifest = run.timeline.map(({ taskId, state }) => `${taskId} ${state}`);
    expect(manifest).toContain("after success");
  });
});
