/**
 * Reference of a run, implemented in the slowest and simplest way: after every event it evaluates every task again, from
 * the states of all its upstream. Written from the documented rules, it shares no code with the engine, which must agree
 * with it after every event.
 */
import type { DagManifest, MapManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { type ReferenceGroup, ReferenceGroups } from "./reference-groups.ts";
import { isEnd, judgeByRule, type ReferenceState, type Verdict } from "./reference-rules.ts";
import { keyOf, type Placed, ReferenceShape, startsWith } from "./reference-shape.ts";

export interface ReferenceInstance extends Placed {
  state: ReferenceState;
  tries: number;
  /** Number of tries before the instance was last cleared. */
  triesBefore: number;
  losses: number;
  isPastFine: boolean;
  /** The end follows from other instances: no attempt reported it, and no user set it. */
  isImplied: boolean;
  /** Ended by the list of its map, which was empty or unusable. */
  isListEnd: boolean;
  /** Set when the current try has deferred and resumes after its wait. */
  isHalfway: boolean;
  /** The tasks that it skips as a branch. */
  skip: readonly string[];
}

export type ReferenceEvent =
  | {
      readonly what: "queue" | "start" | "defer" | "resume" | "reschedule" | "wake" | "openGate" | "vanish";
      readonly of: string;
    }
  | { readonly what: "succeed"; readonly of: string; readonly skip: readonly string[] }
  | { readonly what: "skip"; readonly of: string }
  | { readonly what: "fail"; readonly of: string; readonly retry: boolean }
  | { readonly what: "lose"; readonly of: string; readonly budget: number }
  | {
      readonly what: "expand";
      readonly map: string;
      readonly path: readonly number[];
      /** null: the value cannot be mapped over. */
      readonly length: number | null;
    }
  /** A user ends the run, including teardowns. As success, this also covers the tasks that have not begun. */
  | { readonly what: "cancel"; readonly as: "success" | "failed" }
  /** A user clears or marks instances, and the run continues. */
  | {
      readonly what: "edit";
      readonly clear: readonly string[];
      readonly mark: ReadonlyMap<string, "success" | "failed" | "skipped">;
      readonly wholeGroups: boolean;
    }
  /** The next try of these groups begins. */
  | { readonly what: "retryGroups"; readonly groups: readonly ReferenceGroup[] };

export class ReferenceRun {
  readonly #shape: ReferenceShape;
  #instances: ReferenceInstance[];
  /** The expansions by map and path, with the try number from which their instances continue. */
  readonly #expanded = new Map<string, Expansion>();
  /** By map: the highest try of the instances removed when it, or an enclosing map, was folded. */
  readonly #folded = new Map<string, number>();
  /** Number of ends of instances, expansions and folds. */
  #turns = 0;
  readonly groups: ReferenceGroups;

  constructor(manifest: DagManifest) {
    this.#shape = new ReferenceShape(manifest);
    this.#instances = this.#shape.tasks.map((task) => fresh(task.taskId, [], 0));
    this.groups = new ReferenceGroups(manifest);
    this.groups.exist(this.#instances);
    this.#evaluateAll();
  }

  instances(): readonly ReferenceInstance[] {
    return this.#instances;
  }

  /** "slots": ready to be queued. "past": waits for the previous run. */
  waitsFor(instance: ReferenceInstance): "slots" | "past" | null {
    if (instance.state === "scheduled") return "slots";
    if (instance.state !== "pending" || this.#shape.mapAhead(instance)) return null;
    return this.#judge(instance) === "run" ? "past" : null;
  }

  /** Maps whose list is available and whose length is still unknown. */
  expandable(): { readonly map: string; readonly path: readonly number[] }[] {
    return this.#shape.maps.flatMap((map) =>
      this.#places(map)
        .filter((path) => this.#judgeMap(map, path) === "run" && this.#wantsLength(map, path))
        .map((path) => ({ map: map.mapId, path })),
    );
  }

  /** The run was loaded again: instances that are not scheduled yet check the previous run again. */
  reload(): void {
    for (const i of this.#instances) if (i.state === "pending") i.isPastFine = false;
  }

  happen(event: ReferenceEvent): void {
    this.#apply(event);
    if (event.what !== "cancel") this.#evaluateAll();
  }

  /** An instance with an implied end that no longer follows from the rest of the run: it may run now or later. */
  #unfounded(): ReferenceInstance | undefined {
    return this.#instances.find((i) => ["run", "wait"].includes(this.#verdictOnEnd(i) ?? ""));
  }

  /** An instance whose implied end, or whose scheduled state, changes; with the new state. */
  #otherwise(): { readonly i: ReferenceInstance; readonly state: ReferenceState } | undefined {
    for (const i of this.#shape.tasks.flatMap(({ taskId }) =>
      this.#instances.filter((i) => i.taskId === taskId),
    )) {
      const verdict = this.#isLetThrough(i) ? this.#judge(i) : this.#verdictOnEnd(i);
      if (verdict === null || verdict === i.state || verdict === "run") continue;
      return { i, state: verdict === "wait" ? "pending" : verdict };
    }
    return undefined;
  }

  #isLetThrough(i: ReferenceInstance): boolean {
    return i.state === "scheduled" && !i.isHalfway;
  }

  /** The current verdict on an instance with an implied end; null: its end is not implied. */
  #verdictOnEnd(i: ReferenceInstance): Verdict | null {
    if (!i.isImplied || !isEnd(i.state)) return null;
    if (this.#isRuledOut(i)) return "skipped";
    const map = this.#shape.mapAhead(i);
    const own = map && !this.#shape.isAlone(i) ? "run" : this.#judge(i);
    const verdict = own === "run" && map ? this.#judgeMap(map, i.path) : own;
    return verdict === "run" && i.isListEnd ? (i.state as Verdict) : verdict;
  }

  end(): "running" | "success" | "task_failure" | "all_tasks_deadlocked" {
    if (this.groups.waiting().length > 0) return "running";
    const unfinished = this.#instances.filter((i) => !isEnd(i.state));
    if (unfinished.length > 0) {
      const canMove = unfinished.some((i) => i.state !== "pending" || this.waitsFor(i) !== null);
      return canMove || this.expandable().length > 0 ? "running" : "all_tasks_deadlocked";
    }
    const deciding = this.#shape.decidingTasks();
    const failed = this.#instances.filter((i) => i.state === "failed" || i.state === "upstream_failed");
    return failed.some((i) => deciding.has(i.taskId)) ? "task_failure" : "success";
  }

  #apply(event: ReferenceEvent): void {
    if (event.what === "cancel") {
      for (const i of this.#instances) {
        if (isEnd(i.state)) continue;
        const hasBegun = ["running", "deferred", "up_for_reschedule", "up_for_retry", "restarting"];
        const isActive = hasBegun.includes(i.state) && (i.state !== "up_for_retry" || event.as === "failed");
        this.#end(i, isActive ? event.as : "skipped", { isImplied: !isActive && event.as === "failed" });
      }
      return;
    }
    if (event.what === "edit") {
      for (const i of this.#instances) {
        const state = event.mark.get(keyOf(i.taskId, i.path));
        if (state !== undefined) this.#end(i, state, { isImplied: false });
      }
      this.#clear(event.clear, event.wholeGroups);
      this.groups.judgeAgain();
      this.#repeatRulings();
      return;
    }
    if (event.what === "retryGroups") {
      for (const i of this.groups.beginAgain(event.groups, this.#instances)) {
        this.#beginAgain(i);
      }
      this.#repeatRulings();
      return;
    }
    if (event.what === "expand") {
      this.#expand(event);
      return;
    }
    const i = this.#instances.find((one) => keyOf(one.taskId, one.path) === event.of)!;
    switch (event.what) {
      case "queue":
        i.state = "queued";
        break;
      case "start":
        i.state = "running";
        break;
      case "defer":
        i.state = "deferred";
        break;
      case "reschedule":
        i.isHalfway = false;
        i.state = "up_for_reschedule";
        break;
      case "resume":
        if (i.state === "deferred") i.isHalfway = true;
        i.state = "scheduled";
        break;
      case "wake":
        // Its upstream may have begun again meanwhile.
        if (i.state === "up_for_retry" && this.#judge(i) !== "run") {
          i.state = "pending";
          i.isHalfway = false;
        } else {
          if (i.state === "up_for_retry") this.#newTry(i);
          i.state = "scheduled";
        }
        break;
      case "openGate":
        i.isPastFine = true;
        break;
      case "succeed":
        i.state = "success";
        i.skip = event.skip;
        this.#ruleOut(i, ["pending", "scheduled"]);
        break;
      case "skip":
        this.#end(i, "skipped", { isImplied: false });
        break;
      case "vanish":
        this.#beginAgain(i);
        i.isPastFine = true;
        break;
      case "fail":
        this.#fail(i, event.retry);
        break;
      case "lose":
        i.losses++;
        if (i.losses > event.budget) this.#fail(i, true);
        else i.state = "scheduled";
        break;
    }
  }

  /** Also clears the setups, teardowns and group mates of the cleared tasks, and implied ends that no longer follow. */
  #clear(keys: readonly string[], wholeGroups: boolean): void {
    const open = this.#instances.filter((i) => keys.includes(keyOf(i.taskId, i.path)));
    const cleared = new Set<ReferenceInstance>();
    const judgedAgain = new Set<ReferenceInstance>();
    this.groups.reopen(this.#instances);
    for (;;) {
      const next = open.pop() ?? this.#unfounded();
      const other = next ? undefined : this.#otherwise();
      if (next && !cleared.has(next)) {
        cleared.add(next);
        const isBegun = ["queued", "running", "restarting"].includes(next.state);
        this.#beginAgain(next);
        if (isBegun) Object.assign(next, { state: "restarting", isPastFine: true });
        for (const each of this.#instances) {
          if (each.state === "pending") continue;
          const isMate = wholeGroups && this.groups.areMates(next, each);
          if (isMate || this.#isNeeded(each, next)) open.push(each);
        }
      } else if (other) {
        judgedAgain.add(other.i);
        this.#beginAgain(other.i);
        this.groups.reopen(this.#instances);
        if (other.state !== "pending") this.#end(other.i, other.state, { isImplied: true });
      } else if (!next) break;
      this.groups.reopen(this.#instances);
    }
    for (const i of judgedAgain) if (isEnd(i.state)) this.#beginAgain(i);
    this.groups.reopen(this.#instances);
  }

  /** Whether `other` is a finished setup whose scope contains the task, or a teardown of such a setup. */
  #isNeeded(other: ReferenceInstance, by: ReferenceInstance): boolean {
    const { role, taskId, teardown } = this.#shape.task(other);
    const setup = role === "setup" ? taskId : teardown?.of;
    if (setup === undefined || (role === "setup" && !isEnd(other.state))) return false;
    const task = this.#shape.task(by);
    return (task.taskId === setup || this.#shape.isInScope(task, setup)) && this.#shape.isBeside(by, other);
  }

  #isRuledOut(i: ReferenceInstance): boolean {
    return this.#instances.some(
      (branch) =>
        branch.state === "success" &&
        branch.skip.includes(i.taskId) &&
        this.#shape.isWithin(branch, i) &&
        !this.groups.isHidden(branch, [i.taskId]),
    );
  }

  #fail(i: ReferenceInstance, retry: boolean): void {
    const hasTryLeft = i.tries - i.triesBefore < 1 + this.#shape.task(i).retries;
    i.state = retry && hasTryLeft ? "up_for_retry" : "failed";
  }

  #ruleOut(branch: ReferenceInstance, from: readonly ReferenceState[]): void {
    for (const other of this.#instances) {
      const isMeant = branch.skip.includes(other.taskId) && this.#shape.isWithin(branch, other);
      if (isMeant && from.includes(other.state) && !this.groups.isHidden(branch, [other.taskId]))
        this.#end(other, "skipped", { isImplied: true });
    }
  }

  /** Applies the decisions of branches again, after a group has ended or begins again. */
  #repeatRulings(): void {
    for (const i of this.#instances) if (i.state === "success") this.#ruleOut(i, ["pending"]);
  }

  #newTry(i: ReferenceInstance): void {
    i.tries++;
    i.losses = 0;
    i.isHalfway = false;
  }

  #end(i: ReferenceInstance, state: ReferenceState, { isImplied }: { readonly isImplied: boolean }): void {
    this.#turns++;
    Object.assign(i, { state, isImplied, isListEnd: false });
  }

  #beginAgain(i: ReferenceInstance): void {
    const facts = { isPastFine: false, isImplied: false, isListEnd: false, isHalfway: false, skip: [] };
    Object.assign(i, { state: "pending", triesBefore: i.tries, ...facts });
  }

  /**
   * Evaluates maps without a list, then tasks, upstream before downstream, so that a task sees all effects of the event on
   * its upstream. Repeats until nothing changes. Then ends the groups whose tasks have all ended, for the tasks outside.
   */
  #evaluateAll(): void {
    this.#evaluateTasks();
    while (this.groups.judge(this.#instances)) {
      this.#repeatRulings();
      this.#evaluateTasks();
    }
  }

  #evaluateTasks(): void {
    for (let before = -1; before !== this.#turns; ) {
      before = this.#turns;
      for (const map of this.#shape.maps) this.#evaluateMap(map);
      for (const task of this.#shape.tasks) this.#evaluate(task);
    }
  }

  #evaluateMap(map: MapManifest): void {
    const inOrder = [...this.#expanded.values()].sort((a, b) => `${a.path}`.localeCompare(`${b.path}`));
    for (const { mapId, path } of inOrder) {
      if (mapId !== map.mapId || !this.#expanded.has(keyOf(mapId, path))) continue;
      if (this.#judgeMap(map, path) === "run")
        for (const i of this.#standIns(mapId, path)) this.#spread(i, mapId);
      else {
        this.#fold(mapId, path);
        this.#endStandIns(map, path);
      }
    }
    for (const path of this.#places(map)) this.#endStandIns(map, path);
  }

  /** Ends the placeholders of a map that will have no list. */
  #endStandIns(map: MapManifest, path: readonly number[]): void {
    const verdict = this.#judgeMap(map, path);
    if (verdict === "wait" || verdict === "run") return;
    for (const i of this.#standIns(map.mapId, path)) this.#end(i, verdict, { isImplied: true });
  }

  #evaluate(task: TaskManifest): void {
    for (const i of this.#instances.filter((one) => one.taskId === task.taskId && one.state === "pending")) {
      const isUnexpanded = this.#shape.mapAhead(i) !== undefined;
      if (isUnexpanded && !this.#shape.isAlone(i)) continue;
      const verdict = this.#judge(i);
      if (verdict === "wait") continue;
      if (verdict !== "run") {
        this.#end(i, verdict, { isImplied: true });
      } else if (!isUnexpanded && (i.isPastFine || !isGated(task))) {
        this.#newTry(i);
        i.state = "scheduled";
      }
    }
  }

  #judge(i: ReferenceInstance): Verdict {
    const { guards, rule } = this.#shape.upstreamOf(i, this.#instances);
    const seen = (other: ReferenceInstance) => this.groups.seen(other, [i.taskId]);
    const guarded = judgeByRule("allSuccess", { states: guards.map(seen), setups: [] });
    if (guarded !== "run") return guarded;
    return judgeByRule(this.#shape.task(i).rule, {
      states: rule.map(seen),
      setups: rule.filter((other) => this.#shape.isSetup(other.taskId)).map(seen),
    });
  }

  #judgeMap(map: MapManifest, path: readonly number[]): Verdict {
    const members = this.#shape.members(map.mapId);
    const sources = this.#shape.sourcesOf(map, path, this.#instances);
    const states = sources.map((other) => this.groups.seen(other, members));
    return judgeByRule("allSuccess", { states, setups: [] });
  }

  /** The paths at which a map is not expanded yet: one in each item of its parent map. */
  #places(map: MapManifest): (readonly number[])[] {
    const members = this.#shape.members(map.mapId);
    const depth = this.#shape.chain(map.mapId).length - 1;
    const paths = this.#instances
      .filter((i) => members.includes(i.taskId) && i.path.length === depth)
      .map((i) => i.path);
    return [...new Map(paths.map((path) => [`${path}`, path])).values()].filter(
      (path) => !this.#expanded.has(keyOf(map.mapId, path)),
    );
  }

  /** The unfinished placeholders of the map's tasks. */
  #standIns(mapId: string, path: readonly number[]): ReferenceInstance[] {
    return this.#instances.filter(
      (i) => i.state === "pending" && this.#shape.mapAhead(i)?.mapId === mapId && `${i.path}` === `${path}`,
    );
  }

  #wantsLength(map: MapManifest, path: readonly number[]): boolean {
    return this.#standIns(map.mapId, path).some((i) => !this.#shape.isAlone(i) || this.#judge(i) === "run");
  }

  #expand({ length, map, path }: Extract<ReferenceEvent, { what: "expand" }>): void {
    const standIns = this.#standIns(map, path);
    if (length) {
      this.#expanded.set(keyOf(map, path), { mapId: map, path, length, tries: this.#folded.get(map) ?? 0 });
      for (const i of standIns) this.#spread(i, map);
      return;
    }
    for (const i of standIns) {
      this.#end(i, length === 0 ? "skipped" : "upstream_failed", { isImplied: true });
      i.isListEnd = true;
    }
  }

  #spread(standIn: ReferenceInstance, mapId: string): void {
    this.#turns++;
    const { length, tries } = this.#expanded.get(keyOf(mapId, standIn.path))!;
    const others = this.#instances.filter((i) => i !== standIn);
    const made = Array.from({ length }, (_, index) => fresh(standIn.taskId, [...standIn.path, index], tries));
    this.#become([...others, ...made]);
  }

  /** Undoes an expansion whose list is computed again, unless one of its instances has begun or ended. */
  #fold(mapId: string, path: readonly number[]): void {
    const members = this.#shape.members(mapId);
    const isInside = (i: Placed) =>
      members.includes(i.taskId) && i.path.length > path.length && startsWith(i.path, path);
    const inside = this.#instances.filter(isInside);
    if (inside.length === 0 || inside.some(({ state }) => state !== "pending")) return;
    this.#turns++;
    for (const { path: place, mapId: inner } of [...this.#expanded.values()]) {
      const isWithin = inner === mapId ? `${place}` === `${path}` : this.#shape.chain(inner).includes(mapId);
      if (isWithin && startsWith(place, path)) this.#expanded.delete(keyOf(inner, place));
    }
    const tries = Math.max(...inside.map((i) => i.tries));
    for (const { mapId: inner } of this.#shape.maps)
      if (this.#shape.chain(inner).includes(mapId))
        this.#folded.set(inner, Math.max(this.#folded.get(inner) ?? 0, tries));
    const folded = members.filter((taskId) => inside.some((i) => i.taskId === taskId));
    this.#become([
      ...this.#instances.filter((i) => !isInside(i)),
      ...folded.map((taskId) => fresh(taskId, path, this.#folded.get(mapId)!)),
    ]);
  }

  #become(instances: ReferenceInstance[]): void {
    this.#instances = instances;
    this.groups.exist(instances);
  }
}

interface Expansion {
  readonly mapId: string;
  readonly path: readonly number[];
  readonly length: number;
  readonly tries: number;
}

function isGated(task: TaskManifest): boolean {
  return task.dependsOnPast || task.waitForDownstream;
}

function fresh(taskId: string, path: readonly number[], tries: number): ReferenceInstance {
  const facts = { isPastFine: false, isImplied: false, isListEnd: false, isHalfway: false };
  return { taskId, path, state: "pending", tries, triesBefore: tries, losses: 0, ...facts, skip: [] };
}
