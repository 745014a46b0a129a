/** The timeline of a run as a drawing: one line per task, one column per slice of time. */
import type { Style, Terminal } from "../terminal.ts";
import { instanceName } from "./instance-name.ts";
import { displayWidth, truncate } from "./table.ts";
import { moment, span } from "./when.ts";
import { wrapLine } from "./wrap.ts";

interface TimeBreakdown {
  readonly work: number;
  readonly queue: number;
  readonly wait: number;
  readonly overhead: number;
}

interface UsualTime {
  readonly p50: number;
  readonly p95: number;
}

interface TimelineInstance {
  readonly task_id: string;
  readonly map_index: number;
  readonly state: string | null;
  readonly intervals: readonly {
    readonly state: string;
    readonly start_date: string;
    /** null: it goes on. */
    readonly end_date: string | null;
    readonly next_state: string | null;
  }[];
}

/** What the tasks of a run did when. Durations are seconds. */
export interface RunTimeline {
  readonly as_of: string;
  readonly start_date: string | null;
  readonly end_date: string | null;
  readonly usual: UsualTime | null;
  readonly usual_runs: number;
  readonly time: TimeBreakdown | null;
  readonly critical_path: readonly { readonly task_id: string; readonly map_index: number }[];
  /** null: the run has ended. */
  readonly projection: {
    readonly end_date: string;
    readonly late_end_date: string;
    readonly tasks: readonly {
      readonly task_id: string;
      readonly start_date: string;
      readonly end_date: string;
    }[];
  } | null;
  readonly tasks: readonly {
    readonly task_id: string;
    readonly instances: number;
    readonly start_date: string | null;
    readonly end_date: string | null;
  }[];
  readonly task_instances: readonly TimelineInstance[];
}

const LEAST_NAME = 28;
const TOOK = 9;
const LEAST_BAR = 20;
/** Where the width is unknown. */
const WIDTH = 80;

type Mark =
  | "scheduled"
  | "queued"
  | "done"
  | "failed"
  | "running"
  | "deferred"
  | "retry"
  | "check"
  | "expected";

/** In the order of the legend. A later mark covers an earlier one of the same length. */
const MARKS: Readonly<
  Record<Mark, { readonly glyph: string; readonly says: string; readonly style: Style }>
> = {
  scheduled: { glyph: "·", says: "waits for a slot", style: "blue" },
  queued: { glyph: "░", says: "queued", style: "blue" },
  deferred: { glyph: "▒", says: "deferred", style: "magenta" },
  retry: { glyph: "~", says: "waits for a retry", style: "yellow" },
  check: { glyph: "-", says: "waits for its next check", style: "yellow" },
  running: { glyph: "▓", says: "running", style: "cyan" },
  done: { glyph: "█", says: "ran", style: "green" },
  failed: { glyph: "x", says: "failed try", style: "red" },
  expected: { glyph: "□", says: "expected", style: "dim" },
};
const ORDER = Object.keys(MARKS) as Mark[];

interface Piece {
  readonly mark: Mark;
  readonly start: number;
  readonly end: number;
}

interface Line {
  readonly name: string;
  readonly pieces: readonly Piece[];
  readonly took: string;
}

export function timelineLines(terminal: Terminal, timeline: RunTimeline): string[] {
  const width = Math.max(60, Math.min(terminal.width ?? WIDTH, 160));
  const sentences = summary(timeline).flatMap((line) => wrapLine(line, width));
  const lines = taskLines(timeline);
  const times = lines.flatMap(({ pieces }) => pieces.flatMap(({ end, start }) => [start, end]));
  const from = timeline.start_date ? Date.parse(timeline.start_date) : Math.min(...times);
  const to = Math.max(from + 1, Date.parse(timeline.end_date ?? timeline.as_of), ...times);
  if (lines.length === 0 || times.length === 0) return sentences;
  const nameWidth = Math.min(
    Math.max(LEAST_NAME, Math.floor(width / 3)),
    Math.max(4, ...lines.map(({ name }) => displayWidth(name))),
  );
  const barWidth = Math.max(LEAST_BAR, width - nameWidth - TOOK - 6);
  const marks = new Set<Mark>();
  const drawn = lines.map(({ name, pieces, took }) => {
    const cells = draw(pieces, { from, to, width: barWidth });
    for (const mark of cells) if (mark) marks.add(mark);
    return `${pad(truncate(name, nameWidth), nameWidth)}  ${paintBar(terminal, cells)}  ${took.padStart(TOOK)}`.trimEnd();
  });
  const scale = span((to - from) / 1000);
  const axis = `${pad("TASK", nameWidth)}  0${scale.padStart(barWidth - 1)}  ${"TOOK".padStart(TOOK)}`;
  const legend = ORDER.filter((mark) => marks.has(mark)).map(
    (mark) => `${MARKS[mark].glyph} ${MARKS[mark].says}`,
  );
  const isMarked = lines.some(({ name }) => name.startsWith("* "));
  return [
    ...sentences,
    "",
    terminal.paint("bold", axis.trimEnd()),
    ...drawn,
    ...joinedLines([...legend, ...(isMarked ? ["* on the critical path"] : [])], width).map((line) =>
      terminal.paint("dim", line),
    ),
  ];
}

/** As many on a line as fit. */
function joinedLines(texts: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const text of texts) {
    const joined = `${lines.at(-1) ?? ""}   ${text}`;
    if (lines.length > 0 && joined.length <= width) lines[lines.length - 1] = joined;
    else lines.push(text);
  }
  return lines;
}

