/** Whether the previous run allows a task to start: `dependsOnPast` and `waitForDownstream`. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** Instances that wait for the previous run. */
export interface PastQuestion {
  readonly runId: number;
  /** The task itself and, with `waitForDownstream`, its direct downstream. */
  readonly taskIds: readonly string[];
}

/**
 * True if there is no earlier run by logical date, or if all instances of these tasks in the previous run succeeded or
 * were skipped. A previous run that has not started has no instances yet: false. The first date of a backfill has no
 * previous run. Index: dag_run_logical_date.
 */
const OPEN = statement(
  "past-open",
  `SELECT q.place FROM unnest($1::int[], $2::bigint[]) AS q(place, run)
   JOIN dag_run r ON r.id = q.run
   LEFT JOIN LATERAL (
     SELECT p.id, p.state FROM dag_run p
     WHERE p.dag_id = r.dag_id AND p.logical_date < r.logical_date ORDER BY p.logical_date DESC LIMIT 1
   ) AS before ON true
   WHERE before.id IS NULL
     OR EXISTS (SELECT 1 FROM backfill_date b
                WHERE b.backfill_id = r.backfill_id AND b.ordinal = 0 AND b.dag_run_id = r.id)
     OR (
     (before.state <> 'queued' OR EXISTS (SELECT 1 FROM task_instance t WHERE t.dag_run_id = before.id))
     AND NOT EXISTS (
       SELECT 1 FROM unnest($3::int[], $4::text[]) AS k(place, task)
       JOIN task_instance t ON t.dag_run_id = before.id AND t.task_id = k.task
       WHERE k.place = q.place AND t.state NOT IN ('success', 'skipped')))`,
);

/** The indexes of the questions that are true. */
export async function openPast(db: Connection, questions: readonly PastQuestion[]): Promise<Set<number>> {
  const tasks = questions.flatMap((question, place) => question.taskIds.map((task) => ({ place, task })));
  const rows = await db.rows<{ place: number }>(OPEN, [
    questions.map((_, place) => place),
    questions.map((question) => question.runId),
    tasks.map((each) => each.place),
    tasks.map((each) => each.task),
  ]);
  return new Set(rows.map((row) => row.place));
}
