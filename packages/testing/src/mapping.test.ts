import { cross, dag, fail, skip, zip } from "@tradewind/sdk";
import { describe, expect, test } from "vitest";
import { runDag } from "./index.ts";

describe("a mapped task", () => {
  test("runs once per item and passes the ordered list of results downstream", async () => {
    const run = await runDag(
      dag("squares", (d) => {
        const numbers = d.task("numbers", () => [3, 1, 2]);
        const squares = d.map("square", { over: numbers, limit: 2 }, async (n, _, ctx) => {
          await new Promise((resolve) => setTimeout(resolve, n));
          ctx.log.info(`item ${ctx.mapIndex}`);
          return n * n;
        });
        d.task("sum", { inputs: { squares } }, ({ squares }) => squares.reduce((sum, n) => sum + n, 0));
      }),
    );
    expect(run.state).toBe("success");
    expect(run.outputs).toEqual({ numbers: [3, 1, 2], square: [9, 1, 4], sum: 14 });
    expect(run.states).toMatchObject({ "square[0]": "success", "square[2]": "success", sum: "success" });
    expect(run.task("square", 1).output).toBe(1);
  });

  test("runs at most `limit` instances at once", async () => {
    let running = 0;
    let most = 0;
    const run = await runDag(
      dag("limited", (d) => {
        d.map("item", { over: [1, 2, 3, 4, 5], limit: 2 }, async () => {
          most = Math.max(most, ++running);
          await new Promise((resolve) => setTimeout(resolve, 5));
          running--;
        });
      }),
    );
    expect([run.state, most]).toEqual(["success", 2]);
  });

  test("accepts other inputs, lists and joined lists", async () => {
    const run = await runDag(
      dag("joined", (d) => {
        const names = d.task("names", () => ["a", "b"]);
        const factor = d.task("factor", () => 10);
        d.map("zipped", { over: zip(names, [1, 2]), inputs: { factor } }, ([name, n], { factor }) => {
          return `${name}${n * factor}`;
        });
        d.map("crossed", { over: cross(names, ["x", "y", "z"]) }, ([name, letter]) => name + letter);
      }),
    );
    expect(run.outputs).toMatchObject({
      zipped: ["a10", "b20"],
      crossed: ["ax", "ay", "az", "bx", "by", "bz"],
    });
  });

  test("is skipped over an empty list, and fails over a value that is not a list or lists of different lengths", async () => {
    const run = await runDag(
      dag("nothing", (d) => {
        const none = d.task("none", (): number[] => []);
        const wrong = d.task("wrong", () => JSON.parse("7") as number[]);
        d.map("empty", { over: none }, (n) => n);
        d.map("broken", { over: wrong }, (n) => n);
        d.map("uneven", { over: zip([1, 2], [1]) }, ([a, b]) => a + b);
      }),
    );
    expect(run.states).toMatchObject({
      empty: "skipped",
      broken: "upstream_failed",
      uneven: "upstream_failed",
    });
    expect(run.task("broken").reason).toBe(
      'MAP_UNUSABLE: the output of "wrong" is a number, but a map needs a list',
    );
    expect(run.task("uneven").reason).toContain("different lengths (2, 1)");
  });

  test("passes the state of each instance to rules other than allSuccess", async () => {
    const run = await runDag(
      dag("partly", (d) => {
        const parts = d.map("part", { over: [1, 2, 3] }, (n) => {
          if (n === 2) return fail("two");
          return n === 3 ? skip("three") : n;
        });
        d.task("report", { inputs: { parts }, rule: "allDone" }, ({ parts }) =>
          parts.map((part) => (part.state === "success" ? part.value : part.state)),
        );
      }),
    );
    expect(run.outputs["report"]).toEqual([1, "failed", "skipped"]);
    expect(run.state).toBe("success");
  });
});

