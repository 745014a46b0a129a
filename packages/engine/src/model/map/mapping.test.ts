import type { MapManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { describe, expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import type { Instance, InstanceRow } from "../run/instance.ts";
import { RunModel } from "../run/run.ts";
import type { TaskState } from "../run/states.ts";
import type { ExpansionRow } from "./expansions.ts";

const EVERYTHING = Number.POSITIVE_INFINITY;

const task = (id: string, upstream: string[] = [], facts: Partial<TaskManifest> = {}) =>
  taskManifest(id, { upstream, ...facts });

const map = (mapId: string, taskId: string, facts: Partial<MapManifest> = {}): MapManifest => ({
  mapId,
  parent: null,
  over: { kind: "output", taskId },
  limit: null,
  ...facts,
});

/** A run with its rows as a database would store them, and shortcuts to drive it. */
class Driven {
  readonly rows = new Map<string, InstanceRow>();
  readonly expansions = new Map<string, ExpansionRow>();
  readonly #graph;
  model: RunModel;
  #attempts = 0;

  constructor(tasks: TaskManifest[], maps: MapManifest[]) {
    this.#graph = compileGraph(dagManifest(tasks, { maps }));
    this.model = RunModel.load(this.#graph, []);
    this.model.start(1);
    this.store();
  }

  /** As after a take-over, or after an edit of the rows. */
  reload(edit: (row: InstanceRow) => InstanceRow = (row) => row): void {
    for (const [key, row] of this.rows) this.rows.set(key, edit(row));
    const expansions = [...this.expansions.values()];
    this.model = RunModel.load(this.#graph, [...this.rows.values()], { expansions });
    this.model.start(2);
    this.store();
  }

  store(): void {
    const maps = this.model.drainMapChanges();
    for (const { mapIndex, taskId } of maps?.dropped ?? []) this.rows.delete(`${taskId} ${mapIndex}`);
    for (const { mapId, parent } of maps?.closed ?? []) this.expansions.delete(`${mapId} ${parent}`);
    for (const row of maps?.opened ?? []) this.expansions.set(`${row.mapId} ${row.parent}`, row);
    for (const { instance } of this.model.drainChanges()) {
      const { mapIndex, state, tryNumber, maxTries, attempt, retryAt, infraLosses } = instance;
      const row = { mapIndex, state, tryNumber, maxTries, attempt, retryAt, infraLosses };
      this.rows.set(`${instance.node.id} ${mapIndex}`, { taskId: instance.node.id, ...row });
    }
  }

  expand(mapId: string, length: number, parent = -1, most = EVERYTHING): boolean {
    const isApplied = this.model.apply({ type: "expanded", mapId, parent, length }, 3);
    this.model.make(most, 3);
    this.store();
    return isApplied;
  }

  run(taskId: string, mapIndex = -1, end: "succeeded" | "failed" = "succeeded"): void {
    const of = { taskId, mapIndex, attempt: `a${++this.#attempts}`, at: 4 };
    expect(this.model.apply({ type: "queued", ...of }, 4), `${taskId}[${mapIndex}] is not ready`).toBe(true);
    if (end === "succeeded") this.model.apply({ type: "succeeded", ...of, skip: [] }, 4);
    else this.model.apply({ type: "failed", ...of, retry: false, retryAt: null, reason: "boom" }, 4);
    this.store();
  }

  states(taskId: string): Record<string, string> {
    const own = [...this.model.instances()].filter(({ node }) => node.id === taskId);
    return Object.fromEntries(own.map((instance) => [this.path(instance), instance.state]));
  }

  path({ level, node, ordinal }: Instance): string {
    const scope = node.scope?.chain[level - 1];
    return scope ? this.model.expansions.path(scope, ordinal).join(",") : "";
  }

  places(): string[] {
    return this.model.drainExpandable().map(({ scope, parent }) => `${scope.id} ${parent}`);
  }
}

describe("a mapped task", () => {
  const tasks = [task("list"), task("each", ["list"], { map: "each" }), task("sum", ["each"])];
  const mapped = () => {
    const run = new Driven(tasks, [map("each", "list")]);
    run.run("list");
    return run;
  };

  test("becomes one instance per item, and its downstream waits for all of them", () => {
    const run = mapped();
    expect(run.places()).toEqual(["each -1"]);
    expect(run.model.verdict()).toEqual({ state: "running" });
    expect(run.expand("each", 3)).toBe(true);
    expect(run.states("each")).toEqual({ "0": "scheduled", "1": "scheduled", "2": "scheduled" });
    expect(run.rows.has("each -1")).toBe(false);
    for (const index of [2, 0, 1]) {
      expect(run.states("sum")).toEqual({ "": "pending" });
      run.run("each", index);
    }
    expect(run.states("sum")).toEqual({ "": "scheduled" });
    expect(run.expand("each", 2)).toBe(false);
  });

  test("is skipped over an empty list, and upstream_failed over a value that is not a list", () => {
    const run = mapped();
    run.expand("each", 0);
    expect(run.states("each")).toEqual({ "": "skipped" });
    expect(run.states("sum")).toEqual({ "": "skipped" });
    const other = mapped();
    other.model.apply({ type: "unmappable", mapId: "each", parent: -1, reason: "MAP_UNUSABLE: no list" }, 3);
    expect(other.model.get("each")).toMatchObject({
      state: "upstream_failed",
      reason: "MAP_UNUSABLE: no list",
    });
    expect(other.model.verdict()).toEqual({ state: "failed", reason: "task_failure" });
  });

  test("is created in batches, and a gathering task expects the full number from the start", () => {
    const run = mapped();
    run.expand("each", 5, -1, 2);
    expect(Object.keys(run.states("each"))).toEqual(["0", "1"]);
    run.run("each", 0);
    run.run("each", 1);
    expect(run.model.verdict()).toEqual({ state: "running" });
    expect(run.states("sum")).toEqual({ "": "pending" });
    run.reload();
    expect(run.model.isGrowing).toBe(true);
    run.model.make(EVERYTHING, 5);
    run.store();
    for (const index of [2, 3, 4]) run.run("each", index);
    expect(run.states("sum")).toEqual({ "": "scheduled" });
  });

  test("counts an item toward its limit until the item has ended, also while it is deferred", () => {
    const run = new Driven(tasks, [map("each", "list", { limit: 1 })]);
    run.run("list");
    run.expand("each", 3);
    const of = { taskId: "each", mapIndex: 0, attempt: "w", at: 4 };
    run.model.apply({ type: "queued", ...of }, 4);
    run.model.apply(
      { type: "deferred", ...of, wait: { timeoutAt: null, onTimeout: "fail", keepsSlot: false } },
      4,
    );
    expect(run.model.make(EVERYTHING, 5)).toBe(0);
    expect(run.states("each")).toEqual({ "0": "deferred" });
    run.model.apply({ type: "resumed", ...of }, 6);
    run.run("each", 0);
    expect(run.model.make(EVERYTHING, 7)).toBe(1);
    expect(run.states("each")).toEqual({ "0": "success", "1": "scheduled" });
  });

  test("creates no more instances in a halted run", () => {
    const run = mapped();
    run.expand("each", 5, -1, 2);
    run.model.apply({ type: "halted", at: 9, reason: "timed out", active: "failed" }, 9);
    expect(run.model.isGrowing).toBe(false);
    expect(run.model.verdict().state).toBe("success");
  });

  test("waits for its trigger rule before it is expanded", () => {
    const run = new Driven(
      [task("list"), task("other"), task("each", ["list", "other"], { map: "each" })],
      [map("each", "list")],
    );
    run.run("list");
    expect(run.places()).toEqual([]);
    run.run("other", -1, "failed");
    expect(run.states("each")).toEqual({ "": "upstream_failed" });
  });

  test("is collapsed when its source starts again and all its instances were cleared", () => {
    const run = mapped();
    run.expand("each", 3);
    for (const index of [0, 1, 2]) run.run("each", index);
    run.run("sum");
    run.reload((row) => ({ ...row, state: "pending", attempt: null }));
    expect(run.states("each")).toEqual({ "": "pending" });
    expect(run.expansions.size).toBe(0);
    expect([...run.rows.keys()].sort()).toEqual(["each -1", "list -1", "sum -1"]);
    run.run("list");
    expect(run.places()).toEqual(["each -1"]);
    run.expand("each", 2);
    expect(run.states("each")).toEqual({ "0": "scheduled", "1": "scheduled" });
  });

  test("is collapsed when the last stopping instance has ended, and releases its slots", () => {
    const run = new Driven([task("list"), task("each", ["list"], { map: "m" })], [map("m", "list")]);
    run.run("list");
    run.expand("m", 2);
    run.model.apply({ type: "queued", taskId: "each", mapIndex: 1, attempt: "one" }, 4);
    run.store();
    run.reload((row) => ({ ...row, state: row.mapIndex === 1 ? "restarting" : "pending" }));
    run.model.apply({ type: "restarted", taskId: "each", mapIndex: 1, attempt: "one", at: 3 }, 3);
    expect(run.model.get("each", -1)).toMatchObject({ state: "pending" });
    expect(run.model.drainMapChanges()?.released).toMatchObject([{ mapIndex: 1 }]);
  });

  test("collapses its inner maps, even if they were due", () => {
    const maps = [map("outer", "list"), map("middle", "sizes", { parent: "outer" })];
    const tasks = [task("list"), task("sizes"), task("names", ["list"], { map: "outer" })];
    const inner = map("inner", "names", { parent: "middle" });
    const run = new Driven(
      [...tasks, task("each", ["names"], { map: "inner", rule: "always" })],
      [...maps, inner],
    );
    run.run("list");
    run.run("sizes");
    run.expand("outer", 1);
    expect(run.expand("middle", 1, 0)).toBe(true);
    run.reload((row) => (row.taskId === "sizes" ? { ...row, state: "skipped" } : row));
    expect(run.model.get("each", -2)).toMatchObject({ state: "skipped" });
  });

  /** A map whose second task was skipped before the list was expanded. */
  const withSkippedNext = () => {
    const run = new Driven(
      [task("list"), task("each", ["list"], { map: "m" }), task("next", ["each"], { map: "m" })],
      [map("m", "list")],
    );
    const of = { taskId: "list", mapIndex: -1, attempt: "one", at: 2 };
    run.model.apply({ type: "queued", ...of }, 2);
    run.model.apply({ type: "succeeded", ...of, skip: ["next"] }, 2);
    return run;
  };

  test("leaves no row of a cleared stand-in behind", () => {
    const run = withSkippedNext();
    run.expand("m", 2);
    expect([...run.rows.keys()].filter((key) => key.startsWith("next"))).toEqual(["next -1"]);
    run.reload((row) => (row.taskId === "next" ? { ...row, state: "pending" } : row));
    expect([...run.rows.keys()].filter((key) => key.startsWith("next"))).toEqual(["next 0", "next 1"]);
  });

  test("ends a cleared stand-in with the source of the map, and keeps the items", () => {
    const run = withSkippedNext();
    run.expand("m", 1);
    run.run("each", 0);
    const edited: Record<string, TaskState> = { list: "failed", next: "pending" };
    run.reload((row) => ({ ...row, state: edited[row.taskId] ?? row.state }));
    expect(run.states("each")).toEqual({ "0": "success" });
    expect(run.model.get("next", -1)).toMatchObject({ state: "upstream_failed" });
    expect(run.model.verdict()).toMatchObject({ state: "failed" });
  });

  test("keeps its other instances when one of them is cleared", () => {
    const run = mapped();
    run.expand("each", 2);
    run.run("each", 0);
    run.run("each", 1);
    run.reload((row) => (row.mapIndex === 1 ? { ...row, state: "pending", attempt: null } : row));
    expect(run.states("each")).toEqual({ "0": "success", "1": "scheduled" });
    expect(run.states("sum")).toEqual({ "": "scheduled" });
  });
});

describe("a mapped group", () => {
  const tasks = [
    task("list"),
    task("a", ["list"], { map: "g" }),
    task("b", ["a"], { map: "g" }),
    task("sum", ["b"]),
  ];
  const grouped = (facts: Partial<MapManifest> = {}) => {
    const run = new Driven(tasks, [map("g", "list", facts)]);
    run.run("list");
    return run;
  };

  test("continues item by item", () => {
    const run = grouped();
    run.expand("g", 2);
    run.run("a", 1);
    expect(run.states("b")).toEqual({ "0": "pending", "1": "scheduled" });
    run.run("b", 1);
    run.run("a", 0, "failed");
    expect(run.states("b")).toEqual({ "0": "upstream_failed", "1": "success" });
    expect(run.states("sum")).toEqual({ "": "upstream_failed" });
  });

  test("ends like its source if there is no list", () => {
    const run = new Driven(tasks, [map("g", "list")]);
    run.run("list", -1, "failed");
    expect(run.states("b")).toEqual({ "": "upstream_failed" });
    expect(run.model.verdict()).toEqual({ state: "failed", reason: "task_failure" });
  });

  test("has no more active items than its limit", () => {
    const run = grouped({ limit: 2 });
    run.expand("g", 5);
    expect(Object.keys(run.states("a"))).toEqual(["0", "1"]);
    run.run("a", 0);
    expect(run.model.make(EVERYTHING, 5)).toBe(0);
    run.run("b", 0);
    expect(run.model.make(EVERYTHING, 5)).toBe(2);
    expect(Object.keys(run.states("a"))).toEqual(["0", "1", "2"]);
  });

  test("is created in batches counted in instances, not items", () => {
    const run = grouped();
    run.model.apply({ type: "expanded", mapId: "g", parent: -1, length: 10 }, 3);
    expect(run.model.make(6, 3)).toBe(6);
    expect(Object.keys(run.states("a"))).toHaveLength(3);
    expect(run.model.make(1, 3)).toBe(2);
  });

  test("keeps one row for a task skipped for all items, and the downstream of each item sees it", () => {
    const run = new Driven(
      [
        task("pick"),
        ...tasks.map((each) => (each.taskId === "a" ? { ...each, upstream: ["list", "pick"] } : each)),
      ],
      [map("g", "list")],
    );
    run.model.apply({ type: "queued", taskId: "pick", mapIndex: -1, attempt: "p" }, 3);
    const of = { taskId: "pick", mapIndex: -1, attempt: "p", at: 3 };
    run.model.apply({ type: "succeeded", ...of, skip: ["a"] }, 3);
    run.run("list");
    run.expand("g", 3);
    expect(run.states("a")).toEqual({ "": "skipped" });
    expect(run.states("b")).toEqual({ "0": "skipped", "1": "skipped", "2": "skipped" });
    run.reload();
    expect(run.states("a")).toEqual({ "": "skipped" });
  });
});

describe("a map that is expanded again", () => {
  const cleared = (row: InstanceRow): InstanceRow => ({ ...row, state: "pending", attempt: null });
  const tryOf = (run: Driven, taskId: string, mapIndex: number) => run.model.get(taskId, mapIndex)?.tryNumber;

  test("continues from the highest try, in every batch, also after a reload", () => {
    const tasks = [task("list"), task("each", ["list"], { map: "each", retries: 2 })];
    const run = new Driven(tasks, [map("each", "list")]);
    run.run("list");
    run.expand("each", 2);
    run.run("each", 1, "failed");
    run.reload((row) => (row.mapIndex === 1 ? cleared(row) : row));
    run.run("each", 1);
    run.run("each", 0);
    expect([tryOf(run, "each", 0), tryOf(run, "each", 1)]).toEqual([1, 2]);
    run.reload(cleared);
    expect(run.model.get("each", -1)).toMatchObject({ state: "pending", tryNumber: 2 });
    run.reload();
    run.run("list");
    run.expand("each", 3, -1, 1);
    run.run("each", 0);
    expect(tryOf(run, "each", 0)).toBe(3);
    run.reload();
    run.model.make(EVERYTHING, 5);
    run.store();
    run.run("each", 2);
    expect(run.model.get("each", 2)).toMatchObject({ tryNumber: 3, maxTries: 4 });
  });

  test("continues from the highest try after an empty list in between", () => {
    const tasks = [task("list"), task("each", ["list"], { map: "each" })];
    const run = new Driven(tasks, [map("each", "list")]);
    run.run("list");
    run.expand("each", 1);
    run.run("each", 0);
    run.reload(cleared);
    run.run("list");
    run.expand("each", 0);
    expect(run.states("each")).toEqual({ "": "skipped" });
    run.reload(cleared);
    run.run("list");
    run.expand("each", 2);
    expect([tryOf(run, "each", 0), tryOf(run, "each", 1)]).toEqual([2, 2]);
  });

  test("continues from the highest try of other items in a nested map", () => {
    const tasks = [
      task("list"),
      task("split", ["list"], { map: "outer" }),
      task("work", ["split"], { map: "inner" }),
    ];
    const run = new Driven(tasks, [map("outer", "list"), map("inner", "split", { parent: "outer" })]);
    const through = (lengths: readonly number[], order: readonly number[]) => {
      run.run("list");
      run.expand("outer", lengths.length);
      for (const parent of order) {
        run.run("split", parent);
        run.expand("inner", lengths[parent]!, parent);
      }
    };
    through([2, 1], [0, 1]);
    for (const ordinal of [0, 1, 2]) run.run("work", ordinal);
    run.reload(cleared);
    run.reload();
    through([1, 1], [1, 0]);
    for (const ordinal of [0, 1]) run.run("work", ordinal);
    expect(run.states("work")).toEqual({ "1,0": "success", "0,0": "success" });
    expect([tryOf(run, "work", 0), tryOf(run, "work", 1)]).toEqual([2, 2]);
  });

  test("continues from the highest try after an outer map was collapsed and the run reloaded", () => {
    const tasks = [
      task("list"),
      task("mid", ["list"], { map: "outer" }),
      task("split", ["mid"], { map: "middle" }),
      task("work", ["split"], { map: "inner" }),
    ];
    const middle = map("middle", "mid", { parent: "outer" });
    const run = new Driven(tasks, [
      map("outer", "list"),
      middle,
      map("inner", "split", { parent: "middle" }),
    ]);
    run.run("list");
    run.expand("outer", 2);
    for (const parent of [0, 1]) {
      run.run("mid", parent);
      run.expand("middle", 1, parent);
    }
    run.run("split", 0);
    run.expand("inner", 1, 0);
    run.run("work", 0);
    run.reload((row) => (row.mapIndex === 0 ? cleared(row) : row));
    run.reload();
    run.run("split", 1);
    run.expand("inner", 1, 1);
    expect(run.states("work")).toEqual({ "0": "pending", "1,0,0": "scheduled" });
    expect(tryOf(run, "work", 0)).toBe(2);
  });
});

describe("a map in a map", () => {
  const tasks = [
    task("list"),
    task("split", ["list"], { map: "outer" }),
    task("work", ["split"], { map: "inner" }),
    task("join", ["work"], { map: "outer" }),
    task("sum", ["join"]),
  ];
  const maps = [map("outer", "list"), map("inner", "split", { parent: "outer" })];

  test("is expanded in each item separately, gathered in each item, and gathered at the end", () => {
    const run = new Driven(tasks, maps);
    run.run("list");
    run.expand("outer", 2);
    run.run("split", 1);
    expect(run.places()).toEqual(["inner 1"]);
    run.expand("inner", 2, 1);
    expect(run.states("work")).toEqual({ "0": "pending", "1,0": "scheduled", "1,1": "scheduled" });
    run.run("work", 0);
    run.run("work", 1);
    expect(run.states("join")).toEqual({ "0": "pending", "1": "scheduled" });
    run.reload();
    run.run("split", 0);
    run.expand("inner", 1, 0);
    expect(run.states("work")).toEqual({ "1,0": "success", "1,1": "success", "0,0": "scheduled" });
    run.run("work", 2);
    run.run("join", 0);
    run.run("join", 1);
    run.run("sum");
    expect(run.model.verdict()).toEqual({ state: "success" });
  });

  test("is skipped over an empty list in one item without effect on the others", () => {
    const run = new Driven(tasks, maps);
    run.run("list");
    run.expand("outer", 2);
    run.run("split", 0);
    run.expand("inner", 0, 0);
    expect(run.states("work")).toEqual({ "0": "skipped", "1": "pending" });
    expect(run.states("join")).toEqual({ "0": "skipped", "1": "pending" });
  });
});

test("an event of one of 100,000 instances costs work for its own item only", () => {
  const tasks = [
    task("list"),
    task("a", ["list"], { map: "g" }),
    task("b", ["a"], { map: "g" }),
    task("sum", ["b"], { rule: "allDone" }),
  ];
  const run = new Driven(tasks, [map("g", "list")]);
  run.run("list");
  run.expand("g", 100_000);
  const before = run.model.evaluations;
  for (let index = 0; index < 1_000; index++) run.run("a", index * 100);
  expect(run.model.evaluations - before).toBeLessThan(3_000);
});
