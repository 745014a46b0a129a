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
import type { Resource } from "../server/context.ts";
import { date, id, iso, many, nullableDate, orderBy, pageQuery } from "../server/fields.ts";

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

const filters = { ...pageQuery, dag_id: id.optional(), dag_run_id: id.optional(), task_id: id.optional() };
const deadlineQuery = z.strictObject({
  ...filters,
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
      const filter = {
        dagId: query.dag_id,
        runId: query.dag_run_id,
        taskId: query.task_id,
        states: query.state,
      };
      const page = { limit: query.limit, offset: query.offset, orderBy: query.order_by };
      const { rows, total } = await listDeadlines(database, filter, page);
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
