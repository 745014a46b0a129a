import type { GroupManifest, MapManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import type { ExpansionRow } from "../map/expansions.ts";
import { InputReader } from "../map/input-reader.ts";
import type { MapChanges } from "../map/mapping.ts";
import type { InstanceRow } from "../run/instance.ts";
import { RunModel } from "../run/run.ts";
import type { RunEvent } from "../run/run-event.ts";
import { compileGraph } from "./graph.ts";
import type { GroupRow } from "./groups.ts";

const NO_MAPS: MapChanges = { closed: [], dropped: [], labels: [], opened: [], released: [] };
const CALLBACKS = { success: true, failure: true, retry: true };

function group(groupId: string, facts: Partial<GroupManifest> = {}): GroupManifest {
  return { groupId, parent: null, docs: null, callbacks: CALLBACKS, ...facts };
}

const task = (taskId: string, upstream: string[] = [], facts: Partial<TaskManifest> = {}) =>
  taskManifest(taskId, { upstream, ...facts });

/** A run with scripted tasks, and the rows that a database would store. */
class Stage {
  readonly #graph;
  readonly stored = new Map<string, InstanceRow>();
  readonly groups = new Map<string, GroupRow>();
  readonly expansions = new Map<string, ExpansionRow>();
  readonly told: string[] = [];
  model: RunModel;
  now = 100;

  constructor(tasks: TaskManifest[], groups: GroupManifest[], maps: MapManifest[] = []) {
    this.#graph = compileGraph(dagManifest(tasks, { groups, ...(maps.length > 0 && { maps }) }));
    this.model = this.load();
  }

  load(): RunModel {
    this.model = RunModel.load(this.#graph, [...this.stored.values()], {
      groups: [...this.groups.values()],
      expansions: [...this.expansions.values()],
    });
    this.model.start(this.now);
    this.store();
    return this.model;
  }

  store(): void {
    for (const { events, ...row } of this.model.groups?.drainChanges() ?? []) {
      const name = row.mapIndex < 0 ? row.groupId : `${row.groupId}[${row.mapIndex}]`;
      this.groups.set(name, row);
      for (const { event, tryNumber } of events) this.told.push(`${name} ${event} ${tryNumber}`);
    }
    const { closed, dropped, opened } = this.model.drainMapChanges() ?? NO_MAPS;
    for (const { mapIndex, taskId } of dropped) this.stored.delete(`${taskId} ${mapIndex}`);
    for (const { mapId, parent } of closed) this.expansions.delete(`${mapId} ${parent}`);
    for (const row of opened) this.expansions.set(`${row.mapId} ${row.parent}`, row);
    for (const { instance } of this.model.drainChanges()) {
      const { attempt, infraLosses, mapIndex, maxTries, node, retryAt, state, tryNumber } = instance;
      const row = { taskId: node.id, mapIndex, state, tryNumber, maxTries, attempt, retryAt, infraLosses };
      this.stored.set(`${node.id} ${mapIndex}`, row);
    }
  }

  /** Runs a ready task to its end. */
  end(taskId: string, how: "succeeded" | "failed", { mapIndex = -1, skip = [] as string[] } = {}): void {
    const of = { taskId, mapIndex, attempt: `a${this.now++}` };
    this.model.apply({ type: "queued", ...of }, this.now);
    const event: RunEvent =
      how === "failed"
        ? { type: "failed", ...of, at: this.now, retry: true, retryAt: null, reason: "scripted" }
        : { type: "succeeded", ...of, at: this.now, skip };
    expect(this.model.apply(event, this.now), `${taskId} ${how}`).toBe(true);
    this.store();
  }

  /** Starts the group tries that are due. */
  begin(): boolean {
    const again = this.model.groups?.begin(this.now) ?? [];
    const hasBegun = this.model.repeat(again, this.now, () => {});
    this.store();
    return hasBegun;
  }

  expand(mapId: string, length: number, parent = -1): void {
    this.model.apply({ type: "expanded", mapId, parent, length }, this.now);
    this.model.make(100, this.now);
    this.store();
  }

  state(taskId: string, mapIndex = -1): string | undefined {
    return this.model.get(taskId, mapIndex)?.state;
  }
}

