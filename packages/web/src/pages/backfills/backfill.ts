import type { components } from "../../api/schema.gen.ts";

export type Backfill = components["schemas"]["BackfillResponse"];
export type Progress = components["schemas"]["BackfillProgressResponse"];

export const BACKFILLS = "/api/v2/backfills";
/** What shows a backfill. */
export const SHOW_BACKFILLS = [
  BACKFILLS,
  "/api/v2/backfills/{backfill_id}",
  "/api/v2/backfills/{backfill_id}/progress",
  "/ui/home",
];

export const REPROCESS = {
  none: "Keep existing runs",
  failed: "Run failed dates again",
  completed: "Run all dates again",
} as const;

/** As a state whose look is known: a backfill that is done has succeeded. */
export function lookOfBackfill({ state }: Backfill): string {
  return { running: "running", paused: "deferred", done: "success", failed: "failed", cancelled: "skipped" }[
    state
  ];
}

export function isOpen({ state }: Backfill): boolean {
  return state === "running" || state === "paused";
}
