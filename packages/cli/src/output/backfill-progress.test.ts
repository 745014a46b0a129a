import { describe, expect, it } from "vitest";
import type { Backfill, BackfillProgress } from "../client/backfills.ts";
import { progressLine, remainingText } from "./backfill-progress.ts";
import { displayWidth } from "./table.ts";

const PLAIN = { paintNote: (_: unknown, text: string) => text };
const TALLY = { total: 180, finished: 78, succeeded: 76, skipped: 2, failed: 0, running: 2 };

function line(
  width: number | undefined,
  change: Partial<BackfillProgress> = {},
  backfill: Partial<Backfill> = {},
): string {
  const progress = {
    backfill: { dag_id: "revenue", state: "running", completed_at: null, waits_because: null, ...backfill },
    runs: { ...TALLY, total: 90, finished: 38, elsewhere: 0, cleared: 0 },
    tasks: TALLY,
    percent: 43.3,
    eta: null,
    remaining_seconds: 130,
    ...change,
  } as BackfillProgress;
  return progressLine(PLAIN, progress, width);
}

describe("progress line of a backfill", () => {
  it("fits 80 columns, with the time left", () => {
    const text = line(79);
    expect(text).toMatch(/^revenue [█░]+ 43\.3 % · runs 38\/90 · .*0 failed · about 2 m 10 s left$/);
    expect(displayWidth(text)).toBeLessThanOrEqual(79);
  });

  it("fits 80 columns with any name and figures", () => {
    const tasks = { ...TALLY, total: 1_234_567, finished: 1_000_000, failed: 12_345 };
    const runs = { ...tasks, total: 100_000, finished: 99_999, elsewhere: 0, cleared: 0 };
    const text = line(
      79,
      { tasks, runs, percent: 99.9 },
      { dag_id: "a_dag_with_a_name_as_long_as_names_may_get" },
    );
    expect(displayWidth(text)).toBeLessThanOrEqual(79);
    expect(text).toMatch(/^a_dag_.*… █+░ 99\.9 % · runs 99999\/100000 · 12345 failed · about/);
  });

  it("shows all parts without a width limit", () => {
    expect(line(undefined)).toBe(
      `revenue ${"█".repeat(10)}${"░".repeat(14)} 43.3 % · runs 38/90 · tasks 78/180 · 76 succeeded · 2 skipped · 0 failed · about 2 m 10 s left`,
    );
  });

  it("shows an unknown time left, the reason of a wait, and neither at the end", () => {
    expect(line(79, { remaining_seconds: null })).toMatch(/ · time left unknown$/);
    expect(line(79, {}, { waits_because: "the DAG is paused" })).toMatch(/ · waits: the DAG is paused$/);
    expect(line(79, { percent: 100 }, { completed_at: "2026-01-01T00:00:00Z" })).toMatch(/ · 0 failed$/);
  });
});

it("rounds the time left to whole seconds and shows less than 1 s below one", () => {
  expect([0.195, 4.1, 125].map(remainingText)).toEqual(["less than 1 s", "about 4 s", "about 2 m 5 s"]);
});
