/** Random DAGs with a scripted outcome for each try of each task. The same seed gives the same DAG. */
import type { DagManifest, GroupManifest, MapManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { RULES } from "../../../sdk/src/author/task-options.ts";
import { dagManifest, taskManifest } from "./manifests.ts";

export type TryOutcome = "success" | "failure" | "failureForGood" | "skip";

export interface TaskScript {
  /** The outcomes of try 1, 2, ...; the last one also applies to all further tries. */
  readonly tries: readonly TryOutcome[];
  /** Tasks that are skipped when it succeeds, as by a branch or short circuit. */
  readonly skip: readonly string[];
}

export interface RandomDag {
  readonly seed: number;
  readonly manifest: DagManifest;
  readonly scripts: ReadonlyMap<string, TaskScript>;
  /** The number of items of a map, within an item of its parent map. */
  length(mapId: string, path: readonly number[]): number;
}

export interface RandomDagOptions {
  readonly maxTasks: number;
  readonly maxRetries: number;
  /** Shares of tasks, 0 to 1. */
  readonly branches: number;
  readonly failures: number;
  readonly gated: number;
  readonly mapped: number;
  readonly setups: number;
  /** Number of groups with retries to try to add. */
  readonly groups: number;
}

export const ALL_RULES = RULES;

const DEFAULTS: RandomDagOptions = {
  maxTasks: 12,
  maxRetries: 2,
  branches: 0.2,
  failures: 0.3,
  gated: 0,
  mapped: 0,
  setups: 0,
  groups: 0,
};

export function randomDag(seed: number, options: Partial<RandomDagOptions> = {}): RandomDag {
  const o = { ...DEFAULTS, ...options };
  const random = randomOf(seed);
  const count = 1 + random.below(o.maxTasks);
  const tasks: TaskManifest[] = [];
  const maps: MapManifest[] = [];
  for (let i = 0; i < count; i++) {
    const upstream = tasks.filter(() => random.chance(Math.min(0.5, 2.5 / count))).map((task) => task.taskId);
    if (tasks.length > 0 && random.chance(o.mapped)) maps.push(randomMap(`m${i}`, { maps, random, tasks }));
    // Most mapped tasks have the task of their list upstream; a task inside a mapped group may not.
    const map = random.chance(o.mapped * 2) && maps.length > 0 ? random.one(maps) : null;
    const source = map?.over.kind === "output" && random.chance(0.7) ? [map.over.taskId] : [];
    tasks.push(
      taskManifest(`t${i}`, {
        upstream: random.shuffled([...new Set([...upstream, ...source])]),
        rule: random.chance(0.4) ? "allSuccess" : random.one(ALL_RULES),
        retries: random.below(o.maxRetries + 1),
        dependsOnPast: random.chance(o.gated),
        ...(map && { map: map.mapId }),
        ...randomRole(random, o.setups, tasks),
      }),
    );
  }
  const scripts = new Map<string, TaskScript>();
  for (const task of tasks) {
    const isBranch = random.chance(o.branches);
    scripts.set(task.taskId, {
      tries: Array.from({ length: 1 + random.below(3) }, () => randomOutcome(random, o.failures)),
      skip: isBranch ? ruledOut(tasks, task.taskId, random) : [],
    });
  }
  const groups = randomGroups(random, tasks, { maps, most: o.groups });
  // Shuffled: no code may rely on a topological order of the manifest.
  const manifest = dagManifest(random.shuffled(tasks), {
    dagId: `random_${seed}`,
    groups,
    ...(maps.length > 0 && { maps }),
  });
  const salt = random.below(1_000);
  const length = (mapId: string, path: readonly number[]) =>
    [...path, maps.findIndex((map) => map.mapId === mapId)].reduce((sum, n) => sum * 7 + n + 1, salt) % 4;
  return { seed, manifest, scripts, length };
}

function randomRole(
  random: Random,
  share: number,
  tasks: readonly TaskManifest[],
): Pick<TaskManifest, "role" | "teardown"> {
  if (!random.chance(share)) return { role: "work" };
  const setups = tasks.filter(({ role }) => role === "setup");
  if (setups.length === 0 || random.chance(0.5)) return { role: "setup" };
  return { role: "teardown", teardown: { of: random.one(setups).taskId, failsRun: false } };
}

/**
 * A group contains consecutive tasks, so no outside task lies between them. A group may be in a map that contains all its
 * tasks; of any other map it contains all tasks or none. It contains a setup only together with its teardowns.
 */
function randomGroups(
  random: Random,
  tasks: TaskManifest[],
  { maps, most }: { readonly maps: readonly MapManifest[]; readonly most: number },
): GroupManifest[] {
  const groups: { readonly manifest: GroupManifest; readonly from: number; readonly to: number }[] = [];
  const chain = (id: string | null | undefined): string[] => {
    const map = maps.find(({ mapId }) => mapId === id);
    return map ? [...chain(map.parent), map.mapId] : [];
  };
  for (let n = 0; n < most; n++) {
    const from = random.below(tasks.length);
    const to = from + 1 + random.below(tasks.length - from);
    const crosses = groups.some(
      (other) =>
        (from < other.from && to > other.from) || (to > other.to && from < other.to && from >= other.from),
    );
    const own = tasks.slice(from, to);
    const around = groups.filter((other) => other.from <= from && other.to >= to).at(-1);
    const common = chain(own[0]?.map).filter((id) => own.every(({ map }) => chain(map).includes(id)));
    const least = chain(around?.manifest.retry?.map).length;
    const inMaps = common.slice(0, least + random.below(common.length - least + 1));
    const map = inMaps.at(-1);
    const retry = { retries: 1 + random.below(2), delayMs: random.below(5), ...(map && { map }) };
    const others = maps.filter(({ mapId }) => !inMaps.includes(mapId));
    if (crosses || !mayBeGroup(new Set(own), tasks, { chain, others })) continue;
    const manifest = { groupId: `g${n}`, parent: around?.manifest.groupId ?? null, docs: null, retry };
    groups.push({ manifest, from, to });
    for (let index = from; index < to; index++) tasks[index] = { ...tasks[index]!, group: `g${n}` };
  }
  return groups.map(({ manifest }) => manifest);
}

function mayBeGroup(
  own: ReadonlySet<TaskManifest>,
  tasks: readonly TaskManifest[],
  {
    chain,
    others,
  }: {
    readonly chain: (mapId: string | null | undefined) => string[];
    /** The maps that do not contain the group. */
    readonly others: readonly MapManifest[];
  },
): boolean {
  const has = (taskId: string) => [...own].some((task) => task.taskId === taskId);
  const isSplit = tasks.some((task) => task.teardown && has(task.teardown.of) !== own.has(task));
  return (
    !isSplit &&
    others.every(({ mapId }) => {
      const members = tasks.filter(({ map }) => chain(map).includes(mapId));
      const inside = members.filter((task) => own.has(task));
      return inside.length === 0 || inside.length === members.length;
    })
  );
}

/** A map over the output of any earlier task, or over a list; in any earlier map, or in none. */
function randomMap(
  mapId: string,
  { maps, random, tasks }: { maps: readonly MapManifest[]; random: Random; tasks: readonly TaskManifest[] },
): MapManifest {
  const parent = random.chance(0.5) && maps.length > 0 ? random.one(maps).mapId : null;
  const over = random.chance(0.85)
    ? ({ kind: "output", taskId: random.one(tasks).taskId } as const)
    : ({ kind: "list", items: [] } as const);
  return { mapId, parent, over, limit: null };
}

/** A seeded random number generator (mulberry32). */
export interface Random {
  below(limit: number): number;
  chance(share: number): boolean;
  one<T>(items: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
}

export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    chance: (share) => next() < share,
    one: (items) => items[below(items.length)]!,
    shuffled: (items) => {
      const copy = [...items];
      for (let i = copy.length - 1; i > 0; i--) {
        const j = below(i + 1);
        [copy[i], copy[j]] = [copy[j]!, copy[i]!];
      }
      return copy;
    },
  };
}

function randomOutcome(random: Random, failures: number): TryOutcome {
  if (random.chance(failures)) return random.chance(0.8) ? "failure" : "failureForGood";
  return random.chance(0.1) ? "skip" : "success";
}

/** Some direct downstream tasks (a branch), or all downstream tasks (a short circuit). */
function ruledOut(tasks: readonly TaskManifest[], taskId: string, random: Random): string[] {
  const isShortCircuit = random.chance(0.3);
  const found = new Set<string>();
  for (const task of tasks) {
    const isDirect = task.upstream.includes(taskId);
    const isBehind = isDirect || task.upstream.some((id) => found.has(id));
    if (isShortCircuit ? isBehind : isDirect && random.chance(0.6)) found.add(task.taskId);
  }
  return [...found];
}
