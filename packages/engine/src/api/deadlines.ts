/**
 * `/deadlines`: by when runs and tasks have to have succeeded, which they missed, and what became of telling it. Airflow
 * has no public resource for it.
 */
import type { DeadlineAction } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { reviveDeliveries } from "../store/deadline-deliveries.ts";
import {
  DEADLINE_ORDER,
  DEADLINE_STATES,
  DELIVERY_ORDER,
  DELIVERY_STATES,
  type DeadlineRow,
  type DeliveryRow,
  findDelivery,
  listDeadlines,
  listDeliveries,
} from "../store/list/deadlines.ts";
import type { Resource } from "./context.ts";
import { date, id, int, iso, many, nullableDate, orderBy, pageQuery } from "./fields.ts";
import { change } from "./idempotent.ts";
import { conflict, notFound } from "./problem.ts";

const deadlineDocument = z
  .object({
    id: z.number(),
    dag_id: z.string(),
    dag_run_id: z.string(),
    /** null: of the run. */
    task_id: z.string().nullable(),
    /** Its place among the deadlines of the DAG or the task. */
    ordinal: z.number(),
    after: z.string(),
    due_at: date,
    state: z.enum(DEADLINE_STATES),
    decided_at: nullableDate,
    dag_run_state: z.string(),
    deliveries: z.number(),
    /** Of those: how many have been made, and how many were given up. */
    done_deliveries: z.number(),
    dead_deliveries: z.number(),
  })
  .meta({ id: "Deadline" });

const deliveryDocument = z
  .object({
    id: z.number(),
    deadline_id: z.number(),
    dag_id: z.string(),
    dag_run_id: z.string(),
    task_id: z.string().nullable(),
    kind: z.enum(["function", "webhook", "email", "signal"]),
    /** A connection, an address without what may be secret in it, a signal; null: a function of the DAG. */
    receiver: z.string().nullable(),
    due_at: date,
    missed_at: date,
    /** handed: a worker has the function. dead: given up. */
    state: z.enum(DELIVERY_STATES),
    attempts: z.number(),
    /** null: there is none. */
    next_try_at: nullableDate,
    error: z.string().nullable(),
    ended_at: nullableDate,
  })
  .meta({ id: "DeadlineDelivery" });

const filters = { ...pageQuery, dag_id: id.optional(), dag_run_id: id.optional(), task_id: id.optional() };
const deadlineQuery = z.strictObject({
  ...filters,
  state: many(z.enum(DEADLINE_STATES)).optional(),
  order_by: orderBy(DEADLINE_ORDER, "-due_at"),
});
const deliveryQuery = z.strictObject({
  ...filters,
  state: many(z.enum(DELIVERY_STATES)).optional(),
  deadline_id: int(0).optional(),
  order_by: orderBy(DELIVERY_ORDER, "-id"),
});
const deliveryParams = z.object({ delivery_id: int(0) });

export const deadlines: Resource = (app, options) => {
  const { database } = options;
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

  app.get(
    "/api/v2/deadlines/deliveries",
    {
      schema: {
        querystring: deliveryQuery,
        response: { 200: z.object({ deliveries: z.array(deliveryDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const filter = {
        dagId: query.dag_id,
        runId: query.dag_run_id,
        taskId: query.task_id,
        states: query.state,
        deadlineId: query.deadline_id,
      };
      const page = { limit: query.limit, offset: query.offset, orderBy: query.order_by };
      const { rows, total } = await listDeliveries(database, filter, page);
      return { deliveries: rows.map(showDelivery), total_entries: total };
    },
  );

  app.post(
    "/api/v2/deadlines/deliveries/:delivery_id/retry",
    { schema: { params: deliveryParams, response: { 200: deliveryDocument }, tags } },
    (request) =>
      change(options, request, async (tx) => {
        const { delivery_id: deliveryId } = request.params;
        const [revived] = await reviveDeliveries(tx, [deliveryId]);
        const row = await findDelivery(tx, deliveryId);
        if (row === undefined) throw notFound(`There is no delivery ${deliveryId}`);
        if (revived === undefined)
          throw conflict(
            `Delivery ${deliveryId} is ${row.state}: only dead ones, which have been given up, begin again`,
          );
        const deed = {
          action: "retry_deadline_delivery",
          dagId: row.dag_id,
          runId: row.run_id,
          details: { delivery: deliveryId },
        };
        return { result: showDelivery(row), deed };
      }),
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

function showDelivery(row: DeliveryRow): z.output<typeof deliveryDocument> {
  return {
    id: row.id,
    deadline_id: row.deadline_id,
    dag_id: row.dag_id,
    dag_run_id: row.run_id,
    task_id: row.task_id === "" ? null : row.task_id,
    kind: row.action.kind,
    receiver: receiverOf(row.action),
    due_at: iso(row.due_at),
    missed_at: iso(row.missed_at),
    state: row.state,
    attempts: row.attempts,
    next_try_at: row.state === "pending" ? iso(row.next_try_at) : null,
    error: row.error,
    ended_at: iso(row.ended_at),
  };
}

/** The path of a webhook is often its password. */
function receiverOf(action: DeadlineAction): string | null {
  switch (action.kind) {
    case "function":
      return null;
    case "email":
      return action.to.join(", ");
    case "signal":
      return action.namespace === "default" ? action.key : `${action.namespace}/${action.key}`;
    case "webhook":
      return /^https?:/i.test(action.to) ? new URL(action.to).origin : action.to;
  }
}
