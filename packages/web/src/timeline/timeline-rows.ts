/** The rows of a timeline: groups and their tasks, in the order of the graph or of their start. Pure. */
import type { Timeline, TimelineTask } from "./timeline-data.ts";

const GROUP_ROW = 26;
const TASK_ROW = 26;
const MAP_ROW = 44;

interface GroupRow {
  readonly kind: "group";
  readonly groupId: string;
  readonly label: string;
  readonly depth: number;
  readonly isOpen: boolean;
  readonly tasks: number;
  readonly done: number;
  /** From the first start to the last end in it; null before. */
  readonly span: Span | null;
  readonly top: number;
  readonly height: number;
}

export interface TaskRow {
  readonly kind: "task";
  readonly position: number;
  readonly task: TimelineTask;
  readonly label: string;
  readonly depth: number;
  readonly span: Span | null;
  readonly top: number;
  readonly height: number;
}

export type Row = GroupRow | TaskRow;

interface Span {
  readonly start: number;
  readonly end: number;
}

export interface RowOptions {
  readonly closed: ReadonlySet<string>;
  readonly order: "graph" | "start";
  /** Only tasks with this text in their id. */
  readonly filter: string;
}

const ENDED: ReadonlySet<string> = new Set(["success", "failed", "skipped", "upstream_failed", "removed"]);

export function timelineRows({ groups, tasks }: Timeline, { closed, filter, order }: RowOptions): Row[] {
  const wanted = filter.toLowerCase();
  const shown = tasks
    .map((task, position) => ({ task, position, span: spanOf(task) }))
    .filter(({ task }) => task.taskId.toLowerCase().includes(wanted));
  const rows: Row[] = [];
  let top = 0;
  const add = (row: Omit<GroupRow, "top"> | Omit<TaskRow, "top">) => {
    rows.push({ ...row, top } as Row);
    top += row.height;
  };
  const addTask = ({ position, span, task }: (typeof shown)[number], depth: number) => {
    const isHigh = task.isMapped && (task.map?.instances ?? 0) > 1;
    const label =
      depth === 0 ? task.taskId : task.taskId.slice((task.group?.length ?? -1) + 1) || task.taskId;
    const height = isHigh ? MAP_ROW : TASK_ROW;
    add({
      kind: "task",
      position,
      task,
      label: task.taskId.startsWith(`${task.group}.`) ? label : task.taskId,
      depth,
      span,
      height,
    });
  };
  if (order === "start") {
    const byStart = shown.toSorted((a, b) => (a.span?.start ?? Infinity) - (b.span?.start ?? Infinity));
    for (const each of byStart) addTask(each, 0);
    return rows;
  }
  const parents = new Map(groups.map(({ groupId, parent }) => [groupId, parent]));
  const pathOf = (group: string | null): string[] => {
    const path: string[] = [];
    for (let each = group; each !== null; each = parents.get(each) ?? null) path.unshift(each);
    return path;
  };
  const inGroup = new Map<string, typeof shown>();
  for (const each of shown)
    for (const group of pathOf(each.task.group)) {
      const inside = inGroup.get(group) ?? [];
      inGroup.set(group, inside);
      inside.push(each);
    }
  let open: string[] = [];
  for (const each of shown) {
    const path = pathOf(each.task.group);
    const common = path.findIndex((group, at) => open[at] !== group);
    const known = common < 0 ? Math.min(path.length, open.length) : common;
    for (let depth = known; depth < path.length; depth += 1) {
      if (path.slice(0, depth).some((group) => closed.has(group))) break;
      const groupId = path[depth]!;
      const inside = inGroup.get(groupId)!;
      add({
        kind: "group",
        groupId,
        label: depth === 0 ? groupId : groupId.slice(path[depth - 1]!.length + 1) || groupId,
        depth,
        isOpen: !closed.has(groupId),
        tasks: inside.length,
        done: inside.filter(({ task }) => isDone(task)).length,
        span: joined(inside.map(({ span }) => span)),
        height: GROUP_ROW,
      });
    }
    open = path;
    if (path.some((group) => closed.has(group))) continue;
    addTask(each, path.length);
  }
  return rows;
}

function isDone({ instances, map }: TimelineTask): boolean {
  if (map !== null) return map.counts.every(({ state }) => ENDED.has(state));
  return instances.length > 0 && instances.every(({ state }) => ENDED.has(state ?? ""));
}

function spanOf({ instances, map }: TimelineTask): Span | null {
  const own = joined(
    instances.map(({ intervals }) =>
      intervals.length === 0 ? null : { start: intervals[0]!.start, end: intervals.at(-1)!.end },
    ),
  );
  if (map === null || map.start === null || own === null) return own;
  return { start: Math.min(own.start, map.start), end: Math.max(own.end, map.end ?? own.end) };
}

function joined(spans: readonly (Span | null)[]): Span | null {
  let found: Span | null = null;
  for (const span of spans)
    if (span !== null)
      found =
        found === null
          ? span
          : { start: Math.min(found.start, span.start), end: Math.max(found.end, span.end) };
  return found;
}

/** The state of a task, or of a map as a whole: the worst, then the most active. */
const RANK = [
  "failed",
  "upstream_failed",
  "running",
  "restarting",
  "deferred",
  "up_for_retry",
  "up_for_reschedule",
  "queued",
  "scheduled",
  "pending",
  "success",
  "skipped",
  "removed",
];

export function stateOf({ instances, map }: TimelineTask): string | null {
  return worst(
    new Set(
      map === null ? instances.map(({ state }) => state ?? "pending") : map.counts.map(({ state }) => state),
    ),
  );
}

export function worst(states: ReadonlySet<string | null>): string | null {
  return RANK.find((state) => states.has(state)) ?? null;
}

/** The first row that ends below a height. */
export function rowAt(rows: readonly Row[], y: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const { height, top } = rows[middle]!;
    if (top + height <= y) low = middle + 1;
    else high = middle;
  }
  return low;
}
