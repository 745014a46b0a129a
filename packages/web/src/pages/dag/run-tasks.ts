/** When each task of a run did what, from the timeline of the run. Pure. */
import { bytesOf } from "../../api/columns.ts";
import type { components } from "../../api/schema.gen.ts";
import { ranksOf } from "../../state/worst.ts";

type Timeline = components["schemas"]["UiTimeline"];

export interface RunTask {
  readonly taskId: string;
  readonly state: string;
  readonly tries: number;
  /** Of a mapped task. */
  readonly instances: number | null;
  /** Milliseconds since the origin of the timeline; null: it has not begun. */
  readonly from: number | null;
  /** Null: it goes on. */
  readonly to: number | null;
  readonly spans: readonly TaskSpan[];
}

interface TaskSpan {
  /** The state to paint: the kind of the interval, or "failed" for a failed try. */
  readonly state: string;
  readonly from: number;
  readonly to: number | null;
}

/** Waiting for a slot is not shown: it is short, and the page of the run shows it. */
const SHOWN = new Set(["running", "deferred", "up_for_retry", "up_for_reschedule"]);

/** The ones to look at first: failures, then what goes on, then by their start. */
export function runTasks(timeline: Timeline): RunTask[] {
  const { instances, intervals, interval_kinds: kinds, task_states: legend } = timeline;
  const ids = [...timeline.tasks.map(({ task_id }) => task_id), ...timeline.removed];
  const ranks = ranksOf(legend);
  const states = bytesOf(instances.states);
  const tries = bytesOf(instances.tries);
  const kindBytes = bytesOf(intervals.kinds);
  const next = bytesOf(intervals.next);
  const maps = new Map(timeline.maps.map((map) => [map.at, map]));
  const tasks: (RunTask & { readonly rank: number })[] = [];
  let at = 0;
  for (const [index, place] of instances.tasks.entries()) {
    const spans: TaskSpan[] = [];
    for (const end = at + instances.intervals[index]!; at < end; at += 1) {
      const kind = kinds[kindBytes[at]!]!;
      if (!SHOWN.has(kind)) continue;
      const after = legend[next[at]!];
      const hasFailed = kind === "running" && (after === "failed" || after === "up_for_retry");
      const state =
        kind === "running" ? (hasFailed ? "failed" : after === "success" ? "success" : "running") : kind;
      spans.push({ state, from: intervals.starts[at]!, to: intervals.ends[at] ?? null });
    }
    if (maps.has(place)) continue;
    tasks.push({
      taskId: ids[place]!,
      state: legend[states[index]!]!,
      tries: tries[index]!,
      instances: null,
      from: spans[0]?.from ?? null,
      to: spans.at(-1)?.to ?? null,
      spans,
      rank: ranks[states[index]!]!,
    });
  }
  for (const map of timeline.maps) {
    const [worst] = map.counts.toSorted(([a], [b]) => ranks[a]! - ranks[b]!);
    if (worst === undefined) continue;
    const state = legend[worst[0]]!;
    const isOpen = map.counts.some(([byte]) => OPEN.has(legend[byte]!));
    const to = isOpen ? null : map.end;
    tasks.push({
      ...{ taskId: ids[map.at]!, state, tries: map.tries, instances: map.instances, from: map.start, to },
      spans: map.start === null ? [] : [{ state, from: map.start, to }],
      rank: ranks[worst[0]]!,
    });
  }
  const late = Number.POSITIVE_INFINITY;
  const group = ({ rank, state }: { rank: number; state: string }) => (DONE.has(state) ? 100 : rank);
  return tasks.sort((a, b) => group(a) - group(b) || (a.from ?? late) - (b.from ?? late));
}

const DONE = new Set(["success", "skipped", "removed"]);
const OPEN = new Set(["running", "queued", "scheduled", "deferred", "up_for_retry", "pending", "restarting"]);
