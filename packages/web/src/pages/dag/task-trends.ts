/** The rows of the tasks of a DAG: their latest runs, and their sorting. Pure. */
import { bytesOf } from "../../api/columns.ts";
import type { BarRun } from "../dags/bar-shapes.ts";

/** As the server sends them: columns with one value per run. */
interface Trends {
  readonly run_ids: readonly string[];
  readonly run_after: readonly (number | null)[];
  readonly task_states: readonly string[];
  readonly tasks: readonly TaskTrend[];
}

interface TaskTrend {
  readonly task_id: string;
  readonly states: string;
  readonly durations: readonly (number | null)[];
  readonly p50: number | null;
  readonly p95: number | null;
  readonly ended: number;
  readonly failed: number;
  readonly retried: number;
}

export interface TaskRow extends TaskTrend {
  readonly runs: readonly BarRun[];
  /** Of the runs in which it has ended; null: in none. */
  readonly failureRate: number | null;
}

export function taskRows({ run_after, run_ids, task_states: legend, tasks }: Trends): TaskRow[] {
  return tasks.map((task) => {
    const states = bytesOf(task.states);
    const runs = run_ids.map((runId, at) => {
      const took = task.durations[at] ?? null;
      return {
        runId,
        state: legend[states[at] ?? 0] ?? "none",
        started: took === null ? null : 0,
        ended: took,
        runAfter: run_after[at] ?? null,
        logicalDate: null,
      };
    });
    return {
      ...task,
      runs: runs.filter(({ state }) => state !== "none"),
      failureRate: task.ended === 0 ? null : task.failed / task.ended,
    };
  });
}

const KEYS = {
  p50: ({ p50 }: TaskRow) => p50,
  p95: ({ p95 }: TaskRow) => p95,
  failures: ({ failureRate }: TaskRow) => failureRate,
  retries: ({ retried }: TaskRow) => retried,
} as const;

/** @param orderBy A key, with "-" before it for the largest first; any other: as in the graph. */
export function sortedTasks(rows: readonly TaskRow[], orderBy: string): readonly TaskRow[] {
  const isDown = orderBy.startsWith("-");
  const name = orderBy.replace(/^-/, "");
  if (name === "task_id")
    return rows.toSorted((a, b) => a.task_id.localeCompare(b.task_id) * (isDown ? -1 : 1));
  const key = KEYS[name as keyof typeof KEYS];
  if (key === undefined) return rows;
  const missing = isDown ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return rows.toSorted((a, b) => ((key(a) ?? missing) - (key(b) ?? missing)) * (isDown ? -1 : 1));
}
