/**
 * What a run should do, told in the slowest and plainest way: after every event, every task is looked at again, and the
 * states of its upstream are counted afresh. Written from the rules, sharing no code with the engine; the engine has to
 * agree with it, event by event.
 */
import type { DagManifest, MapManifest, MapSource, TaskManifest } from "@tradewind/sdk/manifest";
import { ReferenceGroups } from "./reference-groups.ts";
import { isEnd, judgeByRule, type ReferenceState, type Verdict } from "./reference-rules.ts";

export interface ReferenceInstance {
  readonly taskId: string;
  /** Its index in each list around it; shorter than its task is deep: it stands for those to come. */
  readonly path: readonly number[];
  state: ReferenceState;
  tries: number;
  /** How many of them were before it was last made to begin again. */
  triesBefore: number;
  losses: number;
  isPastFine: boolean;
  /** What it has ruled out. */
  skip: readonly string[];
}

/** `ended` covers what an attempt or a trigger can say about the end of a try. */
export type ReferenceEvent =
  | {
      readonly what: "queue" | "start" | "defer" | "resume" | "reschedule" | "wake" | "openGate";
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
      readonly length: number;
    }
  /** Their next try begins. */
  | { readonly what: "retryGroups"; readonly groups: readonly string[] }
  | { readonly what: "halt"; readonly active: "success" | "failed" | "skipped" };

export function keyOf(taskId: string, path: readonly number[]): string {
  return `${taskId}[${path}]`;
}

export class ReferenceRun {
  readonly #tasks: readonly TaskManifest[];
  readonly #maps: readonly MapManifest[];
  #instances: ReferenceInstance[];
  readonly #expanded = new Set<string>();
  readonly groups: ReferenceGroups;

  constructor(manifest: DagManifest) {
    this.#tasks = upstreamFirst(manifest.tasks);
    this.#maps = manifest.maps ?? [];
    this.#instances = this.#tasks.map((task) => fresh(task.taskId, []));
    this.groups = new ReferenceGroups(manifest);
    this.#lookAtEverything();
  }

  instances(): readonly ReferenceInstance[] {
    return this.#instances;
  }

