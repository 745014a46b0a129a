import { describe, expect, it } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import { firstFailure } from "./first-failure.ts";
import { type Instance, newInstance } from "./instance.ts";
import type { TaskState } from "./states.ts";

type Ended = readonly [state: TaskState, endedAt: number | null, upstream?: readonly string[]];

function first(tasks: Readonly<Record<string, Ended>>): string | undefined {
  const manifests = Object.entries(tasks).map(([taskId, [, , upstream = []]]) =>
    taskManifest(taskId, { upstream: [...upstream] }),
  );
  const graph = compileGraph(dagManifest(manifests));
  const instances = graph.nodes.map((node): Instance => {
    const [state, endedAt] = tasks[node.id]!;
    return { ...newInstance(node, -1), state, endedAt };
  });
  return firstFailure(instances, ({ isLeaf }) => isLeaf)?.node.id;
}

describe("firstFailure", () => {
  it("returns the earliest failure, also if a failure downstream of it decides", () => {
    expect(first({ a: ["failed", 20], b: ["failed", 10] })).toBe("b");
    const late = ["upstream_failed", 30, ["a"]] as const;
    expect(first({ a: ["failed", 20], b: ["failed", 25], c: late })).toBe("a");
  });

  it("ignores a failure that another task has handled, unless it is the only one", () => {
    const handled = { a: ["failed", 10], b: ["success", 15, ["a"]] } as const;
    expect(first({ ...handled, c: ["failed", 20] })).toBe("c");
    expect(first({ ...handled, c: ["failed", 20, ["b"]] })).toBe("c");
    expect(first(handled)).toBe("a");
  });

  it("returns the task's own failure if it ran in spite of failed upstreams", () => {
    expect(first({ a: ["failed", 10], b: ["failed", 20, ["a"]] })).toBe("b");
  });

  it("works without end times, and returns undefined if no task has failed", () => {
    expect(first({ a: ["failed", null], b: ["failed", null] })).toBe("a");
    expect(first({ a: ["success", 1], b: ["upstream_failed", 2] })).toBeUndefined();
  });
});
