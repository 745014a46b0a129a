/**
 * Drives the engine's run model and the reference interpreter through one random history of the same DAG, and compares
 * them after every event. The history has everything that can happen: late and forged reports, lost attempts, deferrals,
 * retries, and crashes, after which the model is loaded again from what it had stored.
 */
import assert from "node:assert/strict";
import {
  type BranchVerdict,
  compileGraph,
  type ExpansionRow,
  type GroupRow,
  type Instance,
  type InstanceRow,
  RunModel,
  type Scope,
  unexpandedIndex,
  type Wait,
} from "../../src/model/index.ts";
import type { RunEvent } from "../../src/model/run-event.ts";
import { type Random, type RandomDag, randomOf } from "./random-dag.ts";
import { keyOf, type ReferenceEvent, type ReferenceInstance, ReferenceRun } from "./reference-interpreter.ts";
import { isEnd } from "./reference-rules.ts";

export interface History {
  readonly events: number;
  readonly crashes: number;
  readonly losses: number;
  readonly groupRetries: number;
  readonly end: string;
  readonly states: ReadonlyMap<string, string>;
}

/** `lossBudget`: how often an attempt of one try may be lost before the try counts as failed. */
export function liveThrough(dag: RandomDag, { lossBudget = 2 } = {}): History {
  return new Lockstep(dag, lossBudget).toTheEnd();
}

const WAIT: Wait = { timeoutAt: null, onTimeout: "fail", keepsSlot: false };

type Step = readonly [RunEvent, ReferenceEvent];

interface Base {
  readonly taskId: string;
  readonly mapIndex: number;
  readonly attempt: string;
  readonly at: number;
}

class Lockstep {
  readonly #dag: RandomDag;
  readonly #lossBudget: number;
  readonly #random: Random;
  readonly #reference: ReferenceRun;
  readonly #skips = new Map<string, BranchVerdict>();
  readonly #expansions = new Map<string, ExpansionRow>();
  readonly #groups = new Map<string, GroupRow>();
  /** What a database would hold: rows change only by what `takeChanges` and `takeMapChanges` say. */
  readonly #stored = new Map<string, InstanceRow>();
  readonly #ready = new Set<string>();
  #model: RunModel;
  #now = 1_000;
  #attempts = 0;
  #counts = { events: 0, crashes: 0, losses: 0, groupRetries: 0 };

  constructor(dag: RandomDag, lossBudget: number) {
    this.#dag = dag;
    this.#lossBudget = lossBudget;
    this.#random = randomOf(dag.seed ^ 0x5bd1e995);
    this.#reference = new ReferenceRun(dag.manifest);
    this.#model = RunModel.load(compileGraph(dag.manifest), []);
    this.#model.start(this.#now);
    this.#compare();
  }