const pair = (retry = { retries: 1, delayMs: 10 }) =>
  new Stage(
    [task("a", [], { group: "g" }), task("b", ["a"], { group: "g" }), task("out", ["b"])],
    [group("g", { retry })],
  );

test("tasks outside of a group wait until the group has ended permanently", () => {
  const stage = pair();
  stage.end("a", "failed");
  expect([stage.state("b"), stage.state("out")]).toEqual(["upstream_failed", "pending"]);
  expect(stage.model.verdict()).toEqual({ state: "running" });
  expect(stage.model.nextRetryAt()).toBe(stage.now + 10);
  expect(stage.begin()).toBe(false);
  stage.now += 10;
  expect(stage.begin()).toBe(true);
  stage.end("a", "failed");
  expect(stage.state("out")).toBe("upstream_failed");
  expect(stage.model.verdict()).toMatchObject({ state: "failed" });
  expect(stage.told).toEqual(["g retry 1", "g failure 2"]);
});

test("a group does not start its next try before the end of the last one is stored", () => {
  const stage = pair({ retries: 1, delayMs: 0 });
  const of = { taskId: "a", mapIndex: -1, attempt: "x" };
  stage.model.apply({ type: "queued", ...of }, 200);
  stage.model.apply({ type: "failed", ...of, at: 200, retry: false, retryAt: null, reason: null }, 200);
  expect(stage.model.groups?.begin(300)).toEqual([]);
  stage.store();
  expect(stage.model.groups?.begin(300)).toHaveLength(2);
});

test("group changes that could not be stored are returned again, with their events", () => {
  const stage = pair();
  stage.model.apply({ type: "queued", taskId: "a", mapIndex: -1, attempt: "x" }, 200);
  const of = { taskId: "a", mapIndex: -1, attempt: "x", at: 200 };
  stage.model.apply({ type: "failed", ...of, retry: false, retryAt: null, reason: null }, 200);
  const [changes, groups] = [stage.model.drainChanges(), stage.model.groups!.drainChanges()];
  expect(groups).toMatchObject([{ groupId: "g", state: "waiting", events: [{ event: "retry" }] }]);
  expect(stage.model.groups!.drainChanges()).toEqual([]);
  stage.model.restoreChanges(changes, { groups });
  expect(stage.model.groups!.drainChanges()).toEqual(groups);
});

test("a halted run retries no group, and skips the tasks that wait for it", () => {
  const stage = pair();
  stage.end("a", "failed");
  const halt = { type: "halted", at: stage.now, reason: "timed out", active: "failed" } as const;
  expect(stage.model.apply(halt, stage.now)).toBe(true);
  stage.store();
  expect(stage.state("out")).toBe("skipped");
  expect(stage.model.verdict().state).not.toBe("running");
  expect(stage.groups.get("g")).toMatchObject({ state: "failed", retryAt: null });
});

test("clearing a task reopens its ended group, with new retries", () => {
  const stage = pair();
  stage.end("a", "succeeded");
  stage.end("b", "succeeded");
  expect(stage.state("out")).toBe("scheduled");
  stage.stored.set("b -1", { ...stage.stored.get("b -1")!, state: "pending", attempt: null });
  stage.load();
  expect(stage.groups.get("g")).toMatchObject({ state: "open", tryNumber: 2, maxTries: 2 });
  stage.end("b", "failed");
  expect(stage.groups.get("g")).toMatchObject({ state: "waiting", tryNumber: 2 });
  expect(stage.told).toEqual(["g success 1", "g retry 2"]);
});

