import { expect, it } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { FailedUpstream } from "./failed-upstream.ts";
import { compileGraph } from "./graph.ts";

function graphOf(tasks: Readonly<Record<string, readonly string[]>>, more: object = {}) {
  return compileGraph(
    dagManifest(
      Object.entries(tasks).map(([id, upstream]) => taskManifest(id, { upstream })),
      more,
    ),
  );
}

const failed = (taskId: string, endedAt: number, mapIndex = -1) => ({
  taskId,
  mapIndex,
  path: mapIndex < 0 ? null : [mapIndex],
  endedAt,
});

it("follows a chain of upstream_failed tasks to the task that failed", () => {
  const graph = graphOf({ a: [], b: ["a"], c: ["b"], d: ["c"] });
  const upstream = new FailedUpstream(graph, [failed("a", 5)], new Set(["b", "c", "d"]));
  expect(upstream.of({ taskId: "d", path: null })).toMatchObject({ taskId: "a" });
});

it("names the earliest of several failures, and ignores failures on unrelated paths", () => {
  const graph = graphOf({ a: [], b: [], other: [], c: ["a", "b"], ok: ["other"], d: ["c", "ok"] });
  const failures = [failed("a", 9), failed("b", 5), failed("other", 1)];
  const upstream = new FailedUpstream(graph, failures, new Set(["c", "d"]));
  expect(upstream.of({ taskId: "d", path: null })).toMatchObject({ taskId: "b" });
  expect(upstream.of({ taskId: "ok", path: null })).toMatchObject({ taskId: "other" });
});

it("names the failure in the same map item, and the earliest failure for a gathering task", () => {
  const graph = compileGraph(
    dagManifest(
      [
        taskManifest("list", {}),
        taskManifest("g.a", { upstream: ["list"], map: "g" }),
        taskManifest("g.b", { upstream: ["g.a"], map: "g" }),
        taskManifest("all", { upstream: ["g.b"] }),
      ],
      { maps: [{ mapId: "g", parent: null, over: { kind: "output", taskId: "list" }, limit: null }] },
    ),
  );
  const failures = [failed("g.a", 7, 2), failed("g.a", 3, 4)];
  const upstream = new FailedUpstream(graph, failures, new Set(["g.b", "all"]));
  expect(upstream.of({ taskId: "g.b", path: [2] })).toMatchObject({ mapIndex: 2 });
  expect(upstream.of({ taskId: "g.b", path: [4] })).toMatchObject({ mapIndex: 4 });
  expect(upstream.of({ taskId: "all", path: null })).toMatchObject({ mapIndex: 4 });
});

it("names the failed source task of a map", () => {
  const graph = compileGraph(
    dagManifest([taskManifest("list", {}), taskManifest("each", { upstream: ["list"], map: "each" })], {
      maps: [{ mapId: "each", parent: null, over: { kind: "output", taskId: "list" }, limit: null }],
    }),
  );
  const upstream = new FailedUpstream(graph, [failed("list", 1)], new Set(["each"]));
  expect(upstream.of({ taskId: "each", path: null })).toMatchObject({ taskId: "list" });
});

it("names a failed setup for a task in its scope that is not directly downstream", () => {
  const graph = compileGraph(
    dagManifest([
      taskManifest("make", { role: "setup" }),
      taskManifest("x", { upstream: ["make"], rule: "allDone" }),
      taskManifest("y", { upstream: ["x"], rule: "allDone" }),
      taskManifest("drop", {
        upstream: ["y", "make"],
        role: "teardown",
        teardown: { of: "make", failsRun: false },
      }),
    ]),
  );
  const upstream = new FailedUpstream(graph, [failed("make", 1)], new Set(["y", "drop"]));
  expect(upstream.of({ taskId: "y", path: null })).toMatchObject({ taskId: "make" });
});

it("returns null if no task failed, as after a manual edit", () => {
  const upstream = new FailedUpstream(graphOf({ a: [], b: ["a"] }), [], new Set(["b"]));
  expect(upstream.of({ taskId: "b", path: null })).toBeNull();
  expect(upstream.of({ taskId: "gone", path: null })).toBeNull();
});
