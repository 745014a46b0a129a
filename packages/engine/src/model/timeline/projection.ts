/**
 * When a run will end: the tasks that have not ended are expected to succeed after their usual time, each as soon as its
 * trigger rule allows it. Slots are not considered: it is the earliest end.
 */
import type { Graph, TaskNode } from "../graph/graph.ts";
import { type Counters, emptyCounters, judge } from "../graph/trigger-rules.ts";
import { isFinished, type TaskState } from "../run/states.ts";

/** How long a task took in earlier runs, of a mapped task: all its instances together. */
export interface UsualTime {
  readonly p50: number;
  readonly p95: number;
}

/** The instances of a task in the run. */
export interface TaskPresent {
  readonly states: ReadonlyMap<TaskState, number>;
  /** When the current try began; of a map: its first instance. null: not yet. */
  readonly startedAt: number | null;
  /** When it goes on: the time of the next try or check. */
  readonly resumesAt: number | null;
  /** When the last of them ended. */
  readonly endedAt: number | null;
}

export interface ProjectionInput {
  readonly graph: Graph;
  /** Tasks without instances are missing. */
  readonly tasks: ReadonlyMap<string, TaskPresent>;
  readonly usual: ReadonlyMap<string, UsualTime>;
  readonly now: number;
}

export interface ProjectedTask {
  readonly taskId: string;
  readonly start: number;
  readonly end: number;
  /** If everything takes as long as in the slowest of twenty runs. */
  readonly lateEnd: number;
  /** The upstream task that lets it begin; null: it has begun, or may begin now. */
  readonly after: string | null;
}

export interface Projection {
  /** Tasks that have not ended, in topological order. */
  readonly tasks: readonly ProjectedTask[];
  readonly end: number;
  readonly lateEnd: number;
  /** Those that decide the end. */
  readonly path: readonly string[];
  /** Tasks that never succeeded before: they are expected to take no time. */
  readonly unknown: number;
}

export function projectRun(input: ProjectionInput): Projection {
  const usually = project(input, "p50");
  const late = project(input, "p95");
  const tasks = usually.tasks.map((task) => ({
    ...task,
    lateEnd: Math.max(task.end, late.ends.get(task.taskId) ?? task.end),
  }));
  const byId = new Map(tasks.map((task) => [task.taskId, task]));
  let last: ProjectedTask | undefined;
  for (const task of tasks) if (last === undefined || task.end >= last.end) last = task;
  const path: string[] = [];
  for (let each = last; each; each = each.after === null ? undefined : byId.get(each.after))
    path.unshift(each.taskId);
  return {
    tasks,
    end: Math.max(input.now, last?.end ?? input.now),
    lateEnd: tasks.reduce((end, task) => Math.max(end, task.lateEnd), input.now),
    path,
    unknown: usually.unknown,
  };
}

type Quantile = keyof UsualTime;

function project({ graph, now, tasks: present, usual }: ProjectionInput, quantile: Quantile) {
  const ends = new Map<string, number>();
  const outcomes = new Map<string, Counters>();
  const tasks: Omit<ProjectedTask, "lateEnd">[] = [];
  const unfinished = new Set<string>();
  let unknown = 0;
  for (const node of graph.nodes) {
    const is = present.get(node.id) ?? NOT_YET;
    const usualTime = usual.get(node.id);
    const outcome = outcomeOf(is);
    outcomes.set(node.id, outcome);
    if (is !== NOT_YET && unfinishedOf(is) === 0) {
      ends.set(node.id, Math.min(is.endedAt ?? now, now));
      continue;
    }
    unfinished.add(node.id);
    const takes = usualTime?.[quantile] ?? 0;
    if (hasBegun(is)) {
      const left = timeLeft(is, { now, takes, late: usualTime?.p95 ?? 0 });
      if (usualTime === undefined) unknown++;
      ends.set(node.id, now + left);
      tasks.push({ taskId: node.id, start: now, end: now + left, after: null });
      continue;
    }
    const { after, at, verdict } = beginOf(node, { graph, ends, outcomes, now, unfinished });
    const runs = verdict === "run" || verdict === "wait";
    const { total } = outcome;
    if (verdict === "skipped") outcomes.set(node.id, { ...emptyCounters(), total, skipped: total });
    if (verdict === "upstream_failed")
      outcomes.set(node.id, { ...emptyCounters(), total, upstreamFailed: total });
    if (runs && usualTime === undefined) unknown++;
    const end = at + (runs ? takes : 0);
    ends.set(node.id, end);
    tasks.push({ taskId: node.id, start: at, end, after });
  }
  return { tasks, ends, unknown };
}