  /** Ready for admission, or held for its past. */
  waitsFor(instance: ReferenceInstance): "slots" | "past" | null {
    if (instance.state === "scheduled") return "slots";
    if (instance.state !== "none" || this.#isUnexpanded(instance)) return null;
    return this.#judge(instance) === "run" ? "past" : null;
  }

  /** Maps whose list is there, and that wait to be told how long it is. */
  expandable(): { readonly map: string; readonly path: readonly number[] }[] {
    return this.#maps.flatMap((map) =>
      this.#places(map)
        .filter((path) => this.#judgeMap(map, path) === "run" && this.#wantsLength(map, path))
        .map((path) => ({ map: map.mapId, path })),
    );
  }

  happen(event: ReferenceEvent): void {
    this.#apply(event);
    this.#lookAtEverything();
  }

  end(): "running" | "success" | "task_failure" | "all_tasks_deadlocked" {
    if (this.groups.waiting().length > 0) return "running";
    const unfinished = this.#instances.filter((i) => !isEnd(i.state));
    if (unfinished.length > 0) {
      const canMove = unfinished.some((i) => i.state !== "none" || this.waitsFor(i) !== null);
      return canMove || this.expandable().length > 0 ? "running" : "all_tasks_deadlocked";
    }
    const deciding = this.#decidingTasks();
    const failed = this.#instances.filter((i) => i.state === "failed" || i.state === "upstream_failed");
    return failed.some((i) => deciding.has(i.taskId)) ? "task_failure" : "success";
  }

  #apply(event: ReferenceEvent): void {
    if (event.what === "halt") {
      for (const i of this.#instances) {
        if (isEnd(i.state) || this.#task(i).role === "teardown") continue;
        const hasFailed = i.state === "up_for_retry" && event.active === "failed";
        const isUnderWay = ["running", "deferred", "up_for_reschedule"].includes(i.state);
        i.state = hasFailed || isUnderWay ? event.active : "skipped";
      }
      return;
    }
    if (event.what === "retryGroups") {
      for (const i of this.groups.beginAgain(event.groups, this.#instances)) {
        Object.assign(i, { state: "none", triesBefore: i.tries, isPastFine: false, skip: [] });
      }
      this.#repeatRulings();
      return;
    }
    if (event.what === "expand") {
      for (const i of this.#standIns(event.map, event.path)) {
        if (event.length === 0) i.state = "skipped";
        else this.#replace(i, event.length);
      }
      if (event.length > 0) this.#expanded.add(keyOf(event.map, event.path));
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
        i.state = "up_for_reschedule";
        break;
      case "resume":
        i.state = "scheduled";
        break;
      case "wake":
        if (i.state === "up_for_retry") this.#newTry(i);
        i.state = "scheduled";
        break;
      case "openGate":
        i.isPastFine = true;
        break;
      case "succeed":
        i.state = "success";
        i.skip = event.skip;
        this.#ruleOut(i, ["none", "scheduled"]);
        break;
      case "skip":
        i.state = "skipped";
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

  #fail(i: ReferenceInstance, retry: boolean): void {
    const hasTryLeft = i.tries - i.triesBefore < 1 + this.#task(i).retries;
    i.state = retry && hasTryLeft ? "up_for_retry" : "failed";
  }

  #ruleOut(branch: ReferenceInstance, from: readonly ReferenceState[]): void {
    for (const other of this.#instances) {
      const isMeant = branch.skip.includes(other.taskId) && this.#isWithin(branch, other);
      if (isMeant && from.includes(other.state) && !this.groups.isHidden(branch.taskId, [other.taskId]))
        other.state = "skipped";
    }
  }

  /** Branches that have spoken are heard again: where a group has ended, or begins again. */
  #repeatRulings(): void {
    for (const i of this.#instances) if (i.state === "success") this.#ruleOut(i, ["none"]);
  }

  #newTry(i: ReferenceInstance): void {
    i.tries++;
    i.losses = 0;
  }

  /**
   * Maps without a list, then upstream before downstream, so that a task sees all that the event did to the tasks before
   * it; again until nothing moves. Then groups whose tasks have all ended, for what is outside of them.
   */
  #lookAtEverything(): void {
    this.#lookAtTasks();
    while (this.groups.judge(this.#instances)) {
      this.#repeatRulings();
      this.#lookAtTasks();
    }
  }

  #lookAtTasks(): void {
    const ends = () => this.#instances.filter((i) => isEnd(i.state)).length;
    for (let before = -1; before !== ends(); ) {
      before = ends();
      for (const map of this.#maps) {
        for (const path of this.#places(map)) {
          const verdict = this.#judgeMap(map, path);
          if (verdict === "wait" || verdict === "run") continue;
          for (const i of this.#standIns(map.mapId, path)) i.state = verdict;
        }
      }
      for (const task of this.#tasks) this.#lookAt(task);
    }
  }

  #lookAt(task: TaskManifest): void {
    for (const i of this.#instances.filter((one) => one.taskId === task.taskId && one.state === "none")) {
      if (this.#isUnexpanded(i) && !this.#isAlone(i)) continue;
      const verdict = this.#judge(i);
      if (verdict === "wait") continue;
      if (verdict !== "run") {
        i.state = verdict;
      } else if (!this.#isUnexpanded(i) && (i.isPastFine || !isGated(task))) {
        this.#newTry(i);
        i.state = "scheduled";
      }
    }
  }

  #judge(i: ReferenceInstance): Verdict {
    const task = this.#task(i);
    const upstream = this.#instances.filter(
      (other) => task.upstream.includes(other.taskId) && this.#counts(other, task.map, i.path),
    );
    const isSetup = (id: string) =>
      this.#tasks.some((other) => other.taskId === id && other.role === "setup");
    const guards = this.#instances.filter(
      (other) =>
        isSetup(other.taskId) &&
        !task.upstream.includes(other.taskId) &&
        this.#isInScope(task, other.taskId) &&
        this.#counts(other, task.map, i.path),
    );
    const seen = (other: ReferenceInstance) => this.groups.seen(other, [task.taskId]);
    const guarded = judgeByRule("allSuccess", { states: guards.map(seen), setups: [] });
    if (guarded !== "run") return guarded;
    return judgeByRule(task.rule, {
      states: upstream.map(seen),
      setups: upstream.filter((other) => isSetup(other.taskId)).map(seen),
    });
  }

  #judgeMap(map: MapManifest, path: readonly number[]): Verdict {
    const sources = sourcesOf(map.over);
    const members = this.#tasks
      .filter((task) => this.#chain(task.map).includes(map.mapId))
      .map(({ taskId }) => taskId);
    const states = this.#instances
      .filter((other) => sources.includes(other.taskId) && this.#counts(other, map.parent, path))
      .map((other) => this.groups.seen(other, members));
    return judgeByRule("allSuccess", { states, setups: [] });
  }

  /** Whether an instance counts for what lies at `path` of a map: within the maps that both are in, the same items. */
  #counts(other: ReferenceInstance, map: string | null | undefined, path: readonly number[]): boolean {
    const common = commonLength(this.#chain(this.#task(other).map), this.#chain(map));
    const deep = Math.min(common, other.path.length);
    return deep <= path.length && startsWith(path, other.path.slice(0, deep));
  }

  /** A branch rules out what is in its own items; what gathers them has its rule. */
  #isWithin(branch: ReferenceInstance, other: ReferenceInstance): boolean {
    const chain = this.#chain(this.#task(branch).map);
    const common = commonLength(chain, this.#chain(this.#task(other).map));
    return common >= branch.path.length && startsWith(other.path, branch.path);
  }

  /** Where a map is, or will be, expanded: in each item of the map around it that exists. */
  #places(map: MapManifest): (readonly number[])[] {
    const members = this.#tasks.filter(({ map: own }) => this.#chain(own).includes(map.mapId));
    const depth = this.#chain(map.mapId).length - 1;
    const paths = this.#instances
      .filter((i) => members.some(({ taskId }) => taskId === i.taskId) && i.path.length === depth)
      .map((i) => i.path);
    return [...new Map(paths.map((path) => [`${path}`, path])).values()].filter(
      (path) => !this.#expanded.has(keyOf(map.mapId, path)),
    );
  }

  /** What stands for the instances of each of its tasks, if it has not ended. */
  #standIns(mapId: string, path: readonly number[]): ReferenceInstance[] {
    return this.#instances.filter(
      (i) =>
        i.state === "none" &&
        this.#chain(this.#task(i).map)[i.path.length] === mapId &&
        `${i.path}` === `${path}`,
    );
  }

  #wantsLength(map: MapManifest, path: readonly number[]): boolean {
    return this.#standIns(map.mapId, path).some((i) => !this.#isAlone(i) || this.#judge(i) === "run");
  }

  #replace(standIn: ReferenceInstance, length: number): void {
    const others = this.#instances.filter((i) => i !== standIn);
    const made = Array.from({ length }, (_, index) => fresh(standIn.taskId, [...standIn.path, index]));
    this.#instances = [...others, ...made];
  }

  #isUnexpanded(i: ReferenceInstance): boolean {
    return i.path.length < this.#chain(this.#task(i).map).length;
  }

  /** It is the only task of the map that it waits for. */
  #isAlone(i: ReferenceInstance): boolean {
    const mapId = this.#chain(this.#task(i).map)[i.path.length]!;
    return this.#tasks.filter(({ map }) => this.#chain(map).includes(mapId)).length === 1;
  }

  /** The maps around something, from the outermost on. */
  #chain(map: string | null | undefined): string[] {
    const found = this.#maps.find(({ mapId }) => mapId === map);
    return found ? [...this.#chain(found.parent), found.mapId] : [];
  }

  /** Between a setup and one of its teardowns; behind it, if it has none. */
  #isInScope(task: TaskManifest, setup: string): boolean {
    if (task.role === "teardown" || !this.#isBehind(task.taskId, setup)) return false;
    const ends = this.#tasks.filter(
      ({ taskId, teardown }) => teardown?.of === setup && this.#isBehind(taskId, setup),
    );
    return ends.length === 0 || ends.some(({ taskId }) => this.#isBehind(taskId, task.taskId));
  }

  #isBehind(taskId: string, other: string): boolean {
    const { upstream } = this.#tasks.find((task) => task.taskId === taskId)!;
    return upstream.includes(other) || upstream.some((id) => this.#isBehind(id, other));
  }

  /** Last tasks, leaving teardowns aside unless there is nothing else. */
  #decidingTasks(): ReadonlySet<string> {
    const work = this.#tasks.filter((task) => task.role !== "teardown");
    const last = (among: readonly TaskManifest[]) =>
      among.filter((task) => !among.some((other) => other.upstream.includes(task.taskId)));
    const found = last(work);
    return new Set((found.length > 0 ? found : last(this.#tasks)).map((task) => task.taskId));
  }

  #task(i: ReferenceInstance): TaskManifest {
    return this.#tasks.find((task) => task.taskId === i.taskId)!;
  }
}

