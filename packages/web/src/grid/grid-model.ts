/** The grid as the server sends it, in a form that can be drawn: one column of bytes per run. Pure. */
import { bytesOf } from "../api/columns.ts";
import type { components } from "../api/schema.gen.ts";
import { ranksOf } from "../state/worst.ts";
import { median } from "../time/median.ts";

export type GridAnswer = components["schemas"]["UiGrid"];
export type GridRunAnswer = components["schemas"]["UiGridColumn"];
export type GridTask = components["schemas"]["UiTreeTask"];
export type GridGroup = components["schemas"]["UiTreeGroup"];
type SentRun = components["schemas"]["UiGridRun"];

/** How many instances of a mapped task have the state of a byte. */
export type StateCounts = readonly (readonly [byte: number, instances: number])[];

export interface GridColumn {
  readonly runId: string;
  readonly runType: string;
  readonly state: string;
  readonly logicalDate: number | null;
  readonly runAfter: number;
  readonly started: number | null;
  readonly ended: number | null;
  readonly version: number;
  readonly hasNote: boolean;
  /** By position; positions of removed tasks follow those of the tasks. */
  readonly states: Uint8Array;
  readonly tries: Uint8Array | null;
  readonly mapped: ReadonlyMap<number, StateCounts>;
  /** The positions of the tasks that have failed. */
  readonly failed: readonly number[];
}

export interface GridModel {
  readonly version: number | null;
  /** The meaning of each byte; 0 is a task without an instance. */
  readonly legend: readonly string[];
  readonly ranks: Uint8Array;
  readonly tasks: readonly GridTask[];
  readonly groups: readonly GridGroup[];
  readonly edges: GridAnswer["edges"];
  readonly removed: readonly string[];
  /** The oldest first. */
  readonly columns: readonly GridColumn[];
}

const decoded = new WeakMap<SentRun, { readonly key: string; readonly column: GridColumn }>();

/** @param pages As loaded: the latest runs first, each page's own runs from old to new. */
export function gridModel(pages: readonly GridAnswer[]): GridModel {
  const [latest] = pages;
  if (latest === undefined) throw new Error("A grid has at least one page");
  const removed = [...new Set(pages.flatMap((page) => page.removed))].sort();
  const places = new Map(removed.map((taskId, index) => [taskId, latest.tasks.length + index]));
  const key = removed.join("\0");
  const columns = pages.toReversed().flatMap((page) =>
    page.runs.map((run) => {
      const known = decoded.get(run);
      if (known?.key === key) return known.column;
      const column = columnOf(run, page.task_states.indexOf("failed"), (at) =>
        at < page.tasks.length ? at : places.get(page.removed[at - page.tasks.length]!)!,
      );
      decoded.set(run, { key, column });
      return column;
    }),
  );
  const seen = new Set<string>();
  return {
    version: latest.version,
    legend: latest.task_states,
    ranks: ranksOf(latest.task_states),
    tasks: latest.tasks,
    groups: latest.groups,
    edges: latest.edges,
    removed,
    // A run that was created while older pages were loaded can be in two of them.
    columns: columns.filter(({ runId }) => !seen.has(runId) && seen.add(runId)),
  };
}

function columnOf(run: SentRun, failed: number, placeOf: (at: number) => number): GridColumn {
  const moved = (sent: Uint8Array): Uint8Array => {
    if (sent.every((_, at) => placeOf(at) === at)) return sent;
    const to = new Uint8Array(Math.max(sent.length, ...Array.from(sent, (_, at) => placeOf(at) + 1)));
    for (const [at, byte] of sent.entries()) to[placeOf(at)] = byte;
    return to;
  };
  const states = moved(bytesOf(run.states));
  return {
    runId: run.run_id,
    runType: run.run_type,
    state: run.state,
    logicalDate: run.logical_date === null ? null : Date.parse(run.logical_date),
    runAfter: Date.parse(run.run_after),
    started: run.started_at === null ? null : Date.parse(run.started_at),
    ended: run.ended_at === null ? null : Date.parse(run.ended_at),
    version: run.version,
    hasNote: run.has_note,
    states,
    tries: run.tries === null ? null : moved(bytesOf(run.tries)),
    mapped: new Map(run.mapped.map(({ at, counts }) => [placeOf(at), counts as StateCounts])),
    failed: [...states.keys()].filter((place) => states[place] === failed),
  };
}

/**
 * The pages with one run replaced, or appended if it is new. Undefined: the run belongs to another version of the tasks, so all
 * has to be read again.
 */
export function withRun(
  pages: readonly GridAnswer[],
  { removed, run, task_count: taskCount, version }: GridRunAnswer,
): readonly GridAnswer[] | undefined {
  const [latest, ...older] = pages;
  if (latest === undefined || latest.version !== version || latest.tasks.length !== taskCount)
    return undefined;
  const holder = pages.find((page) => page.runs.some(({ run_id }) => run_id === run.run_id));
  const target = holder ?? latest;
  if (removed.some((taskId, at) => target.removed[at] !== taskId)) return undefined;
  if (holder === undefined) {
    const newest = latest.runs.at(-1);
    // A run of an older date may belong to a page that is not loaded, or lies between two runs.
    if (newest !== undefined && newest.run_after > run.run_after) return undefined;
    return [{ ...latest, runs: [...latest.runs, run] }, ...older];
  }
  return pages.map((page) =>
    page === holder
      ? { ...page, runs: page.runs.map((each) => (each.run_id === run.run_id ? run : each)) }
      : page,
  );
}

/** The worst state of several positions. */
export function worstOf({ ranks }: GridModel, { states }: GridColumn, places: readonly number[]): number {
  let worst = 0;
  for (const place of places) {
    const byte = states[place] ?? 0;
    if (ranks[byte]! < ranks[worst]!) worst = byte;
  }
  return worst;
}

/**
 * The states of a mapped task in `size` segments of its cell, the worst first: each state in proportion to its instances, and
 * every state of a failure at least once.
 */
export function segmentsOf({ ranks }: Pick<GridModel, "ranks">, counts: StateCounts, size: number): number[] {
  const ordered = counts.toSorted(([a], [b]) => ranks[a]! - ranks[b]!);
  const total = ordered.reduce((sum, [, instances]) => sum + instances, 0);
  const segments: number[] = [];
  let before = 0;
  for (const [byte, instances] of ordered) {
    const end = Math.round(((before + instances) / total) * size);
    const least = segments.length < size ? 1 : 0;
    for (let left = Math.max(least, end - segments.length); left > 0 && segments.length < size; left -= 1)
      segments.push(byte);
    before += instances;
  }
  return segments;
}

/** By position: in how many of the runs the task has failed. */
export function failuresOf({ columns, removed, tasks }: GridModel): number[] {
  const failures = new Array<number>(tasks.length + removed.length).fill(0);
  for (const { failed } of columns) for (const place of failed) failures[place]! += 1;
  return failures;
}

/** How long a run took, or has taken until now; null before its start. */
export function tookOf({ ended, started }: GridColumn, now: number): number | null {
  return started === null ? null : Math.max(0, (ended ?? now) - started);
}

/** Median of the successful runs; null without one. */
export function usualOf(columns: readonly GridColumn[]): number | null {
  return median(
    columns
      .filter(({ state }) => state === "success")
      .map((column) => tookOf(column, 0))
      .filter((ms) => ms !== null),
  );
}