const NOT_YET: TaskPresent = { states: new Map(), startedAt: null, resumesAt: null, endedAt: null };

function unfinishedOf({ states }: TaskPresent): number {
  let sum = 0;
  for (const [state, count] of states) if (!isFinished(state)) sum += count;
  return sum;
}

/** Some instance is beyond `pending`. */
function hasBegun({ states }: TaskPresent): boolean {
  return [...states].some(([state, count]) => state !== "pending" && count > 0);
}

/** Of a task that takes longer than usual: until its late end, then none. */
function timeLeft(
  is: TaskPresent,
  { late, now, takes }: { readonly now: number; readonly takes: number; readonly late: number },
): number {
  const { resumesAt, startedAt, states } = is;
  let total = 0;
  for (const count of states.values()) total += count;
  if (total > 1) {
    const part = unfinishedOf(is) / total;
    const since = part === 1 && startedAt !== null ? now - startedAt : 0;
    return Math.max(0, Math.round(takes * part) - since);
  }
  if (resumesAt !== null) return Math.max(0, resumesAt - now) + takes;
  if (startedAt === null) return takes;
  const gone = now - startedAt;
  return Math.max(0, (gone <= takes ? takes : late) - gone);
}

/** How the instances of a task end: what has not ended is expected to succeed. */
function outcomeOf({ states }: TaskPresent): Counters {
  const outcome = emptyCounters();
  for (const [state, count] of states) {
    outcome.total += count;
    if (state === "failed" || state === "skipped" || state === "removed") outcome[state] += count;
    else if (state === "upstream_failed") outcome.upstreamFailed += count;
    else outcome.success += count;
  }
  if (outcome.total === 0) outcome.total = outcome.success = 1;
  return outcome;
}

/** When the rule of a task decides, with the upstream task whose end does it. */
function beginOf(
  node: TaskNode,
  known: {
    readonly graph: Graph;
    readonly ends: ReadonlyMap<string, number>;
    readonly outcomes: ReadonlyMap<string, Counters>;
    readonly unfinished: ReadonlySet<string>;
    readonly now: number;
  },
) {
  const sources = node.upstream.map((index) => {
    const source = known.graph.nodes[index]!;
    return { source, end: known.ends.get(source.id)!, outcome: known.outcomes.get(source.id)! };
  });
  sources.sort((a, b) => a.end - b.end);
  const counters = emptyCounters();
  for (const { outcome, source } of sources) {
    counters.total += outcome.total;
    if (source.manifest.role === "setup") counters.setupTotal += outcome.total;
  }
  let verdict = judge(node.manifest.rule, counters);
  for (const { end, outcome, source } of sources) {
    if (verdict !== "wait") break;
    count(counters, outcome, source.manifest.role === "setup");
    verdict = judge(node.manifest.rule, counters);
    if (verdict !== "wait")
      return {
        verdict,
        at: Math.max(known.now, end),
        after: known.unfinished.has(source.id) ? source.id : null,
      };
  }
  return { verdict, at: known.now, after: null };
}

function count(
  to: Counters,
  { failed, removed, skipped, success, upstreamFailed }: Counters,
  isSetup: boolean,
): void {
  to.success += success;
  to.skipped += skipped;
  to.failed += failed;
  to.upstreamFailed += upstreamFailed;
  to.removed += removed;
  if (!isSetup) return;
  to.setupSuccess += success;
  to.setupSkipped += skipped;
  to.setupFailed += failed + upstreamFailed;
}