test("marking the failed tasks of a waiting group as success ends the wait", () => {
  const stage = pair();
  stage.end("a", "failed");
  for (const id of ["a", "b"]) {
    stage.stored.set(`${id} -1`, { ...stage.stored.get(`${id} -1`)!, state: "success", attempt: null });
  }
  stage.load();
  expect(stage.groups.get("g")).toMatchObject({ state: "success", retryAt: null });
  expect(stage.state("out")).toBe("scheduled");
});

test("a branch in a group skips tasks outside only with the final try", () => {
  const stage = new Stage(
    [
      task("branch", [], { group: "g" }),
      task("bad", [], { group: "g" }),
      task("one", ["branch"]),
      task("two", ["branch"]),
    ],
    [group("g", { retry: { retries: 1, delayMs: 0 } })],
  );
  stage.end("branch", "succeeded", { skip: ["one"] });
  stage.end("bad", "failed");
  expect([stage.state("one"), stage.state("two")]).toEqual(["pending", "pending"]);
  expect(stage.begin()).toBe(true);
  stage.end("branch", "succeeded", { skip: ["two"] });
  stage.end("bad", "succeeded");
  expect([stage.state("one"), stage.state("two")]).toEqual(["scheduled", "skipped"]);
});

test("a map in a group is expanded again together with its source task", () => {
  const stage = new Stage(
    [
      task("list", [], { group: "g" }),
      task("each", ["list"], { group: "g", map: "each" }),
      task("out", ["each"]),
    ],
    [group("g", { retry: { retries: 1, delayMs: 0 } })],
    [{ mapId: "each", parent: null, over: { kind: "output", taskId: "list" }, limit: null }],
  );
  const expand = (length: number) => {
    const [place] = stage.model.drainExpandable();
    expect(place).toBeDefined();
    stage.model.apply({ type: "expanded", mapId: "each", parent: -1, length }, stage.now);
    stage.model.make(100, stage.now);
    stage.store();
  };
  stage.end("list", "succeeded");
  expand(2);
  stage.end("each", "succeeded", { mapIndex: 0 });
  stage.end("each", "failed", { mapIndex: 1 });
  expect(stage.groups.get("g")).toMatchObject({ state: "waiting" });
  expect(stage.begin()).toBe(true);
  expect(stage.state("each", 0)).toBeUndefined();
  stage.end("list", "succeeded");
  expand(3);
  for (const mapIndex of [0, 1, 2]) stage.end("each", "succeeded", { mapIndex });
  expect(stage.groups.get("g")).toMatchObject({ state: "success", tryNumber: 2 });
  expect(stage.state("out")).toBe("scheduled");
});

test("a group around a map ends only when all items have ended, including those not created yet", () => {
  const stage = new Stage(
    [task("each", [], { group: "g", map: "each" })],
    [group("g")],
    [{ mapId: "each", parent: null, over: { kind: "list", items: [1, 2, 3] }, limit: 2 }],
  );
  stage.model.drainExpandable();
  stage.model.apply({ type: "expanded", mapId: "each", parent: -1, length: 3 }, 1);
  stage.model.make(100, 1);
  stage.store();
  for (const mapIndex of [0, 1]) stage.end("each", "succeeded", { mapIndex });
  expect(stage.told).toEqual([]);
  stage.model.make(100, 1);
  stage.end("each", "failed", { mapIndex: 2 });
  expect(stage.told).toEqual(["g failure 1"]);
});

const LIST = { kind: "output", taskId: "list" } as const;

/** `list`, then per item `m.a` and `m.b` in a group with one retry, then `out`. */
const items = (limit: number | null = null, rule: TaskManifest["rule"] = "allSuccess") => {
  const stage = new Stage(
    [
      task("list"),
      task("m.a", ["list"], { group: "m", map: "m" }),
      task("m.b", ["m.a"], { group: "m", map: "m" }),
      task("out", ["m.a", "m.b"], { rule }),
    ],
    [group("m", { retry: { retries: 1, delayMs: 10, map: "m" } })],
    [{ mapId: "m", parent: null, over: LIST, limit }],
  );
  stage.end("list", "succeeded");
  return stage;
};
const through = (stage: Stage, mapIndex: number, how: "succeeded" | "failed" = "succeeded") => {
  stage.end("m.a", "succeeded", { mapIndex });
  stage.end("m.b", how, { mapIndex });
};

