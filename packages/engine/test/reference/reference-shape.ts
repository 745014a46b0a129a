/** How the tasks of a DAG lie to each other: what the reference interpreter and the success rule read from a manifest. */
import type { DagManifest, MapManifest, MapSource, TaskManifest } from "@tradewind/sdk/manifest";

/** An instance of a task: its index in each list around it. Shorter than its task is deep: it stands for those to come. */
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
  /** Of each task: the setups in whose scope it is, but for those directly upstream of it. */
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

  /** The instances that a rule looks at, and those of the setups that come before the rule. */
  upstreamOf<P extends Placed>(of: Placed, all: readonly P[]): { readonly rule: P[]; readonly guards: P[] } {
    const { map, upstream } = this.task(of);
    const guards = this.#guards.get(of.taskId)!;
    const counting = (ids: readonly string[]) =>
      ids.length === 0
        ? []
        : all.filter((other) => ids.includes(other.taskId) && this.counts(other, map, of.path));
    return { rule: counting(upstream), guards: counting(guards) };
  }

  /** The instances whose outputs the list of a map is made of, where it lies at `path`. */
  sourcesOf<P extends Placed>(map: MapManifest, path: readonly number[], all: readonly P[]): P[] {
    const sources = sourcesOf(map.over);
    return all.filter((other) => sources.includes(other.taskId) && this.counts(other, map.parent, path));
  }

  members(mapId: string): readonly string[] {
    return this.#members.get(mapId)!;
  }

  /** The map that an instance waits for; undefined: it stands for itself. */
  mapAhead(of: Placed): MapManifest | undefined {
    const mapId = this.chain(this.task(of).map)[of.path.length];
    return this.maps.find((map) => map.mapId === mapId);
  }

  /** The maps that an instance is an item of, each with the place where it is expanded. */
  mapsAround(of: Placed): (readonly [MapManifest, readonly number[]])[] {
    const ids = this.chain(this.task(of).map).slice(0, of.path.length);
    return ids.map((id, depth) => [this.maps.find(({ mapId }) => mapId === id)!, of.path.slice(0, depth)]);
  }

  /** It is the only task of the map that it waits for. */
  isAlone(of: Placed): boolean {
    return this.members(this.chain(this.task(of).map)[of.path.length]!).length === 1;
  }

  /** Whether an instance counts for what lies at `path` of a map: within the maps that both are in, the same items. */
  counts(other: Placed, map: string | null | undefined, path: readonly number[]): boolean {
    const common = commonLength(this.chain(this.task(other).map), this.chain(map));
    const deep = Math.min(common, other.path.length);
    return deep <= path.length && startsWith(path, other.path.slice(0, deep));
  }

  /**
   * Whether an instance lies in the items that another one is in, of the maps that both are in. One that stands for all items
   * does not lie in one of them.
   */
  isBeside(one: Placed, other: Placed): boolean {
    const common = commonLength(this.chain(this.task(one).map), this.chain(this.task(other).map));
    return startsWith(other.path, one.path.slice(0, common));
  }

  /** A branch rules out what is in its own items; what gathers them has its rule. */
  isWithin(branch: Placed, other: Placed): boolean {
    const chain = this.chain(this.task(branch).map);
    const common = commonLength(chain, this.chain(this.task(other).map));
    return common >= branch.path.length && startsWith(other.path, branch.path);
  }

  /** The maps around something, from the outermost on. */
  chain(map: string | null | undefined): readonly string[] {
    return this.#chains.get(map ?? "") ?? [];
  }

  /** Between a setup and one of its teardowns; behind it, if it has none. */
  isInScope(task: TaskManifest, setup: string): boolean {
    if (task.role === "teardown" || !this.#isBehind(task.taskId, setup)) return false;
    const ends = this.tasks.filter(
      ({ taskId, teardown }) => teardown?.of === setup && this.#isBehind(taskId, setup),
    );
    return ends.length === 0 || ends.some(({ taskId }) => this.#isBehind(taskId, task.taskId));
  }

  /** Last tasks, leaving teardowns aside unless there is nothing else. */
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
