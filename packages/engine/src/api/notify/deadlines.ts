/**
 * `/deadlines`: the deadlines of runs and tasks, and their outcome. The notices of missed deadlines are in `/deliveries`.
 * Airflow has no public resource for deadlines.
 */
import { z } from "zod";
import {
  DEADLINE_ORDER,
  DEADLINE_STATES,
  type DeadlineRow,
  listDeadlines,
} from "../../store/list/deadlines.ts";
import { pageOf } from "../dag/dags.ts";
import type { Resource } from "../server/context.ts";
import { date, iso, many, nullableDate, orderBy } from "../server/fields.ts";
import { taskFilterOf, taskQuery } from "./task-filter.ts";

const deadlineDocument = z
  .object({
    id: z.number(),
    dag_id: z.string(),
    dag_run_id: z.string(),
    /** null: deadline of the run. */
    task_id: z.string().nullable(),
    /** Its index among the deadlines of the DAG or task. */
    ordinal: z.number(),
    after: z.string(),
    due_at: date,
    state: z.enum(DEADLINE_STATES),
    decided_at: nullableDate,
    dag_run_state: z.string(),
    deliveries: z.number(),
    /** How many deliveries have succeeded, and how many are dead. */
    done_deliveries: z.number(),
    dead_deliveries: z.number(),
  })
  .meta({ id: "Deadline" });

const deadlineQuery = z.strictObject({
  ...taskQuery,
  state: many(z.enum(DEADLINE_STATES)).optional(),
  order_by: orderBy(DEADLINE_ORDER, "-due_at"),
});
export const deadlines: Resource = (app, { database }) => {
  const tags = ["Deadline"];

  app.get(
    "/api/v2/deadlines",
    {
      schema: {
        querystring: deadlineQuery,
        response: { 200: z.object({ deadlines: z.array(deadlineDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const filter = { ...taskFilterOf(query), states: query.state };
      const { rows, total } = await listDeadlines(database, filter, pageOf(query));
      return { deadlines: rows.map(showDeadline), total_entries: total };
    },
  );
};

function showDeadline(row: DeadlineRow): z.output<typeof deadlineDocument> {
  return {
    id: row.id,
    dag_id: row.dag_id,
    dag_run_id: row.run_id,
    task_id: row.task_id === "" ? null : row.task_id,
    ordinal: row.ordinal,
    after: row.counts_from,
    due_at: iso(row.due_at),
    state: row.state,
    decided_at: iso(row.decided_at),
    dag_run_state: row.run_state,
    deliveries: row.deliveries,
    done_deliveries: row.done,
    dead_deliveries: row.dead,
  };
}
