import { expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import type { InstanceRow } from "../run/instance.ts";
import { RunModel } from "../run/run.ts";
import type { TaskState } from "../run/states.ts";
import { compileGraph } from "./graph.ts";
import { dependsOnSetup, pendingTeardowns } from "./setups.ts";

const at = (taskId: string, state: TaskState, mapIndex = -1) => ({ taskId, state, mapIndex });

test.each<[setup: TaskState, teardown: TaskState, isOwed: boolean]>([
  ["success", "pending", true],
  ["success", "scheduled", true],
  ["success", "running", true],
  ["success", "up_for_retry", true],
  ["success", "success", false],
  ["success", "failed", false],
  ["running", "pending", true],
  ["deferred", "pending", true],
  ["pending", "pending", false],
  ["queued", "pending", false],
  ["failed", "pending", false],
  ["skipped", "pending", false],
])("owedTeardowns with setup %s and teardown %s keeps the teardown: %s", (setup, teardown, isOwed) => {
  const places = [at("make", setup), at("work", "running"), at("clear", teardown)];
  const owed = pendingTeardowns(new Map([["clear", "make"]]), places);
  expect(owed).toEqual(isOwed ? [places[2]] : []);
});

test("owedTeardowns pairs the items of a map, and uses a setup outside of the map if there is none inside", () => {
  const places = [
    at("outer", "success"),
    ...[0, 1].map((item) => at("make", item === 0 ? "success" : "pending", item)),
    ...[0, 1].map((item) => at("clear", "pending", item)),
    at("last", "pending", 7),
  ];
  const setupOf = new Map([
    ["clear", "make"],
    ["last", "outer"],
  ]);
  expect(pendingTeardowns(setupOf, places).map(({ mapIndex, taskId }) => `${taskId} ${mapIndex}`)).toEqual([
    "clear 0",
    "last 7",
  ]);
});

const inMap = { map: "m" };
const graph = compileGraph(
  dagManifest(
    [
      taskManifest("make", { role: "setup" }),
      taskManifest("work", { upstream: ["make"], ...inMap }),
      taskManifest("after", { upstream: ["work"], ...inMap }),
      taskManifest("clear", {
        role: "teardown",
        rule: "allDoneSetupSuccess",
        upstream: ["make", "after"],
        teardown: { of: "make", failsRun: false },
      }),
      taskManifest("beside"),
    ],
    { maps: [{ mapId: "m", parent: null, over: { kind: "list", items: [] }, limit: 1 }] },
  ),
);

test("dependsOnSetup is true for the scope of a setup and its teardown", () => {
  const placed = (id: string, mapIndex = -1) => ({ mapIndex, node: graph.byId.get(id)! });
  const make = placed("make");
  const names = graph.nodes.filter(({ id }) => dependsOnSetup(placed(id, 3), make)).map(({ id }) => id);
  expect(names.sort()).toEqual(["after", "clear", "work"]);
  const work = placed("work", 3);
  expect(dependsOnSetup(placed("after", 3), work)).toBe(true);
  expect(dependsOnSetup(placed("after", 4), work)).toBe(false);
});

test("a teardown of a halted run does not wait for map items that will not be created", () => {
  const row = ({ mapIndex, state, taskId }: ReturnType<typeof at>): InstanceRow => ({
    ...{ taskId, mapIndex, state, tryNumber: 1, maxTries: 0, attempt: null, retryAt: null, infraLosses: 0 },
  });
  const rows = [
    at("make", "success"),
    at("work", "failed", 0),
    at("after", "skipped", 0),
    at("clear", "pending"),
    at("beside", "success"),
  ].map(row);
  const expansions = [{ mapId: "m", parent: -1, base: 0, length: 3, tries: 0 }];
  const model = RunModel.load(graph, rows, { expansions });
  model.start(1);
  expect(model.get("clear")?.state).toBe("pending");
  model.apply({ type: "halted", at: 2, reason: "cancelled", active: "failed" }, 2);
  expect(model.isGrowing).toBe(false);
  expect(model.drainReady().map(({ node }) => node.id)).toEqual(["clear"]);
});
