import type { GroupManifest, MapManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../test/reference/manifests.ts";
import { compileGraph } from "./graph.ts";
import type { GroupRow } from "./groups.ts";
import type { InstanceRow } from "./instance.ts";
import { RunModel } from "./run.ts";
import type { RunEvent } from "./run-event.ts";

const CALLBACKS = { success: true, failure: true, retry: true };

function group(groupId: string, facts: Partial<GroupManifest> = {}): GroupManifest {
  return { groupId, parent: null, docs: null, callbacks: CALLBACKS, ...facts };
}

const task = (taskId: string, upstream: string[] = [], facts: Partial<TaskManifest> = {}) =>
  taskManifest(taskId, { upstream, ...facts });

/** A run whose tasks do what they are told, with all that a database would hold. */
class Stage {
  readonly #graph;
  readonly stored = new Map<string, InstanceRow>();
  readonly groups = new Map<string, GroupRow>();
  readonly told: string[] = [];
  model: RunModel;
  now = 100;

  constructor(tasks: TaskManifest[], groups: GroupManifest[], maps: MapManifest[] = []) {
    this.#graph = compileGraph(dagManifest(tasks, { groups, ...(maps.length > 0 && { maps }) }));
    this.model = this.load();
  }

  load(): RunModel {
    this.model = RunModel.load(this.#graph, [...this.stored.values()], { groups: [...this.groups.values()] });
    this.model.start(this.now);
    this.store();
    return this.model;
  }

  store(): void {
    for (const { events, ...row } of this.model.groups?.takeChanges() ?? []) {
      this.groups.set(row.groupId, row);
      for (const { event, tryNumber } of events) this.told.push(`${row.groupId} ${event} ${tryNumber}`);
    }
    for (const { mapIndex, taskId } of this.model.takeMapChanges()?.dropped ?? [])
      this.stored.delete(`${taskId} ${mapIndex}`);
    for (const { instance } of this.model.takeChanges()) {
      const { attempt, infraLosses, mapIndex, maxTries, node, retryAt, state, tryNumber } = instance;
      const row = { taskId: node.id, mapIndex, state, tryNumber, maxTries, attempt, retryAt, infraLosses };
      this.stored.set(`${node.id} ${mapIndex}`, row);
    }
  }

  /** Runs a task that is ready, to its end. */
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

  /** Begins what is due. */
  begin(): boolean {
    const again = this.model.groups?.begin(this.now) ?? [];
    const hasBegun = this.model.repeat(again, this.now, () => {});
    this.store();
    return hasBegun;
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

test("what is outside waits until the group has ended for good", () => {
  const stage = pair();
  stage.end("a", "failed");
  expect([stage.state("b"), stage.state("out")]).toEqual(["upstream_failed", "none"]);
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

test("a group does not begin again before its end is stored", () => {
  const stage = pair({ retries: 1, delayMs: 0 });
  const of = { taskId: "a", mapIndex: -1, attempt: "x" };
  stage.model.apply({ type: "queued", ...of }, 200);
  stage.model.apply({ type: "failed", ...of, at: 200, retry: false, retryAt: null, reason: null }, 200);
  expect(stage.model.groups?.begin(300)).toEqual([]);
  stage.store();
  expect(stage.model.groups?.begin(300)).toHaveLength(2);
});

test("what could not be stored is taken again, with what is to be told", () => {
  const stage = pair();
  stage.model.apply({ type: "queued", taskId: "a", mapIndex: -1, attempt: "x" }, 200);
  const of = { taskId: "a", mapIndex: -1, attempt: "x", at: 200 };
  stage.model.apply({ type: "failed", ...of, retry: false, retryAt: null, reason: null }, 200);
  const [changes, groups] = [stage.model.takeChanges(), stage.model.groups!.takeChanges()];
  expect(groups).toMatchObject([{ groupId: "g", state: "waiting", events: [{ event: "retry" }] }]);
  expect(stage.model.groups!.takeChanges()).toEqual([]);
  stage.model.giveBack(changes, { groups });
  expect(stage.model.groups!.takeChanges()).toEqual(groups);
});

test("a halted run tries no group again, and what waits for one does not run", () => {
  const stage = pair();
  stage.end("a", "failed");
  const halt = { type: "halted", at: stage.now, reason: "timed out", active: "failed" } as const;
  expect(stage.model.apply(halt, stage.now)).toBe(true);
  stage.store();
  expect(stage.state("out")).toBe("skipped");
  expect(stage.model.verdict().state).not.toBe("running");
  expect(stage.groups.get("g")).toMatchObject({ state: "failed", retryAt: null });
});

test("a task that was cleared after the group had ended opens it again, with new retries", () => {
  const stage = pair();
  stage.end("a", "succeeded");
  stage.end("b", "succeeded");
  expect(stage.state("out")).toBe("scheduled");
  stage.stored.set("b -1", { ...stage.stored.get("b -1")!, state: "none", attempt: null });
  stage.load();
  expect(stage.groups.get("g")).toMatchObject({ state: "open", tryNumber: 2, maxTries: 2 });
  stage.end("b", "failed");
  expect(stage.groups.get("g")).toMatchObject({ state: "waiting", tryNumber: 2 });
  expect(stage.told).toEqual(["g success 1", "g retry 2"]);
});

test("a failure that a person makes a success of while the group waits ends the wait", () => {
  const stage = pair();
  stage.end("a", "failed");
  for (const id of ["a", "b"]) {
    stage.stored.set(`${id} -1`, { ...stage.stored.get(`${id} -1`)!, state: "success", attempt: null });
  }
  stage.load();
  expect(stage.groups.get("g")).toMatchObject({ state: "success", retryAt: null });
  expect(stage.state("out")).toBe("scheduled");
});

test("a branch in a group rules out what is outside only with the try that counts", () => {
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
  expect([stage.state("one"), stage.state("two")]).toEqual(["none", "none"]);
  expect(stage.begin()).toBe(true);
  stage.end("branch", "succeeded", { skip: ["two"] });
  stage.end("bad", "succeeded");
  expect([stage.state("one"), stage.state("two")]).toEqual(["scheduled", "skipped"]);
});

test("a map in a group, with the task that makes its list, is expanded anew", () => {
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
    const [place] = stage.model.takeExpandable();
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

test("of a group around a map, the end is that of all its items, also of those to come", () => {
  const stage = new Stage(
    [task("each", [], { group: "g", map: "each" })],
    [group("g")],
    [{ mapId: "each", parent: null, over: { kind: "list", items: [1, 2, 3] }, limit: 2 }],
  );
  stage.model.takeExpandable();
  stage.model.apply({ type: "expanded", mapId: "each", parent: -1, length: 3 }, 1);
  stage.model.make(100, 1);
  stage.store();
  for (const mapIndex of [0, 1]) stage.end("each", "succeeded", { mapIndex });
  expect(stage.told).toEqual([]);
  stage.model.make(100, 1);
  stage.end("each", "failed", { mapIndex: 2 });
  expect(stage.told).toEqual(["g failure 1"]);
});