function isGated(task: TaskManifest): boolean {
  return task.dependsOnPast || task.waitForDownstream;
}

function sourcesOf(over: MapSource): string[] {
  if (over.kind === "output") return [over.taskId];
  return over.kind === "zip" || over.kind === "cross" ? over.of.flatMap(sourcesOf) : [];
}

function commonLength(a: readonly string[], b: readonly string[]): number {
  const differs = a.findIndex((each, index) => each !== b[index]);
  return differs < 0 ? a.length : differs;
}

function startsWith(path: readonly number[], prefix: readonly number[]): boolean {
  return prefix.every((index, place) => path[place] === index);
}

function fresh(taskId: string, path: readonly number[]): ReferenceInstance {
  return { taskId, path, state: "none", tries: 0, triesBefore: 0, losses: 0, isPastFine: false, skip: [] };
}

/** Takes, again and again, the tasks whose upstream has all been taken. */
function upstreamFirst(tasks: readonly TaskManifest[]): TaskManifest[] {
  const taken: TaskManifest[] = [];
  while (taken.length < tasks.length) {
    const ids = new Set(taken.map((task) => task.taskId));
    const next = tasks.filter((task) => !ids.has(task.taskId) && task.upstream.every((id) => ids.has(id)));
    if (next.length === 0) throw new Error("the DAG has a cycle");
    taken.push(...next);
  }
  return taken;
}
