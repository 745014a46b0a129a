/** What the instances of a run did when, from the columns of the server's answer. Pure. */
import { bytesOf } from "../api/columns.ts";
import type { components } from "../api/schema.gen.ts";

export type TimelineAnswer = components["schemas"]["UiTimeline"];

export interface Interval {
  /** "scheduled", "queued", "running", "deferred", "up_for_retry", "up_for_reschedule". */
  readonly kind: string;
  readonly tryNumber: number;
  /** The state that followed; null: it goes on. */
  readonly next: string | null;
  /** In ms after the origin. */
  readonly start: number;
  /** The present for one that goes on. */
  readonly end: number;
}

export interface TimelineInstance {
  /** The position of its task. */
  readonly task: number;
  readonly mapIndex: number;
  readonly label: string | null;
  readonly state: string | null;
  readonly tries: number;
  readonly intervals: readonly Interval[];
}

/** A mapped task as a whole. */
interface TimelineMap {
  readonly counts: readonly { readonly state: string; readonly count: number }[];
  readonly instances: number;
  readonly tries: number;
  readonly start: number | null;
  readonly end: number | null;
}

export interface TimelineTask {
  readonly taskId: string;
  readonly group: string | null;
  readonly operator: string;
  readonly isMapped: boolean;
  readonly isRemoved: boolean;
  /** Of which it waits directly. */
  readonly upstream: readonly number[];
  readonly instances: readonly TimelineInstance[];
  readonly map: TimelineMap | null;
}

/** A piece of the chain of tasks that decided when the run ended. */
export interface PathStep {
  readonly task: number;
  readonly mapIndex: number;
  readonly start: number;
  readonly end: number;
}

/** What is expected of a task that has not ended. */
export interface Expected {
  readonly start: number;
  readonly end: number;
  /** If it takes as long as in slow runs. */
  readonly lateEnd: number;
  /** It decides the end of the run. */
  readonly decides: boolean;
}

export type TimeUses = Readonly<Record<Use, number>>;

interface Compared {
  readonly runId: string;
  readonly state: string;
  readonly took: number | null;
  readonly time: TimeUses | null;
  /** How long each task took, by position. */
  readonly tasks: readonly (number | null)[];
}

export interface Timeline {
  readonly path: readonly PathStep[];
  /** Where the time of the run went; null before its start. */
  readonly time: TimeUses | null;
  /** By position. */
  readonly expected: ReadonlyMap<number, Expected>;
  readonly expectedEnd: { readonly usual: number; readonly late: number; readonly unknown: number } | null;
  readonly usual: TimelineAnswer["usual"];
  readonly compared: Compared | null;
  readonly origin: number;
  /** In ms after the origin. */
  readonly now: number;
  readonly run: TimelineAnswer["run"];
  readonly tasks: readonly TimelineTask[];
  readonly groups: readonly { readonly groupId: string; readonly parent: string | null }[];
  readonly hasMore: boolean;
  /** Tasks of the version, without removed ones. */
  readonly structure: Pick<TimelineAnswer, "tasks" | "groups" | "edges">;
}

