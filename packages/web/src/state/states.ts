/** How states look: one word, one colour and one glyph each, the same in every element and on every canvas. */
import type { components } from "../api/schema.gen.ts";

/** As the API has them; `pending` is its null. */
type TaskState = NonNullable<components["schemas"]["TaskInstanceResponse"]["state"]> | "pending";

/** What a page shows for a run or task; the states of runs are among those of tasks. */
export interface StateLook {
  readonly label: string;
  /** A custom property of tokens.css. */
  readonly color: `--s-${string}`;
  readonly glyph: GlyphName;
  /** Dark on light fills, so that the glyph has enough contrast. */
  readonly ink: "dark" | "light";
  /** Drawn as an outline instead of a filled square. */
  readonly isOutlined?: boolean;
}

export type GlyphName = keyof typeof GLYPHS;

/** Of glyphs on filled squares, in elements and on canvases. */
export const INK = { dark: "oklch(24% 0.02 255)", light: "oklch(100% 0 0)" } as const;

/** Paths in a box of 16 by 16, stroked 1.75 wide with round ends. */
export const GLYPHS = {
  check: "M4.2 8.4l2.6 2.6 5-5.6",
  cross: "M5 5l6 6M11 5l-6 6",
  play: "M6 4.4v7.2l5.8-3.6z",
  pause: "M6 4.8v6.4M10 4.8v6.4",
  dots: "M4.4 8h.01M8 8h.01M11.6 8h.01",
  ring: "M8 5.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 1 0 0-5.6z",
  retry: "M11.6 6.2A4 4 0 1 0 12 8.6M11.9 3.8v2.6H9.3",
  slash: "M5 11l6-6",
  skip: "M3.8 9.6c1-3 5.2-4 7.4-1.2M11.6 5.4v3.2H8.4",
  dash: "M5 8h6",
  exclamation: "M8 4.4v4.4M8 11.4h.01",
} as const;

export const TASK_LOOKS: Readonly<Record<TaskState, StateLook>> = {
  pending: { label: "Pending", color: "--s-pending", glyph: "dash", ink: "dark", isOutlined: true },
  scheduled: { label: "Scheduled", color: "--s-scheduled", glyph: "ring", ink: "dark" },
  queued: { label: "Queued", color: "--s-queued", glyph: "dots", ink: "dark" },
  running: { label: "Running", color: "--s-running", glyph: "play", ink: "light" },
  restarting: { label: "Restarting", color: "--s-running", glyph: "retry", ink: "light" },
  up_for_retry: { label: "Up for retry", color: "--s-retry", glyph: "retry", ink: "dark" },
  up_for_reschedule: { label: "Rescheduled", color: "--s-deferred", glyph: "retry", ink: "light" },
  deferred: { label: "Deferred", color: "--s-deferred", glyph: "pause", ink: "light" },
  success: { label: "Success", color: "--s-success", glyph: "check", ink: "light" },
  failed: { label: "Failed", color: "--s-failed", glyph: "cross", ink: "light" },
  skipped: { label: "Skipped", color: "--s-skipped", glyph: "skip", ink: "dark" },
  upstream_failed: {
    label: "Upstream failed",
    color: "--s-upstream",
    glyph: "slash",
    ink: "light",
    isOutlined: true,
  },
  removed: { label: "Removed", color: "--s-pending", glyph: "dash", ink: "dark", isOutlined: true },
};

/** Looks of facts that are no states, for the same glyphs: a run that is late, something that needs a look. */
const OTHER_LOOKS: Readonly<Record<string, StateLook>> = {
  late: { label: "Late", color: "--s-retry", glyph: "exclamation", ink: "dark" },
};

const UNKNOWN: StateLook = {
  label: "No state",
  color: "--s-pending",
  glyph: "dash",
  ink: "dark",
  isOutlined: true,
};

/** The look of a state of a task or run; null is a task without an instance. */
export function lookOf(state: string | null | undefined): StateLook {
  return (
    (TASK_LOOKS as Readonly<Record<string, StateLook>>)[state ?? ""] ?? OTHER_LOOKS[state ?? ""] ?? UNKNOWN
  );
}

const FINISHED: ReadonlySet<string> = new Set(["success", "failed", "skipped", "upstream_failed", "removed"]);

export function isFinished(state: string | null | undefined): boolean {
  return FINISHED.has(state ?? "");
}
