/**
 * The critical path of a run: the chain of task instances that decided when it ended. It is found backwards: from the instance
 * that ended last to the upstream instance whose end let it begin, and so on. Its steps follow each other without a gap, so
 * that their parts add up to the time that the run took.
 */
import type { Graph, TaskNode } from "../graph/graph.ts";
import { commonDepth, type Scope } from "../graph/scope.ts";
import type { Expansion, Expansions } from "../map/expansions.ts";
import { needsStart } from "../signal/drive.ts";
import type { IntervalKind } from "./intervals.ts";
import { type PastInstance, type Stint, stintsOf } from "./stints.ts";

/**
 * work: a process runs. queue: it waits for slots, or for its executor. wait: for an event, a retry, an earlier run or a user.
 * overhead: the rest.
 */
export const TIME_KINDS = ["work", "queue", "wait", "overhead"] as const;
export type TimeKind = (typeof TIME_KINDS)[number];
export type Breakdown = Readonly<Record<TimeKind, number>>;

export interface PathStep {
  readonly taskId: string;
  readonly mapIndex: number;
  /** The end of the step before. */
  readonly start: number;
  readonly end: number;
  /** What it followed: the start of the run, the upstream of the step before, or its own end before it started over. */
  readonly after: "run" | "upstream" | "itself";
  readonly time: Breakdown;
}

export interface CriticalPath {
  readonly steps: readonly PathStep[];
  /** Of the whole run: the steps, and the time after the last of them. */
  readonly time: Breakdown;
}

export interface PathInput {
  readonly graph: Graph;
  readonly instances: readonly PastInstance[];
  /** Needed for maps in maps. */
  readonly expansions: Expansions | null;
  /** The start of the run; its end, or now. */
  readonly from: number;
  readonly to: number;
  readonly isEnded: boolean;
  /** The task that the path ends with, if one of its instances is unfinished; null: the one that ended last. */
  readonly towards?: string | null;
}

export function criticalPath(input: PathInput): CriticalPath {
  return new PathSearch(input).find();
}

/** The kind of time that an interval is. */
export const KIND_OF: Readonly<Record<IntervalKind, TimeKind>> = {
  scheduled: "queue",
  queued: "queue",
  running: "work",
  deferred: "wait",
  up_for_retry: "wait",
  up_for_reschedule: "wait",
};

const NOTHING: Breakdown = { work: 0, queue: 0, wait: 0, overhead: 0 };

function add(to: Breakdown, kind: TimeKind, ms: number): Breakdown {
  return ms === 0 ? to : { ...to, [kind]: to[kind] + ms };
}

/** One stint of one instance. */
interface Place {
  readonly node: TaskNode;
  readonly past: PastInstance;
  readonly stints: readonly Stint[];
  readonly index: number;
}

class PathSearch {
  readonly #input: PathInput;
  readonly #byTask = new Map<string, Map<number, { past: PastInstance; stints: readonly Stint[] }>>();

  constructor(input: PathInput) {
    this.#input = input;
    for (const past of input.instances) {
      const stints = stintsOf(past).filter(
        ({ begin, end }) => begin < input.to && (end ?? input.to) > input.from,
      );
      if (stints.length === 0 || !input.graph.byId.has(past.taskId)) continue;
      const known = this.#byTask.get(past.taskId) ?? new Map();
      known.set(past.mapIndex, { past, stints });
      this.#byTask.set(past.taskId, known);
    }
  }

  find(): CriticalPath {
    const { from, isEnded, to } = this.#input;
    const steps: PathStep[] = [];
    let at = to;
    for (let place = this.#last(); place !== null; ) {
      const stint = place.stints[place.index]!;
      const end = clamp(stint.end ?? to, from, at);
      const begin = clamp(stint.begin, from, end);
      const cause: Cause | null = begin === from ? null : this.#causeOf(place, begin);
      const start = cause?.end ?? from;
      const after = cause === null ? "run" : cause.place.past === place.past ? "itself" : "upstream";
      const gap = after === "itself" || isHeld(place.node) ? "wait" : "overhead";
      const { mapIndex, taskId } = place.past;
      const time = timeOf(stint, { start, begin, end, gap });
      steps.push({ taskId, mapIndex, start, end, after, time });
      at = start;
      place = cause?.place ?? null;
    }
    steps.reverse();
    const end = steps.at(-1)?.end ?? from;
    let time = add(NOTHING, isEnded ? "overhead" : "wait", to - end);
    for (const step of steps) for (const kind of TIME_KINDS) time = add(time, kind, step.time[kind]);
    return { steps, time };
  }