  toTheEnd(): History {
    for (let steps = 0; this.#reference.end() === "running"; steps++) {
      assert(steps < 2_000, "the run does not come to an end");
      if (this.#random.chance(0.05)) this.#crash();
      if (this.#random.chance(0.1)) this.#forge();
      this.#step();
      this.#compare();
    }
    const states = new Map(this.#reference.instances().map((i) => [keyOf(i.taskId, i.path), i.state]));
    return { ...this.#counts, end: this.#reference.end(), states };
  }

  #step(): void {
    const movable = this.#reference
      .instances()
      .filter((i) => isMovable(i) || this.#reference.waitsFor(i) !== null);
    const maps = this.#reference.expandable();
    const groups = this.#reference.groups.waiting();
    this.#now++;
    const chosen = this.#random.below(movable.length + maps.length + groups.length);
    if (chosen >= movable.length + maps.length) {
      this.#retryGroups(groups[chosen - movable.length - maps.length]!.id);
      return;
    }
    const map = maps[chosen - movable.length];
    const [event, same] = map ? this.#expand(map) : this.#choose(movable[chosen]!);
    this.#counts.events++;
    assert(this.#model.apply(event, this.#now), `the model refuses ${JSON.stringify(event)}`);
    this.#reference.happen(same);
    this.#make();
  }

  /** With one group, all begin whose time has come. */
  #retryGroups(id: string): void {
    const model = this.#model.groups!;
    this.#now = Math.max(this.#now, model.get(id)!.retryAt!);
    const isDue = (each: string) => model.get(each)!.retryAt! <= this.#now;
    const groups = this.#reference.groups
      .waiting()
      .map((group) => group.id)
      .filter(isDue);
    this.#counts.groupRetries += groups.length;
    assert(
      this.#model.repeat(model.begin(this.#now), this.#now, () => {}),
      "no group begins again",
    );
    this.#reference.happen({ what: "retryGroups", groups });
    this.#make();
  }

  /** All at once: in pieces, a rule may answer before it has seen the rest. */
  #make(): void {
    if (this.#model.isGrowing)
      assert(this.#model.make(Number.POSITIVE_INFINITY, this.#now), "nothing is made");
    assert(!this.#model.isGrowing, "not all is made");
  }

  #expand({ map, path }: { readonly map: string; readonly path: readonly number[] }): Step {
    const scope = this.#model.graph.scopes.find(({ id }) => id === map)!;
    const length = this.#dag.length(map, path);
    return [
      { type: "expanded", mapId: map, parent: this.#ordinal(scope.parent, path), length },
      { what: "expand", map, path, length },
    ];
  }

  #ordinal(scope: Scope | null, path: readonly number[]): number {
    let ordinal = -1;
    for (const each of scope?.chain ?? []) {
      const expansion = this.#model.expansions.find({ scope: each, parent: ordinal })!;
      ordinal = expansion.base + path[each.depth - 1]!;
    }
    return ordinal;
  }

  /** Of an instance of the reference: how the model calls it. */
  #mapIndex({ path, taskId }: ReferenceInstance): number {
    const { scope } = this.#model.graph.byId.get(taskId)!;
    const depth = scope?.depth ?? 0;
    const ordinal = this.#ordinal(scope?.chain[path.length - 1] ?? null, path);
    return path.length === depth && depth > 0 ? ordinal : unexpandedIndex(depth, path.length, ordinal);
  }

  /** Something that can happen to this instance now, in both languages. */
  #choose(one: ReferenceInstance): Step {
    const { taskId, path } = one;
    const mapIndex = this.#mapIndex(one);
    const of = keyOf(taskId, path);
    const base = {
      taskId,
      mapIndex,
      attempt: this.#model.get(taskId, mapIndex)?.attempt ?? "",
      at: this.#now,
    };
    switch (one.state) {
      case "none":
        return [
          { type: "gateOpened", ...base },
          { what: "openGate", of },
        ];
      case "scheduled": {
        assert(this.#ready.delete(of), `${of} is scheduled but was never handed out as ready`);
        return [
          { type: "queued", ...base, attempt: `a${++this.#attempts}` },
          { what: "queue", of },
        ];
      }
      case "up_for_retry":
      case "up_for_reschedule":
        return [
          { type: "retryDue", ...base },
          { what: "wake", of },
        ];
      case "queued":
        if (this.#random.chance(0.6))
          return [
            { type: "started", ...base },
            { what: "start", of },
          ];
        if (this.#random.chance(0.1))
          return [
            { type: "unqueued", ...base },
            { what: "resume", of },
          ];
        return this.#report(one, base);
      case "deferred":
        if (this.#random.chance(0.7))
          return [
            { type: "resumed", ...base },
            { what: "resume", of },
          ];
        return this.#end(one, base);
      default:
        return this.#report(one, base);
    }
  }

  /** A running attempt ends its try, is lost, or lets go of its worker. */
  #report(one: ReferenceInstance, base: Base): Step {
    const of = keyOf(one.taskId, one.path);
    if (this.#random.chance(0.1)) {
      this.#counts.losses++;
      const budget = this.#lossBudget;
      return [
        { type: "lost", ...base, reason: "worker gone", budget, retryAt: null },
        { what: "lose", of, budget },
      ];
    }
    if (this.#random.chance(0.1))
      return [
        { type: "deferred", wait: WAIT, ...base },
        { what: "defer", of },
      ];
    if (this.#random.chance(0.05)) {
      return [
        { type: "rescheduled", ...base, retryAt: this.#now + 5 },
        { what: "reschedule", of },
      ];
    }
    return this.#end(one, base);
  }

  #end(one: ReferenceInstance, base: Base): Step {
    const of = keyOf(one.taskId, one.path);
    const { tries, skip } = this.#dag.scripts.get(one.taskId)!;
    const outcome = tries[Math.min(one.tries, tries.length) - 1]!;
    if (outcome === "success") {
      const { mapIndex, taskId } = base;
      this.#skips.set(of, { taskId, mapIndex, skip });
      return [
        { type: "succeeded", ...base, skip },
        { what: "succeed", of, skip },
      ];
    }
    if (outcome === "skip")
      return [
        { type: "skipped", ...base, reason: null },
        { what: "skip", of },
      ];
    const retry = outcome === "failure";
    const retryAt = this.#now + this.#random.below(10);
    return [
      { type: "failed", ...base, retry, retryAt, reason: "scripted" },
      { what: "fail", of, retry },
    ];
  }

  /** Reports that nobody may believe: of attempts long gone, of tasks that are not running. */
  #forge(): void {
    const one = this.#random.one([...this.#model.instances()]);
    const base = { taskId: one.node.id, mapIndex: one.mapIndex, at: this.#now };
    const attempt = `a${this.#random.below(this.#attempts + 1)}`;
    const { state } = one;
    if (one.attempt === attempt && ["queued", "running", "deferred"].includes(state)) return;
    const forged: RunEvent = this.#random.chance(0.5)
      ? { type: "succeeded", ...base, attempt, skip: this.#dag.manifest.tasks.map((task) => task.taskId) }
      : { type: "failed", ...base, attempt, retry: false, retryAt: null, reason: "forged" };
    assert(
      !this.#model.apply(forged, this.#now),
      `the model believes ${JSON.stringify(forged)} in state ${state}`,
    );
  }

  /** The process dies between two commits: the next one starts from the rows. */
  #crash(): void {
    this.#counts.crashes++;
    this.#load();
    this.#make();
    this.#compare();
  }

  #load(): void {
    this.#model = RunModel.load(this.#model.graph, [...this.#stored.values()], {
      skips: [...this.#skips.values()],
      expansions: [...this.#expansions.values()],
      groups: [...this.#groups.values()],
    });
    this.#model.start(this.#now);
    this.#ready.clear();
    this.#takeReady();
    this.#store();
  }

  #compare(): void {
    this.#takeReady();
    this.#store();
    const expected = new Map(this.#reference.instances().map((i) => [keyOf(i.taskId, i.path), i]));
    let unfinished = 0;
    let size = 0;
    for (const instance of this.#model.instances()) {
      size++;
      const key = this.#keyOf(instance);
      const { state, tries } = expected.get(key) ?? {};
      assert.equal(instance.state, state, `state of ${key}`);
      assert.equal(instance.tryNumber, tries, `try of ${key}`);
      const row = this.#stored.get(`${instance.node.id} ${instance.mapIndex}`);
      const { attempt, retryAt, infraLosses } = instance;
      const isStored = row?.state === state && row?.tryNumber === tries && row?.attempt === attempt;
      assert(isStored && row.retryAt === retryAt && row.infraLosses === infraLosses, `stored row of ${key}`);
      if (!isEnd(expected.get(key)!.state)) unfinished++;
    }
    for (const { id, state, tries } of this.#reference.groups.all()) {
      const group = this.#model.groups!.get(id)!;
      assert.equal(group.state, state, `state of group ${id}`);
      assert.equal(group.tryNumber, tries, `try of group ${id}`);
      const stored = this.#groups.get(id);
      assert.equal(stored?.state ?? "open", state, `stored state of group ${id}`);
    }
    assert.equal(size, expected.size, "number of instances");
    assert.equal(this.#stored.size, size, "number of stored rows");
    assert.equal(this.#model.counts.unfinished, unfinished, "unfinished");
    const verdict = this.#model.verdict();
    assert.equal(
      verdict.state === "failed" ? verdict.reason : verdict.state,
      this.#reference.end(),
      "verdict",
    );
  }

  #takeReady(): void {
    for (const instance of this.#model.takeReady()) this.#ready.add(this.#keyOf(instance));
  }

  #keyOf({ level, node, ordinal }: Instance): string {
    const scope = node.scope?.chain[level - 1];
    return keyOf(node.id, scope ? this.#model.expansions.path(scope, ordinal) : []);
  }

  #store(): void {
    const maps = this.#model.takeMapChanges();
    for (const { mapIndex, taskId } of maps?.dropped ?? [])
      assert(this.#stored.delete(`${taskId} ${mapIndex}`), `no row of ${taskId} ${mapIndex} to drop`);
    for (const { mapId, parent } of maps?.closed ?? []) this.#expansions.delete(`${mapId} ${parent}`);
    for (const row of maps?.opened ?? []) this.#expansions.set(`${row.mapId} ${row.parent}`, row);
    for (const row of this.#model.groups?.takeChanges() ?? []) this.#groups.set(row.groupId, row);
    for (const { instance, from, fromAttempt, fromMaxTries } of this.#model.takeChanges()) {
      const key = `${instance.node.id} ${instance.mapIndex}`;
      // It began again: what it gave is forgotten.
      if (from !== null && fromMaxTries !== instance.maxTries) this.#skips.delete(this.#keyOf(instance));
      const row = this.#stored.get(key);
      assert.equal(row?.state ?? null, from, `the change of ${key} leaves another state than the stored one`);
      assert.equal(row?.attempt ?? null, fromAttempt, `the change of ${key} speaks for another attempt`);
      this.#stored.set(key, rowOf(instance));
    }
  }
}

function isMovable(instance: ReferenceInstance): boolean {
  return instance.state !== "none" && !isEnd(instance.state);
}

function rowOf(instance: Instance): InstanceRow {
  const { mapIndex, state, tryNumber, maxTries, attempt, retryAt, infraLosses } = instance;
  return { taskId: instance.node.id, mapIndex, state, tryNumber, maxTries, attempt, retryAt, infraLosses };
}