test("an item of a mapped group is retried separately and stays hidden until it has ended permanently", () => {
  const stage = items();
  stage.expand("m", 2);
  through(stage, 0);
  through(stage, 1, "failed");
  expect(stage.told).toEqual(["m[0] success 1", "m[1] retry 1"]);
  expect([stage.groups.get("m[0]")?.state, stage.groups.get("m[1]")?.state]).toEqual(["success", "waiting"]);
  expect(stage.state("out")).toBe("pending");
  stage.load();
  expect(stage.model.nextRetryAt()).toBe(stage.groups.get("m[1]")!.retryAt);
  stage.now += 10;
  expect(stage.begin()).toBe(true);
  expect([stage.state("m.a", 0), stage.state("m.a", 1), stage.state("m.b", 1)]).toEqual([
    "success",
    "scheduled",
    "pending",
  ]);
  through(stage, 1, "failed");
  expect(stage.told.slice(2)).toEqual(["m[1] failure 2"]);
  expect(stage.state("out")).toBe("upstream_failed");
});

test("an item that waits for its next try counts toward the limit of its map", () => {
  const stage = items(1);
  stage.expand("m", 2);
  through(stage, 0, "failed");
  expect(stage.model.make(100, stage.now)).toBe(0);
  stage.now += 10;
  stage.begin();
  through(stage, 0);
  expect(stage.model.make(100, stage.now)).toBe(2);
});

test("clearing a task of one item reopens that item only", () => {
  const stage = items();
  stage.expand("m", 2);
  for (const mapIndex of [0, 1]) through(stage, mapIndex);
  expect(stage.state("out")).toBe("scheduled");
  stage.stored.set("m.b 1", { ...stage.stored.get("m.b 1")!, state: "pending", attempt: null });
  stage.load();
  expect(stage.groups.get("m[0]")).toMatchObject({ state: "success", tryNumber: 1 });
  expect(stage.groups.get("m[1]")).toMatchObject({ state: "open", tryNumber: 2, maxTries: 2 });
});

test("an empty map is visible outside at once and triggers no callback", () => {
  const stage = items();
  stage.expand("m", 0);
  expect([stage.state("m.b"), stage.state("out")]).toEqual(["skipped", "skipped"]);
  expect(stage.told).toEqual([]);
});

test("the items of a map that is expanded again continue with the next try and all retries", () => {
  const stage = items();
  stage.expand("m", 1);
  through(stage, 0, "failed");
  stage.now += 10;
  stage.begin();
  stage.end("m.a", "succeeded", { mapIndex: 0 });
  const cleared = [...stage.stored].map(
    ([key, row]) => [key, { ...row, state: "pending", attempt: null }] as const,
  );
  for (const [key, row] of cleared) stage.stored.set(key, row);
  stage.load();
  expect(stage.state("m.a", 0)).toBeUndefined();
  stage.load();
  stage.end("list", "succeeded");
  stage.expand("m", 2);
  through(stage, 0, "failed");
  through(stage, 1, "failed");
  expect(stage.told.slice(1)).toEqual(["m[0] retry 2", "m[1] retry 1"]);
});

test("a task outside receives no output of a try that has not ended permanently", () => {
  const stage = items(null, "oneSuccess");
  stage.expand("m", 2);
  through(stage, 0);
  stage.end("m.a", "succeeded", { mapIndex: 1 });
  expect(stage.state("out")).toBe("scheduled");
  const reader = new InputReader(stage.model, () => ({ value: "given" }));
  const { each } = reader.input({ taskId: "m.a" }, stage.model.get("out")!);
  expect(each).toMatchObject([
    { state: "success", value: "given" },
    { state: "pending", value: undefined },
  ]);
});
