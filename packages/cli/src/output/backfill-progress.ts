/** The progress of a backfill in one line that fits the terminal. */
import { durationText } from "@tradewind/sdk/wording";
import type { Backfill, BackfillProgress } from "../client/backfills.ts";
import type { Style, Terminal } from "../terminal.ts";
import { displayWidth, truncate } from "./table.ts";

/** Width of the bar: optional parts are dropped to keep it readable, the name is cut to keep it at all. */
const BAR = { least: 4, readable: 12, most: 24 };
/** Minimum width of the DAG's name. */
const NAME_LEAST = 8;
const GAP = " · ";
export const STYLES: Readonly<Record<Backfill["state"], Style>> = {
  running: "cyan",
  paused: "yellow",
  done: "green",
  failed: "red",
  cancelled: "red",
};

interface Part {
  readonly text: string;
  readonly style?: Style;
  /** Dropped if there is no room; the last part first. */
  readonly isOptional?: true;
}

/** @param width Available columns; undefined: no limit. */
export function progressLine(
  terminal: Pick<Terminal, "paintNote">,
  progress: BackfillProgress,
  width: number | undefined,
): string {
  const { backfill, percent } = progress;
  const parts = partsOf(progress);
  const room = (width ?? Number.POSITIVE_INFINITY) - 2;
  const tailWidth = () => displayWidth(parts.map(({ text }) => text).join(GAP));
  const excess = (cells: number) => displayWidth(backfill.dag_id) + cells + tailWidth() - room;
  while (excess(BAR.readable) > 0) {
    const last = parts.findLastIndex(({ isOptional }) => isOptional);
    if (last < 0) break;
    parts.splice(last, 1);
  }
  const nameRoom = Math.max(NAME_LEAST, displayWidth(backfill.dag_id) - Math.max(0, excess(BAR.least)));
  const name = truncate(backfill.dag_id, nameRoom);
  const cells = Math.min(BAR.most, Math.max(BAR.least, room - displayWidth(name) - tailWidth()));
  const filled = Math.floor((percent / 100) * cells);
  const bar = `${"█".repeat(filled)}${"░".repeat(cells - filled)}`;
  const tail = parts.map(({ style, text }) => (style ? terminal.paintNote(style, text) : text)).join(GAP);
  return `${name} ${terminal.paintNote(STYLES[backfill.state], bar)} ${tail}`;
}

function partsOf({ backfill, percent, remaining_seconds, runs, tasks }: BackfillProgress): Part[] {
  const failed = `${tasks.failed} failed`;
  return [
    { text: `${percent.toFixed(1)} %` },
    { text: `runs ${runs.finished}/${runs.total}` },
    { text: `tasks ${tasks.finished}/${tasks.total}`, isOptional: true },
    { text: `${tasks.succeeded} succeeded`, isOptional: true },
    { text: `${tasks.skipped} skipped`, isOptional: true },
    tasks.failed > 0 ? { text: failed, style: "red" } : { text: failed },
    ...timeLeft(backfill, remaining_seconds),
  ];
}

/** A waiting backfill has no pace, and before the end of the first run the pace is unknown. */
function timeLeft(backfill: Backfill, seconds: number | null): Part[] {
  if (backfill.completed_at !== null) return [];
  if (backfill.waits_because !== null) return [{ text: `waits: ${backfill.waits_because}` }];
  return [{ text: seconds === null ? "time left unknown" : `${remainingText(seconds)} left` }];
}

/** An estimate: whole seconds at most. */
export function remainingText(seconds: number): string {
  return seconds < 1 ? "less than 1 s" : `about ${durationText(Math.round(seconds) * 1000)}`;
}
