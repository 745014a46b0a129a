/**
 * Drives the engine's run model and the reference interpreter through one random history of the same DAG, and compares
 * them after every event. The history has late and forged reports, lost attempts, deferrals, retries, and crashes, after
 * which the model is loaded again from its stored rows.
 */
import assert from "node:assert/strict";
import {
  type BranchVerdict,
  beginAgain,
  compileGraph,
  type EditableRow,
  type ExpansionRow,
  type GroupRow,
  haltedAs,
  type Instance,
  type InstanceRow,
  isFinished,
  isImpliedEnd,
  isListEnd,
  isUnexpanded,
  OCCUPYING,
  RunModel,
  type Scope,
  unexpandedIndex,
  type Wait,
} from "../../src/model/index.ts";
import type { RunEvent } from "../../src/model/run/run-event.ts";
import { rowOf } from "./instance-row.ts";
import { type Random, type RandomDag, randomOf } from "./random-dag.ts";
import { isIn, type ReferenceGroup } from "./reference-groups.ts";
import { type ReferenceEvent, type ReferenceInstance, ReferenceRun } from "./reference-interpreter.ts";
import { isEnd } from "./reference-rules.ts";
import { keyOf } from "./reference-shape.ts";
import { Ledger, unmetDemands } from "./success-rule.ts";

export interface History {
  readonly events: number;
  readonly crashes: number;
  readonly losses: number;
  readonly groupRetries: number;
  /** Group retries of one item of a mapped group. */
  readonly itemRetries: number;
  readonly edits: number;
  /** Maps whose list was computed again after an edit or in the next try of a group. */
  readonly folds: number;
  /** States that an edit undid because they no longer followed from the rest of the run. */
  readonly takenBack: number;
  readonly end: string;
  readonly states: ReadonlyMap<string, string>;
}

/**
 * `lossBudget`: how many attempts of one try may be lost before the try counts as failed. `edits`: the number of cancels,
 * clears and marks.
 */
export function liveThrough(dag: RandomDag, { edits = 0, lossBudget = 2 } = {}): History {
  return new Lockstep(dag, lossBudget).toTheEnd(edits);
}

const WAIT: Wait = { timeoutAt: null, onTimeout: "fail", keepsSlot: false };

