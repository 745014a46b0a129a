/** The latest runs of a DAG as bars: height is duration, colour is state. Pure. */
import { bytesOf } from "../../api/columns.ts";
import type { components } from "../../api/schema.gen.ts";
import { median } from "../../time/median.ts";

type RunBars = components["schemas"]["UiRunBars"];

export interface BarRun {
  readonly runId: string;
  readonly state: string;
  readonly started: number | null;
  readonly ended: number | null;
  readonly runAfter: number | null;
  readonly logicalDate: number | null;
}

export function runsOf(bars: RunBars, legend: readonly string[]): BarRun[] {
  const states = bytesOf(bars.states);
  return bars.run_ids.map((runId, at) => ({
    runId,
    state: legend[states[at] ?? 0] ?? "queued",
    started: bars.started[at] ?? null,
    ended: bars.ended[at] ?? null,
    runAfter: bars.run_after[at] ?? null,
    logicalDate: bars.logical_dates[at] ?? null,
  }));
}

/** Of a run that has not ended, until now. Null: it has not started. */
export function tookOf({ started, ended }: BarRun, now: number): number | null {
  return started === null ? null : Math.max(0, (ended ?? now) - started);
}

/** Median duration of the successful runs; null without one. */
export function usualOf(runs: readonly BarRun[]): number | null {
  return median(
    runs
      .filter(({ state, started, ended }) => state === "success" && started !== null && ended !== null)
      .map(({ started, ended }) => ended! - started!),
  );
}

export const BAR_STEP = 5;
const BAR_WIDTH = 4;

/**
 * One path per state, right-aligned in `slots` bars. A failed run that was short gets at least half of the height, so that it
 * can be seen.
 */
export function barPaths(
  runs: readonly BarRun[],
  { slots, height, now }: { readonly slots: number; readonly height: number; readonly now: number },
): Map<string, string> {
  const shown = runs.slice(-slots);
  const most = Math.max(1, ...shown.map((run) => tookOf(run, now) ?? 0));
  const paths = new Map<string, string>();
  for (const [index, run] of shown.entries()) {
    const share = (tookOf(run, now) ?? 0) / most;
    const least = run.state === "failed" ? height / 2 : 2;
    const tall = Math.max(least, Math.round(share * height));
    const x = (slots - shown.length + index) * BAR_STEP;
    const bar = `M${x} ${height}v${-tall}h${BAR_WIDTH}v${tall}z`;
    paths.set(run.state, (paths.get(run.state) ?? "") + bar);
  }
  return paths;
}