/** Where the time went, what decided it, and when the run will end. */
function summary(timeline: RunTimeline): string[] {
  const { critical_path: path, end_date, projection, start_date, time, usual, usual_runs } = timeline;
  const lines: string[] = [];
  if (start_date === null || time === null) lines.push("The run has not started.");
  else {
    const ms = Date.parse(end_date ?? timeline.as_of) - Date.parse(start_date);
    const usually = usual
      ? `, usually ${span(usual.p50)} (the last ${count(usual_runs, "successful run")})`
      : "";
    lines.push(`${end_date ? "took" : "so far"} ${span(ms / 1000)}${usually}`);
    const share = (seconds: number) => (ms > 0 ? ` ${Math.round((seconds * 100_000) / ms)} %` : "");
    const parts = (["work", "queue", "wait", "overhead"] as const).map(
      (kind) => `${kind} ${span(time[kind])}${share(time[kind])}`,
    );
    lines.push(parts.join(" · "));
    const names = path.map((step) => instanceName({ ...step, rendered_map_index: null }));
    if (names.length > 0) lines.push(`critical path: ${names.join(" → ")}`);
  }
  if (projection) {
    const late =
      projection.late_end_date === projection.end_date
        ? ""
        : `, in slow runs ${moment(projection.late_end_date)}`;
    lines.push(`expected end: ${moment(projection.end_date)} or later${late}`);
  }
  return lines;
}

function count(n: number, what: string): string {
  return `${n === 1 ? "" : `${n} `}${what}${n === 1 ? "" : "s"}`;
}

/** One per task: the instances of a map share a line. */
function taskLines({
  as_of,
  critical_path: path,
  projection,
  start_date,
  task_instances,
  tasks,
}: RunTimeline): Line[] {
  const critical = new Set(path.map(({ task_id }) => task_id));
  const instances = Map.groupBy(task_instances, ({ task_id }) => task_id);
  const projected = new Map(projection?.tasks.map((task) => [task.task_id, task]));
  const since = start_date === null ? Number.NEGATIVE_INFINITY : Date.parse(start_date);
  return tasks.map(({ end_date, instances: total, start_date: first, task_id }) => {
    const own = instances.get(task_id) ?? [];
    const expected = projected.get(task_id);
    const pieces = own.flatMap((instance) => piecesOf(instance, Date.parse(as_of)));
    if (expected)
      pieces.push({
        mark: "expected",
        start: Date.parse(expected.start_date),
        end: Date.parse(expected.end_date),
      });
    const isMapped = own.some(({ map_index }) => map_index >= 0);
    const took = first && end_date ? span((Date.parse(end_date) - Date.parse(first)) / 1000) : stateOf(own);
    return {
      name: `${critical.has(task_id) ? "*" : " "} ${task_id}${isMapped ? ` ×${total}` : ""}`,
      pieces: pieces.filter(({ end }) => end >= since),
      took,
    };
  });
}

/** The state of a task that took no time, or has not ended. */
function stateOf(instances: readonly TimelineInstance[]): string {
  const states = new Set(instances.map(({ state }) => state ?? "pending"));
  const [state = "pending"] = states;
  if (states.size !== 1 || state === "pending") return "";
  return state === "upstream_failed" ? "upstream" : truncate(state, TOOK);
}

function piecesOf({ intervals }: TimelineInstance, now: number): Piece[] {
  return intervals.map(({ end_date, next_state, start_date, state }) => ({
    mark: markOf(state, next_state, end_date === null),
    start: Date.parse(start_date),
    end: end_date === null ? now : Date.parse(end_date),
  }));
}

function markOf(state: string, next: string | null, goesOn: boolean): Mark {
  if (state === "up_for_retry") return "retry";
  if (state === "up_for_reschedule") return "check";
  if (state !== "running") return state as Mark;
  if (goesOn) return "running";
  return next === "failed" ? "failed" : "done";
}

/** The mark that fills most of each cell. A process has at least one cell. */
function draw(
  pieces: readonly Piece[],
  { from, to, width }: { readonly from: number; readonly to: number; readonly width: number },
): (Mark | null)[] {
  const perCell = (to - from) / width;
  const cellOf = (at: number) => Math.min(width - 1, Math.max(0, Math.floor((at - from) / perCell)));
  const filled = Array.from({ length: width }, () => new Map<Mark, number>());
  for (const { end, mark, start } of pieces) {
    for (let cell = cellOf(start); cell <= cellOf(end); cell++) {
      const [left, right] = [from + cell * perCell, from + (cell + 1) * perCell];
      const ms = Math.min(end, right) - Math.max(start, left);
      if (ms > 0) filled[cell]!.set(mark, (filled[cell]!.get(mark) ?? 0) + ms);
    }
  }
  const cells = filled.map((marks) => longest(marks));
  for (const { mark, start } of pieces)
    if ((mark === "done" || mark === "failed" || mark === "running") && !isWork(cells[cellOf(start)]))
      cells[cellOf(start)] = mark;
  return cells;
}

function isWork(mark: Mark | null | undefined): boolean {
  return mark === "done" || mark === "failed" || mark === "running";
}

function longest(marks: ReadonlyMap<Mark, number>): Mark | null {
  let best: Mark | null = null;
  for (const mark of ORDER)
    if (marks.has(mark) && (best === null || marks.get(mark)! >= marks.get(best)!)) best = mark;
  return best;
}

function paintBar(terminal: Terminal, cells: readonly (Mark | null)[]): string {
  let bar = "";
  for (let at = 0; at < cells.length; ) {
    const mark = cells[at]!;
    let end = at;
    while (end < cells.length && cells[end] === mark) end++;
    const text = (mark === null ? " " : MARKS[mark].glyph).repeat(end - at);
    bar += mark === null ? text : terminal.paint(MARKS[mark].style, text);
    at = end;
  }
  return bar;
}

function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - displayWidth(text)));
}
