/** Relations between the tasks of a manifest, for the reference interpreter and the success rule. */
import type { DagManifest, MapManifest, MapSource, TaskManifest } from "@tradewind/sdk/manifest";

/** An instance of a task: its index in each enclosing map. A path shorter than the number of maps is a placeholder. */
export interface Placed {
  readonly taskId: string;
  readonly path: readonly number[];
}

export class ReferenceShape {
  /** Upstream before downstream. */
  readonly tasks: readonly TaskManifest[];
  readonly maps: readonly MapManifest[];
  readonly #byId: ReadonlyMap<string, TaskManifest>;
  readonly #chains: ReadonlyMap<string, readonly string[]>;
  readonly #members: ReadonlyMap<string, readonly string[]>;
  /** By task: the setups whose scope contains it, except those directly upstream. */
  readonly #guards: ReadonlyMap<string, readonly string[]>;

  constructor(manifest: DagManifest) {
    this.tasks = upstreamFirst(manifest.tasks);
    this.maps = manifest.maps ?? [];
    this.#byId = new Map(this.tasks.map((task) => [task.taskId, task]));
    const chain = (id: string | null): string[] => {
      const map = this.maps.find(({ mapId }) => mapId === id);
      return map ? [...chain(map.parent), map.mapId] : [];
    };
    this.#chains = new Map(this.maps.map(({ mapId }) => [mapId, chain(mapId)]));
    const isIn = ({ map }: TaskManifest, mapId: string) => this.chain(map).includes(mapId);
    this.#members = new Map(
      this.maps.map(({ mapId }) => [
        mapId,
        this.tasks.filter((task) => isIn(task, mapId)).map(({ taskId }) => taskId),
      ]),
    );
    const setups = this.tasks.filter(({ role }) => role === "setup").map(({ taskId }) => taskId);
    this.#guards = new Map(
      this.tasks.map((task) => [
        task.taskId,
        setups.filter((id) => !task.upstream.includes(id) && this.isInScope(task, id)),
      ]),
    );
  }

  task({ taskId }: Pick<Placed, "taskId">): TaskManifest {
    return this.#byId.get(taskId)!;
  }

  isSetup(taskId: string): boolean {
    return this.task({ taskId }).role === "setup";
  }

  /** `rule`: the instances that the trigger rule evaluates; `guards`: the setups that must succeed before it. */
  upstreamOf<P extends Placed>(of: Placed, all: readonly P[]): { readonly rule: P[]; readonly guards: P[] } {
    const { map, upstream } = this.task(of);
    const guards = this.#guards.get(of.taskId)!;
    const counting = (ids: readonly string[]) =>
      ids.length === 0
        ? []
        : all.filter((other) => ids.includes(other.taskId) && this.counts(other, map, of.path));
    return { rule: counting(upstream), guards: counting(guards) };
  }

  /** The instances whose outputs are the list of a map at `path`. */
  sourcesOf<P extends Placed>(map: MapManifest, path: readonly number[], all: readonly P[]): P[] {
    const sources = sourcesOf(map.over);
    return all.filter((other) => sources.includes(other.taskId) && this.counts(other, map.parent, path));
  }

  members(mapId: string): readonly string[] {
    return this.#members.get(mapId)!;
  }

  /** The map whose expansion a placeholder waits for; undefined: not a placeholder. */
  mapAhead(of: Placed): MapManifest | undefined {
    const mapId = this.chain(this.task(of).map)[of.path.length];
    return this.maps.find((map) => map.mapId === mapId);
  }

  /** The maps that contain an instance as an item, each with the path of its expansion. */
  mapsAround(of: Placed): (readonly [MapManifest, readonly number[]])[] {
    const ids = this.chain(this.task(of).map).slice(0, of.path.length);
    return ids.map((id, depth) => [this.maps.find(({ mapId }) => mapId === id)!, of.path.slice(0, depth)]);
  }

  /** The placeholder is the only task of its map. */
  isAlone(of: Placed): boolean {
    return this.members(this.chain(this.task(of).map)[of.path.length]!).length === 1;
  }

  /** Whether an instance counts for a task at `path` of a map: both are in the same items of their common maps. */
  counts(other: Placed, map: string | null | undefined, path: readonly number[]): boolean {
    const common = commonLength(this.chain(this.task(other).map), this.chain(map));
    const deep = Math.min(common, other.path.length);
    return deep <= path.length && startsWith(path, other.path.slice(0, deep));
  }

  /**
   * Whether two instances are in the same items of their common maps. A placeholder for all items is in none of
   * them.
   */
  isBeside(one: Placed, other: Placed): boolean {
    const common = commonLength(this.chain(this.task(one).map), this.chain(this.task(other).map));
    return startsWith(other.path, one.path.slice(0, common));
  }

  /** A branch skips tasks of its own items; tasks that collect the items follow their trigger rule. */
  isWithin(branch: Placed, other: Placed): boolean {
    const chain = this.chain(this.task(branch).map);
    const common = commonLength(chain, this.chain(this.task(other).map));
    return common >= branch.path.length && startsWith(other.path, branch.path);
  }

  /** A map and its enclosing maps, outermost first. */
  chain(map: string | null | undefined): readonly string[] {
    return this.#chains.get(map ?? "") ?? [];
  }

  /** The task is between a setup and one of its teardowns; after the setup, if it has no teardown. */
  isInScope(task: TaskManifest, setup: string): boolean {
    if (task.role === "teardown" || !this.#isBehind(task.taskId, setup)) return false;
    const ends = this.tasks.filter(
      ({ taskId, teardown }) => teardown?.of === setup && this.#isBehind(taskId, setup),
    );
    return ends.length === 0 || ends.some(({ taskId }) => this.#isBehind(taskId, task.taskId));
  }

  /** The last tasks, without teardowns unless there are no others. */
  decidingTasks(): ReadonlySet<string> {
    const work = this.tasks.filter((task) => task.role !== "teardown");
    const last = (among: readonly TaskManifest[]) =>
      among.filter((task) => !among.some((other) => other.upstream.includes(task.taskId)));
    const found = last(work);
    return new Set((found.length > 0 ? found : last(this.tasks)).map((task) => task.taskId));
  }

  #isBehind(taskId: string, other: string): boolean {
    const { upstream } = this.task({ taskId });
    return upstream.includes(other) || upstream.some((id) => this.#isBehind(id, other));
  }
}

export function keyOf(taskId: string, path: readonly number[]): string {
  return `${taskId}[${path}]`;
}

export function startsWith(path: readonly number[], prefix: readonly number[]): boolean {
  return prefix.every((index, place) => path[place] === index);
}

function sourcesOf(over: MapSource): string[] {
  if (over.kind === "output") return [over.taskId];
  return over.kind === "zip" || over.kind === "cross" ? over.of.flatMap(sourcesOf) : [];
}

function commonLength(a: readonly string[], b: readonly string[]): number {
  const differs = a.findIndex((each, index) => each !== b[index]);
  return differs < 0 ? a.length : differs;
}

/** The tasks in topological order. */
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
