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
export interface TimelineMap {
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

export interface Timeline {
  readonly origin: number;
  /** In ms after the origin. */
  readonly now: number;
  readonly run: TimelineAnswer["run"];
  readonly tasks: readonly TimelineTask[];
  readonly groups: readonly { readonly groupId: string; readonly parent: string | null }[];
  readonly hasMore: boolean;
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
    origin,
    now: present,
    run: answer.run,
    groups: answer.groups.map(({ group_id, parent }) => ({ groupId: group_id, parent })),
    hasMore: answer.more,
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

/** What a piece of time was used for. */
export type Use = "work" | "queue" | "wait" | "overhead";

export const USES: readonly { readonly use: Use; readonly label: string; readonly color: string }[] = [
  { use: "work", label: "Work", color: "--s-running" },
  { use: "queue", label: "Queue", color: "--s-queued" },
  { use: "wait", label: "Wait", color: "--s-deferred" },
  { use: "overhead", label: "Overhead", color: "--s-scheduled" },
];

export function useOf(kind: string): Use {
  if (kind === "running") return "work";
  if (kind === "queued") return "queue";
  return kind === "scheduled" ? "overhead" : "wait";
}

/** The colour of an interval: what was done, or how a try ended. */
export function lookOfInterval({ kind, next }: Pick<Interval, "kind" | "next">): string {
  if (kind !== "running") return kind;
  if (next === "failed" || next === "up_for_retry") return "failed";
  return next === null ? "running" : next === "deferred" ? "success" : next;
}
