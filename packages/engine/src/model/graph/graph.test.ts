import type { TaskManifest, WeightRule } from "@tradewind/sdk/manifest";
import { expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph, type Graph } from "./graph.ts";
import { EXACT_LIMIT } from "./weights.ts";

const compile = (...tasks: TaskManifest[]) => compileGraph(dagManifest(tasks));
const task = (id: string, upstream: string[] = [], facts: Partial<TaskManifest> = {}) =>
  taskManifest(id, { upstream, ...facts });
const leaves = (graph: Graph) => graph.nodes.filter((node) => node.isLeaf).map((node) => node.id);
const weights = (graph: Graph) => Object.fromEntries(graph.nodes.map((node) => [node.id, node.weight]));

test("compile sorts upstream tasks first, in any manifest order, and links edges in both directions", () => {
  const graph = compile(task("c", ["b", "a", "b"]), task("b", ["a"]), task("a"));
  expect(graph.nodes.map((node) => node.id)).toEqual(["a", "b", "c"]);
  expect(graph.byId.get("c")?.upstream).toEqual([1, 0]);
  expect(graph.byId.get("a")?.downstream).toEqual([1, 2]);
});

test("compile keeps the order of a sorted manifest", () => {
  const graph = compile(task("z"), task("a"), task("y", ["a"]), task("b", ["z"]));
  expect(graph.nodes.map((node) => node.id)).toEqual(["z", "a", "y", "b"]);
});

test("compile rejects an invalid DAG with names and a remedy", () => {
  expect(() => compile(task("a", ["c"]), task("b", ["a"]), task("c", ["b"]))).toThrow(
    'DAG "dag" has a cycle: b -> c -> a -> b. Remove one of these edges.',
  );
  expect(() => compile(task("a", ["a"]))).toThrow("cycle: a -> a");
  expect(() => compile(task("a", ["ghost"]))).toThrow(
    'Task "a" of DAG "dag" names upstream "ghost", which does not exist.',
  );
  expect(() => compile(task("a"), task("a"))).toThrow('two tasks named "a"');
});

test("leaves exclude teardowns, unless there are only teardowns, and a teardown does not hide a leaf", () => {
  expect(leaves(compile(task("a"), task("b", ["a"]), task("c", ["a"])))).toEqual(["b", "c"]);
  const cleanUp = task("clean", ["work"], { role: "teardown" });
  expect(leaves(compile(task("work"), cleanUp))).toEqual(["work"]);
  expect(leaves(compile(cleanUp, task("work"), task("after", ["clean"])))).toEqual(["work", "after"]);
  expect(leaves(compile(task("t", [], { role: "teardown" })))).toEqual(["t"]);
});

test("a task is gated if it depends on earlier runs", () => {
  const graph = compile(
    task("a", [], { dependsOnPast: true }),
    task("b", [], { waitForDownstream: true }),
    task("c"),
  );
  expect(graph.nodes.map((node) => node.gated)).toEqual([true, true, false]);
});

test("weights count every descendant or ancestor once", () => {
  const diamond = (weightRule: WeightRule) =>
    weights(
      compile(
        task("top", [], { priority: 1, weightRule }),
        task("left", ["top"], { priority: 2, weightRule }),
        task("right", ["top"], { priority: 4, weightRule }),
        task("end", ["left", "right"], { priority: 8, weightRule }),
      ),
    );
  expect(diamond("downstream")).toEqual({ top: 15, left: 10, right: 12, end: 8 });
  expect(diamond("upstream")).toEqual({ top: 1, left: 3, right: 5, end: 15 });
  expect(diamond("absolute")).toEqual({ top: 1, left: 2, right: 4, end: 8 });
});

test("weights stay within 32 bits", () => {
  const heavy = { priority: 2_000_000_000 };
  expect(weights(compile(task("a", [], heavy), task("b", ["a"], heavy)))).toEqual({
    a: 2_147_483_647,
    b: 2_000_000_000,
  });
});

test("weights of a fan are exact up to the limit, and those of its heaviest chain above it", () => {
  const fan = (width: number) =>
    compile(
      task("start"),
      ...Array.from({ length: width }, (_, i) => task(`w${i}`, ["start"])),
      task(
        "end",
        Array.from({ length: width }, (_, i) => `w${i}`),
      ),
    );
  const exact = fan(EXACT_LIMIT - 2);
  expect([exact.byId.get("start")?.weight, exact.byId.get("w7")?.weight]).toEqual([EXACT_LIMIT, 2]);
  const large = fan(EXACT_LIMIT - 1);
  expect(["start", "w7", "end"].map((id) => large.byId.get(id)?.weight)).toEqual([3, 2, 1]);
});

test("compile handles 100,000 tasks, as a chain and as a fan, within seconds", () => {
  const count = 100_000;
  const begin = performance.now();
  const chain = compile(
    ...Array.from({ length: count }, (_, i) => task(`t${i}`, i ? [`t${i - 1}`] : [])).reverse(),
  );
  expect([chain.nodes[0]?.id, chain.nodes[0]?.weight, chain.nodes[count - 1]?.weight]).toEqual([
    "t0",
    count,
    1,
  ]);
  const middle = Array.from({ length: count }, (_, i) => `t${i}`);
  const fan = compile(task("start"), ...middle.map((id) => task(id, ["start"])), task("end", middle));
  expect(fan.byId.get("end")?.upstream).toHaveLength(count);
  expect(performance.now() - begin).toBeLessThan(20_000);
});