  /** The last end of an instance that did something; of those that ended at the same time, the one furthest downstream. */
  #last(): Place | null {
    const { to, towards = null } = this.#input;
    let last: Place | null = null;
    const rank = ({ node, past, index, stints }: Place) => {
      const { end, intervals } = stints[index]!;
      const isTarget = end === null && past.taskId === towards;
      return [isTarget ? 1 : 0, intervals.length > 0 ? 1 : 0, end ?? to, node.index, -past.mapIndex];
    };
    for (const place of this.#places()) if (last === null || isAbove(rank(place), rank(last))) last = place;
    return last;
  }

  *#places(): Iterable<Place> {
    for (const [taskId, instances] of this.#byTask)
      for (const { past, stints } of instances.values())
        yield { node: this.#input.graph.byId.get(taskId)!, past, stints, index: stints.length - 1 };
  }

  /** The latest of the ends that it may have waited for; null: it did not wait for any since the start of the run. */
  #causeOf({ index, node, past, stints }: Place, begin: number): Cause | null {
    const { from } = this.#input;
    const causes: Cause[] = [];
    const early: Cause[] = [];
    const own = stints[index - 1];
    if (own?.end != null) causes.push({ place: { node, past, stints, index: index - 1 }, end: own.end });
    for (const place of this.#upstreamOf(node, past.mapIndex)) {
      const ends = place.stints.flatMap(({ end }, each) =>
        end === null ? [] : { place: { ...place, index: each }, end },
      );
      const before = ends.findLast(({ end }) => end <= begin);
      if (before) causes.push(before);
      else if (ends[0]) early.push({ ...ends[0], end: begin });
    }
    // The clock of an executor may be ahead of that of the scheduler.
    const waitsForAll = !/^(?:one|always)/.test(node.manifest.rule);
    if (waitsForAll || causes.length === 0)
      causes.push(...early.slice(0, node.manifest.rule === "always" ? 0 : undefined));
    const [latest] = causes.sort((a, b) => b.end - a.end || b.place.node.index - a.place.node.index);
    return latest === undefined || latest.end <= from ? null : latest;
  }

  /** The upstream instances in the same items of all maps that both tasks are in. */
  *#upstreamOf(node: TaskNode, mapIndex: number): Iterable<Place> {
    const { expansions, graph } = this.#input;
    for (const up of node.upstream) {
      const source = graph.nodes[up]!;
      const instances = this.#byTask.get(source.id);
      if (!instances) continue;
      const level = commonDepth(source.scope, node.scope);
      const isOne = level === (source.scope?.depth ?? 0);
      const item = level === 0 ? -1 : ancestor(expansions, node, mapIndex, level);
      const exact = isOne ? instances.get(item) : undefined;
      const found = exact ? [exact] : instances.values();
      for (const { past, stints } of found) {
        if (!exact && level > 0 && ancestor(expansions, source, past.mapIndex, level) !== item) continue;
        yield { node: source, past, stints, index: stints.length - 1 };
      }
    }
  }
}

interface Cause {
  readonly place: Place;
  readonly end: number;
}

/** The item of the map at `level` that contains an instance; of one that has no item yet: none. */
function ancestor(
  expansions: Expansions | null,
  { scope }: TaskNode,
  mapIndex: number,
  level: number,
): number {
  if (mapIndex < 0 || scope === null) return -1;
  let at = mapIndex;
  for (let each: Scope | null = scope; each !== null && each.depth > level; each = each.parent) {
    // Its map may be expanded again by now.
    const around = expansions?.around(each, at) as Expansion | undefined;
    if (around === undefined) return -1;
    at = around.parent;
  }
  return at;
}

/** Its upstream alone does not let it begin. */
function isHeld({ gated, manifest }: TaskNode): boolean {
  return gated || needsStart(manifest);
}

function timeOf(
  { intervals }: Stint,
  { begin, end, gap, start }: { start: number; begin: number; end: number; gap: TimeKind },
): Breakdown {
  let time = add(NOTHING, gap, begin - start);
  let at = begin;
  for (const interval of intervals) {
    const first = clamp(interval.start, at, end);
    const last = clamp(interval.end ?? end, first, end);
    time = add(add(time, "overhead", first - at), KIND_OF[interval.kind], last - first);
    at = last;
  }
  return add(time, "overhead", end - at);
}

function clamp(value: number, from: number, to: number): number {
  return Math.max(from, Math.min(value, to));
}

function isAbove(a: readonly number[], b: readonly number[]): boolean {
  const place = a.findIndex((value, index) => value !== b[index]);
  return place >= 0 && a[place]! > b[place]!;
}