export function readTimeline(answer: TimelineAnswer): Timeline {
  const { instances, intervals, now, origin, task_states: states } = answer;
  const present = now - origin;
  const nameOf = (byte: number | undefined) => (byte ? (states[byte] ?? null) : null);
  const kinds = bytesOf(intervals.kinds);
  const next = bytesOf(intervals.next);
  const intervalTries = bytesOf(intervals.tries);
  const instanceStates = bytesOf(instances.states);
  const tries = bytesOf(instances.tries);
  const perTask: TimelineInstance[][] = [...answer.tasks, ...answer.removed].map(() => []);
  let at = 0;
  for (const [index, task] of instances.tasks.entries()) {
    const until = at + instances.intervals[index]!;
    const own: Interval[] = [];
    for (; at < until; at += 1)
      own.push({
        kind: answer.interval_kinds[kinds[at]!] ?? "running",
        tryNumber: intervalTries[at]!,
        next: nameOf(next[at]),
        start: intervals.starts[at]!,
        end: intervals.ends[at] ?? present,
      });
    perTask[task]?.push({
      task,
      mapIndex: instances.map_indexes[index]!,
      label: instances.labels?.[index] ?? null,
      state: nameOf(instanceStates[index]),
      tries: tries[index]!,
      intervals: own,
    });
  }
  const upstream: number[][] = perTask.map(() => []);
  for (const [edge, from] of answer.edges.from.entries()) upstream[answer.edges.to[edge]!]?.push(from);
  const maps = new Map(answer.maps.map((map) => [map.at, map]));
  const mapOf = (position: number): TimelineMap | null => {
    const map = maps.get(position);
    if (map === undefined) return null;
    const counts = map.counts.map(([byte, count]) => ({ state: nameOf(byte) ?? "pending", count }));
    return { counts, instances: map.instances, tries: map.tries, start: map.start, end: map.end };
  };
  return {
    ...readPath(answer),
    ...readProjection(answer),
    usual: answer.usual,
    compared: readCompared(answer),
    origin,
    now: present,
    run: answer.run,
    groups: answer.groups.map(({ group_id, parent }) => ({ groupId: group_id, parent })),
    hasMore: answer.more,
    structure: { tasks: answer.tasks, groups: answer.groups, edges: answer.edges },
    tasks: [
      ...answer.tasks.map((task) => ({
        taskId: task.task_id,
        group: task.group,
        operator: task.operator,
        isMapped: task.is_mapped,
        isRemoved: false,
      })),
      ...answer.removed.map((taskId) => ({
        taskId,
        group: null,
        operator: "",
        isMapped: maps.has(answer.tasks.length + answer.removed.indexOf(taskId)),
        isRemoved: true,
      })),
    ].map((task, position) => ({
      ...task,
      upstream: upstream[position]!,
      instances: perTask[position]!,
      map: mapOf(position),
    })),
  };
}

function readPath({ critical_path: path }: TimelineAnswer): Pick<Timeline, "path" | "time"> {
  if (path === null) return { path: [], time: null };
  const steps = path.tasks.map((task, at) => ({
    task,
    mapIndex: path.map_indexes[at]!,
    start: path.starts[at]!,
    end: path.ends[at]!,
  }));
  return { path: steps, time: path.time };
}

function readProjection({ projection }: TimelineAnswer): Pick<Timeline, "expected" | "expectedEnd"> {
  if (projection === null) return { expected: new Map(), expectedEnd: null };
  const decisive = new Set(projection.path);
  const expected = projection.tasks.map((task, at): [number, Expected] => [
    task,
    {
      start: projection.starts[at]!,
      end: projection.ends[at]!,
      lateEnd: projection.late_ends[at]!,
      decides: decisive.has(task),
    },
  ]);
  const { end, late_end: late, unknown } = projection;
  return { expected: new Map(expected), expectedEnd: { usual: end, late, unknown } };
}

function readCompared({ compared }: TimelineAnswer): Compared | null {
  if (compared === null) return null;
  const { ended, run_id: runId, started, state, tasks, time } = compared;
  return { runId, state, tasks, time, took: started === null || ended === null ? null : ended - started };
}

/** What a piece of time was used for. */
export type Use = "work" | "queue" | "wait" | "overhead";

export const USES: readonly { readonly use: Use; readonly label: string; readonly color: string }[] = [
  { use: "work", label: "Work", color: "--s-running" },
  { use: "queue", label: "Queue", color: "--s-queued" },
  { use: "wait", label: "Wait", color: "--s-deferred" },
  { use: "overhead", label: "Overhead", color: "--s-scheduled" },
];

/** The colour of an interval: what was done, or how a try ended. */
export function lookOfInterval({ kind, next }: Pick<Interval, "kind" | "next">): string {
  if (kind !== "running") return kind;
  if (next === "failed" || next === "up_for_retry") return "failed";
  return next === null ? "running" : next === "deferred" ? "success" : next;
}
