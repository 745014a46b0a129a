/**
 * The trigger rules in mapped and grouped graphs, over every combination of states of up to three upstream instances: in
 * each graph shape, a task gets the verdict of its rule over exactly the instances that count for it.
 */
import type { MapManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { describe, expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { ALL_RULES } from "../../../test/reference/random-dag.ts";
import { judgeByRule, type ReferenceState } from "../../../test/reference/reference-rules.ts";
import type { InstanceRow } from "../run/instance.ts";
import { RunModel } from "../run/run.ts";
import type { TaskState } from "../run/states.ts";
import { compileGraph } from "./graph.ts";

const STATES = ["success", "failed", "skipped", "upstream_failed", "running"] as const;
type UpstreamState = (typeof STATES)[number];

/** Every combination of `count` states. */
function combinations(count: number): UpstreamState[][] {
  if (count === 0) return [[]];
  return combinations(count - 1).flatMap((rest) => STATES.map((state) => [...rest, state]));
}

function row(taskId: string, mapIndex: number, state: TaskState): InstanceRow {
  const isOut = state === "running";
  const tries = state === "pending" ? 0 : 1;
  const attempt = isOut ? `${taskId}-${mapIndex}` : null;
  return { taskId, mapIndex, state, tryNumber: tries, maxTries: 0, attempt, retryAt: null, infraLosses: 0 };
}

function map(mapId: string, parent: string | null = null): MapManifest {
  return { mapId, parent, over: { kind: "list", items: [] }, limit: null };
}

interface Shape {
  readonly tasks: readonly TaskManifest[];
  readonly maps: readonly MapManifest[];
  readonly rows: readonly InstanceRow[];
  readonly expansions: readonly { mapId: string; parent: number; base: number; length: number }[];
}

/** The state of an instance of "down" after the run is loaded. */
function fate({ expansions, maps, rows, tasks }: Shape, mapIndex: number): string | undefined {
  const model = RunModel.load(compileGraph(dagManifest([...tasks], { maps: [...maps] })), rows, {
    expansions: expansions.map((each) => ({ ...each, tries: 0 })),
  });
  model.start(1);
  return model.get("down", mapIndex)?.state;
}

function expected(rule: TaskManifest["rule"], states: readonly UpstreamState[]): string {
  const verdict = judgeByRule(rule, { states: states as readonly ReferenceState[], setups: [] });
  return verdict === "run" ? "scheduled" : verdict === "wait" ? "pending" : verdict;
}

describe.each(ALL_RULES)("%s", (rule) => {
  const down = (facts: Partial<TaskManifest>) => taskManifest("down", { rule, upstream: ["up"], ...facts });

  test("counts all instances of an upstream mapped task", () => {
    for (const states of combinations(3)) {
      const shape = {
        tasks: [taskManifest("up", { map: "m" }), down({})],
        maps: [map("m")],
        rows: [...states.map((state, index) => row("up", index, state)), row("down", -1, "pending")],
        expansions: [{ mapId: "m", parent: -1, base: 0, length: 3 }],
      };
      expect(fate(shape, -1), states.join()).toBe(expected(rule, states));
    }
  });

  test("counts the instances of its own item and those outside of a mapped group", () => {
    for (const states of combinations(3)) {
      const [outside, own, other] = states as [UpstreamState, UpstreamState, UpstreamState];
      const shape = {
        tasks: [
          taskManifest("outside"),
          taskManifest("up", { map: "m" }),
          down({ map: "m", upstream: ["up", "outside"] }),
        ],
        maps: [map("m")],
        rows: [
          row("outside", -1, outside),
          row("up", 0, other),
          row("up", 1, own),
          row("down", 0, "pending"),
          row("down", 1, "pending"),
        ],
        expansions: [{ mapId: "m", parent: -1, base: 0, length: 2 }],
      };
      expect(fate(shape, 1), states.join()).toBe(expected(rule, [outside, own]));
    }
  });

  test("counts the instances of an inner map in its own item", () => {
    for (const states of combinations(3)) {
      const [a, b, other] = states as [UpstreamState, UpstreamState, UpstreamState];
      const shape = {
        tasks: [taskManifest("up", { map: "inner" }), down({ map: "outer" })],
        maps: [map("outer"), map("inner", "outer")],
        rows: [
          row("up", 0, other),
          row("up", 1, a),
          row("up", 2, b),
          row("down", 0, "pending"),
          row("down", 1, "pending"),
        ],
        expansions: [
          { mapId: "outer", parent: -1, base: 0, length: 2 },
          { mapId: "inner", parent: 0, base: 0, length: 1 },
          { mapId: "inner", parent: 1, base: 1, length: 2 },
        ],
      };
      expect(fate(shape, 1), states.join()).toBe(expected(rule, [a, b]));
    }
  });

  test("counts each task of an upstream group without retries", () => {
    for (const states of combinations(2)) {
      const ids = ["g.a", "g.b"];
      const shape = {
        tasks: [...ids.map((id) => taskManifest(id, { group: "g" })), down({ upstream: ids })],
        maps: [],
        rows: [...states.map((state, index) => row(ids[index]!, -1, state)), row("down", -1, "pending")],
        expansions: [],
      };
      expect(fate(shape, -1), states.join()).toBe(expected(rule, states));
    }
  });
});