const KINDS = ["any", "failed", "mark", "queue"] as const;

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
  /** The contents of the database: rows change only by `takeChanges`, `takeMapChanges` and edits. */
  readonly #stored = new Map<string, InstanceRow>();
  /** The names of rows that were set manually, and of rows that were ended by the list of their map. */
  readonly #marked = new Set<string>();
  readonly #listEnds = new Set<string>();
  readonly #ledger = new Ledger();
  /** The last try that the ledger has recorded as begun. */
  readonly #begun = new Map<string, number>();
  readonly #ready = new Set<string>();
  #model: RunModel;
  #now = 1_000;
  #attempts = 0;
  #isEdited = false;
  #counts = {
    events: 0,
    crashes: 0,
    losses: 0,
    groupRetries: 0,
    itemRetries: 0,
    edits: 0,
    folds: 0,
    takenBack: 0,
  };

  constructor(dag: RandomDag, lossBudget: number) {
    this.#dag = dag;
    this.#lossBudget = lossBudget;
    this.#random = randomOf(dag.seed ^ 0x5bd1e995);
    this.#reference = new ReferenceRun(dag.manifest);
    this.#model = RunModel.load(compileGraph(dag.manifest), []);
    this.#model.start(this.#now);
    this.#compare();
  }

  toTheEnd(edits: number): History {
    this.#isEdited = edits > 0;
    for (let steps = 0; this.#reference.end() === "running" || this.#counts.edits < edits; steps++) {
      assert(steps < 20_000, "the run does not end");
      const isEdited = this.#reference.end() !== "running" || this.#random.chance(0.1);
      if (isEdited && this.#counts.edits < edits) this.#edit();
      if (this.#reference.end() !== "running") continue;
      if (this.#random.chance(0.05)) this.#crash();
      if (this.#random.chance(0.1)) this.#forge();
      this.#step();
      this.#compare();
    }
    if (this.#reference.end() === "success") this.#checkSuccess();
    const states = new Map(this.#reference.instances().map((i) => [keyOf(i.taskId, i.path), i.state]));
    return { ...this.#counts, end: this.#reference.end(), states };
  }

  #checkSuccess(): void {
    const isListEnd = (i: ReferenceInstance) => this.#listEnds.has(`${i.taskId} ${this.#mapIndex(i)}`);
    const ended = this.#reference.instances().map((i) => {
      const { skip = [] } = this.#skips.get(keyOf(i.taskId, i.path)) ?? {};
      return { taskId: i.taskId, path: i.path, state: i.state, skip, isListEnd: isListEnd(i) };
    });
    assert.deepEqual(unmetDemands(this.#dag.manifest, ended, this.#ledger), [], "unmet demands");
  }

  /** Possibly ends the run; then clears or marks some of its tasks, or only resumes it. */
  #edit(): void {
    this.#counts.edits++;
    const end = this.#random.chance(0.4) ? this.#random.one(["failed", "failed", "success"] as const) : null;
    const kind = this.#random.one(KINDS);
    const state = this.#random.one(["success", "failed", "skipped"] as const);
    const before = [...this.#stored.values()].map((row): EditableRow => {
      const facts = { isMarked: this.#marked.has(nameOf(row)), isListEnd: this.#listEnds.has(nameOf(row)) };
      if (end === null || isFinished(row.state)) return { ...row, ...facts };
      const halted = { state: haltedAs(row.state, end), attempt: null, retryAt: null, resumedAttempt: null };
      return { ...row, ...facts, ...halted, isMarked: end === "success" };
    });
    const some = before.filter(
      (row) =>
        row.state !== "pending" &&
        (row.state !== "scheduled" || row.resumedAttempt != null) &&
        this.#random.chance(0.3),
    );
    const marked = kind === "mark" ? some.filter((row) => row.state !== state || isImpliedEnd(row)) : [];
    const rows = before.map((row) => {
      const facts = { attempt: null, retryAt: null, resumedAttempt: null, isMarked: true, isListEnd: false };
      return marked.includes(row) ? { ...row, state, ...facts } : row;
    });
    const isFailed = ({ state: each }: InstanceRow) => each === "failed" || each === "upstream_failed";
    const chosen = kind === "any" ? some : kind === "failed" ? rows.filter(isFailed) : [];
    const { graph } = this.#model;
    const [skips, expansions, groups] = [this.#skips, this.#expansions, this.#groups].map((rows) => [
      ...rows.values(),
    ]) as [BranchVerdict[], ExpansionRow[], GroupRow[]];
    const wholeGroups = kind === "failed";
    const again = beginAgain({ graph, rows, skips, expansions, groups }, chosen, { wholeGroups });
    this.#counts.takenBack += again.length - chosen.length;
    const keys = new Map([...this.#model.instances()].map((i) => [nameOf(rowOf(i)), this.#keyOf(i)]));
    const keyOfRow = (row: InstanceRow) => keys.get(nameOf(row))!;
    this.#record(
      { before, end, marked: rows.filter((_, n) => marked.includes(before[n]!)), again },
      keyOfRow,
    );
    for (const row of rows) this.#rewrite(again.includes(row) ? this.#cleared(row, keyOfRow(row)) : row);
    if (end !== null) this.#reference.happen({ what: "cancel", as: end });
    const mark = new Map(marked.map((row) => [keyOfRow(row), state]));
    this.#reference.reload();
    this.#reference.happen({ what: "edit", clear: chosen.map(keyOfRow), mark, wholeGroups });
    this.#load();
    this.#make();
    this.#compare();
  }

  #record(
    edit: Readonly<Record<"before" | "marked" | "again", readonly EditableRow[]>> & {
      readonly end: string | null;
    },
    keyOfRow: (row: InstanceRow) => string,
  ): void {
    // Ending a run as success marks every unfinished task. A task that fails with its run was active.
    for (const row of edit.before) {
      const isHalted = this.#stored.get(nameOf(row))!.state !== row.state;
      if (isHalted && (edit.end === "success" || row.state === "failed"))
        this.#ledger.mark(keyOfRow(row), row.state);
    }
    for (const row of edit.marked) this.#ledger.mark(keyOfRow(row), row.state);
    for (const row of edit.again) this.#ledger.clear(keyOfRow(row));
  }

  #cleared(row: EditableRow, key: string): EditableRow {
    this.#skips.delete(key);
    const isOut = OCCUPYING.has(row.state);
    const { retries } = this.#model.graph.byId.get(row.taskId)!.manifest;
    const facts = { maxTries: row.tryNumber + retries, infraLosses: 0, retryAt: null, resumedAttempt: null };
    const state = isOut ? "restarting" : "pending";
    return {
      ...row,
      ...facts,
      state,
      attempt: isOut ? row.attempt : null,
      isMarked: false,
      isListEnd: false,
    };
  }

  #rewrite({ isListEnd = false, isMarked, ...row }: EditableRow): void {
    this.#stored.set(nameOf(row), row);
    put(this.#marked, nameOf(row), isMarked);
    put(this.#listEnds, nameOf(row), isListEnd);
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
      this.#retryGroups(groups[chosen - movable.length - maps.length]!);
      return;
    }
    const map = maps[chosen - movable.length];
    const [event, same] = map ? this.#expand(map) : this.#choose(movable[chosen]!);
    this.#counts.events++;
    assert(this.#model.apply(event, this.#now), `the model rejects ${JSON.stringify(event)}`);
    this.#reference.happen(same);
    if (
      event.type === "succeeded" ||
      event.type === "failed" ||
      event.type === "skipped" ||
      event.type === "lost"
    ) {
      const state = this.#model.get(event.taskId, event.mapIndex)?.state;
      if (state && isFinished(state)) this.#ledger.end(keyOfEvent(same), state);
    }
    this.#make();
  }

  /** All groups that are due begin together with the first. */
  #retryGroups(first: ReferenceGroup): void {
    const model = this.#model.groups!;
    this.#now = Math.max(this.#now, this.#group(first).retryAt!);
    const groups = this.#reference.groups
      .waiting()
      .filter((group) => this.#group(group).retryAt! <= this.#now);
    for (const i of this.#reference.instances())
      if (groups.some((group) => isIn(i, group))) this.#ledger.clear(keyOf(i.taskId, i.path));
    this.#counts.groupRetries += groups.length;
    this.#counts.itemRetries += groups.filter(({ depth }) => depth > 0).length;
    assert(
      this.#model.repeat(model.begin(this.#now), this.#now, () => {}),
      "no group is retried",
    );
    this.#reference.happen({ what: "retryGroups", groups });
    this.#make();
  }

  /** The model's row of a group of the reference, or of one item of it. */
  #group({ id, path }: ReferenceGroup): GroupRow {
    const { scope } = this.#model.graph.groups.find((group) => group.id === id)!;
    return this.#model.groups!.get(id, this.#ordinal(scope, path))!;
  }

  /** Creates all instances at once: between two parts, a rule may decide without the rest. */
  #make(): void {
    if (this.#model.isGrowing)
      assert(this.#model.make(Number.POSITIVE_INFINITY, this.#now), "no instance was created");
    assert(!this.#model.isGrowing, "not all instances were created");
  }

  #expand({ map, path }: { readonly map: string; readonly path: readonly number[] }): Step {
    const scope = this.#model.graph.scopes.find(({ id }) => id === map)!;
    const parent = this.#ordinal(scope.parent, path);
    // Sometimes a different list than before, or a value that cannot be mapped over.
    const length =
      this.#isEdited && this.#random.chance(0.2) ? this.#random.below(4) : this.#dag.length(map, path);
    if (this.#isEdited && this.#random.chance(0.05))
      return [
        { type: "unmappable", mapId: map, parent, reason: "MAP_UNUSABLE: no list" },
        { what: "expand", map, path, length: null },
      ];
    return [
      { type: "expanded", mapId: map, parent, length },
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

  /** The model's map index of an instance of the reference. */
  #mapIndex({ path, taskId }: ReferenceInstance): number {
    const { scope } = this.#model.graph.byId.get(taskId)!;
    const depth = scope?.depth ?? 0;
    const ordinal = this.#ordinal(scope?.chain[path.length - 1] ?? null, path);
    return path.length === depth && depth > 0 ? ordinal : unexpandedIndex(depth, path.length, ordinal);
  }

  /** A possible next event of this instance, for the model and for the reference. */
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
      case "pending":
        return [
          { type: "gateOpened", ...base },
          { what: "openGate", of },
        ];
      case "scheduled": {
        assert(this.#ready.delete(of), `${of} is scheduled but was never reported as ready`);
        if (one.tries !== this.#begun.get(of)) this.#ledger.begin(of);
        this.#begun.set(of, one.tries);
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
      case "restarting":
        return [
          { type: "restarted", ...base },
          { what: "vanish", of },
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

  /** A running attempt ends its try, is lost, defers or reschedules. */
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

  /** Reports that the model has to reject: of superseded attempts, of tasks that are not running or that restart. */
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
      `the model accepts ${JSON.stringify(forged)} in state ${state}`,
    );
  }

  /** The process dies between two commits: the next process starts from the rows. */
  #crash(): void {
    this.#counts.crashes++;
    this.#reference.reload();
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
    this.#drainReady();
    this.#store();
  }

  #compare(): void {
    this.#drainReady();
    this.#store();
    const expected = new Map(this.#reference.instances().map((i) => [keyOf(i.taskId, i.path), i]));
    let unfinished = 0;
    let size = 0;
    for (const instance of this.#model.instances()) {
      size++;
      const key = this.#keyOf(instance);
      const { state, tries } = expected.get(key) ?? {};
      assert.equal(instance.state, state, `state of ${key}`);
      const { attempt, retryAt, infraLosses, tryNumber } = instance;
      // The placeholder of a map in a map has the highest try of all instances that were removed before it. If two maps are
      // folded at once, their order decides, so only the try numbers of the later items are compared.
      if (!isUnexpanded(instance) || instance.level === 0) assert.equal(tryNumber, tries, `try of ${key}`);
      const row = this.#stored.get(`${instance.node.id} ${instance.mapIndex}`);
      const isStored = row?.state === state && row?.tryNumber === tryNumber && row?.attempt === attempt;
      assert(isStored && row.retryAt === retryAt && row.infraLosses === infraLosses, `stored row of ${key}`);
      if (!isEnd(expected.get(key)!.state)) unfinished++;
    }
    for (const group of this.#reference.groups.all()) {
      const { depth, id, path, retries, state, tries, triesBefore } = group;
      const { mapIndex, maxTries, state: own, tryNumber } = this.#group(group);
      const name = keyOf(`group ${id}`, path);
      assert.equal(own, state, `state of ${name}`);
      assert.equal(tryNumber - (maxTries - retries), tries - triesBefore, `try of ${name}`);
      // In a map in a map, a different item may have this map index after the map was expanded again.
      if (depth < 2) assert.equal(tryNumber, tries, `try number of ${name}`);
      const stored = this.#groups.get(`${id} ${mapIndex}`);
      assert.equal(stored?.state ?? "open", state, `stored state of ${name}`);
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

  #drainReady(): void {
    for (const instance of this.#model.drainReady()) this.#ready.add(this.#keyOf(instance));
  }

  #keyOf({ level, node, ordinal }: Instance): string {
    const scope = node.scope?.chain[level - 1];
    return keyOf(node.id, scope ? this.#model.expansions.path(scope, ordinal) : []);
  }

  #store(): void {
    const maps = this.#model.drainMapChanges();
    const taking = (maps?.dropped ?? []).filter((row) => OCCUPYING.has(this.#stored.get(nameOf(row))!.state));
    assert.deepEqual(
      maps?.released.map((one) => nameOf(rowOf(one))) ?? [],
      taking.map(nameOf),
      "slots of dropped instances",
    );
    for (const { mapIndex, taskId } of maps?.dropped ?? []) {
      assert(this.#stored.delete(`${taskId} ${mapIndex}`), `no row of ${taskId} ${mapIndex} to drop`);
      for (const [key, skip] of this.#skips)
        if (skip.taskId === taskId && skip.mapIndex === mapIndex) this.#skips.delete(key);
    }
    this.#counts.folds += maps?.closed.length ?? 0;
    for (const { mapId, parent } of maps?.closed ?? []) this.#expansions.delete(`${mapId} ${parent}`);
    for (const row of maps?.opened ?? []) this.#expansions.set(`${row.mapId} ${row.parent}`, row);
    for (const row of this.#model.groups?.drainChanges() ?? [])
      this.#groups.set(`${row.groupId} ${row.mapIndex}`, row);
    for (const { instance, from, fromAttempt, fromMaxTries } of this.#model.drainChanges()) {
      const key = `${instance.node.id} ${instance.mapIndex}`;
      // The instance began again: its branch decision is dropped.
      if (from !== null && fromMaxTries !== instance.maxTries) this.#skips.delete(this.#keyOf(instance));
      const row = this.#stored.get(key);
      assert.equal(row?.state ?? null, from, `previous state in the change of ${key}`);
      assert.equal(row?.attempt ?? null, fromAttempt, `previous attempt in the change of ${key}`);
      this.#stored.set(key, rowOf(instance));
      this.#marked.delete(key);
      put(this.#listEnds, key, isListEnd(instance.reason));
    }
  }
}

function put(set: Set<string>, key: string, isIn: boolean): void {
  if (isIn) set.add(key);
  else set.delete(key);
}

function keyOfEvent(event: ReferenceEvent): string {
  return "of" in event ? event.of : "";
}

function isMovable(instance: ReferenceInstance): boolean {
  return instance.state !== "pending" && !isEnd(instance.state);
}

function nameOf({ mapIndex, taskId }: Pick<InstanceRow, "mapIndex" | "taskId">): string {
  return `${taskId} ${mapIndex}`;
}