describe("a mapped group", () => {
  test("runs item by item and returns lists of its outputs", async () => {
    const run = await runDag(
      dag("regions", (d) => {
        const names = d.task("names", () => ["north", "south"]);
        const regions = d.mapGroup("region", { over: names, limit: 1 }, (g, name) => {
          const rows = g.task("extract", { inputs: { name } }, ({ name }) => name.length);
          const loaded = g.task("load", { inputs: { name, rows } }, ({ name, rows }) => `${name}:${rows}`);
          return { rows, loaded };
        });
        const { loaded, rows } = regions.result;
        d.task("report", { inputs: { loaded, rows } }, ({ loaded, rows }) => [...loaded, ...rows]);
      }),
    );
    expect(run.outputs["report"]).toEqual(["north:5", "south:5", 5, 5]);
    const order = run.timeline
      .filter(({ state }) => state === "running")
      .map(({ taskId, mapIndex }) => [taskId, mapIndex]);
    expect(order).toEqual([
      ["names", -1],
      ["region.extract", 0],
      ["region.load", 0],
      ["region.extract", 1],
      ["region.load", 1],
      ["report", -1],
    ]);
  });

  test("lets a branch choose for its own item only", async () => {
    const run = await runDag(
      dag("choices", (d) => {
        d.mapGroup("each", { over: [1, 2] }, (g, n) => {
          const pick = g.branch("pick", { inputs: { n } }, ({ n }) => (n === 1 ? "each.one" : "each.other"));
          g.task("one", { after: pick }, () => "one");
          g.task("other", { after: pick }, () => "other");
        });
      }),
    );
    expect(run.states).toMatchObject({
      "each.one[0]": "success",
      "each.other[0]": "skipped",
      "each.one[1]": "skipped",
      "each.other[1]": "success",
    });
  });

  test("returns lists of lists from nested maps", async () => {
    const run = await runDag(
      dag("nested", (d) => {
        const groups = d.task("groups", () => [["a", "b"], [], ["c"]]);
        const all = d.mapGroup("group", { over: groups }, (g, members) => {
          const size = g.task("size", { inputs: { members } }, ({ members }) => members.length);
          const upper = g.map(
            "upper",
            { over: members, inputs: { size } },
            (name, { size }) => name.toUpperCase() + size,
          );
          return g.task("join", { inputs: { upper }, rule: "noneFailed" }, ({ upper }) =>
            upper.map((each) => (each.state === "success" ? each.value : "?")).join("+"),
          );
        });
        d.task("report", { inputs: { all: all.result } }, ({ all }) => all.join(" "));
      }),
    );
    expect(run.outputs["report"]).toBe("A2+B2  C1");
  });
});

test("skips a task that collects an empty inner list, unless its rule accepts skipped inputs", async () => {
  const run = await runDag(
    dag("sizes", (d) => {
      const regions = d.task("regions", () => [["a", "bb"], [], ["c"]]);
      const region = d.mapGroup("region", { over: regions }, (g, files) => {
        const sizes = g.map("size", { over: files }, (file) => file.length);
        const sum = g.task("sum", { inputs: { sizes }, rule: "noneFailed" }, ({ sizes }) =>
          sizes.reduce((sum, size) => sum + (size.state === "success" ? size.value : 0), 0),
        );
        return { sizes, sum };
      });
      const { sizes, sum } = region.result;
      d.task("sums", { inputs: { sum } }, ({ sum }) => sum.join(", "));
      d.task("strict", { inputs: { sizes } }, ({ sizes }) => sizes.length);
      d.task("lenient", { inputs: { sizes }, rule: "noneFailed" }, ({ sizes }) => sizes);
    }),
  );
  expect(run.outputs["sums"]).toBe("3, 0, 1");
  expect(run.states["strict"]).toBe("skipped");
  expect(run.outputs["lenient"]).toEqual([
    { state: "success", value: [1, 2] },
    { state: "skipped" },
    { state: "success", value: [1] },
  ]);
});
