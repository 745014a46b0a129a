/**
 * `/deliveries`: notices about ended or retried tasks, groups and runs and about missed deadlines, and their outcome. Airflow
 * has no such resource.
 */
import type { DeadlineAction } from "@tradewind/sdk/manifest";
import { z } from "zod";
import {
  DELIVERY_EVENTS,
  DELIVERY_ORDER,
  DELIVERY_STATES,
  type DeliveryRow,
  findDelivery,
  listDeliveries,
} from "../../store/list/deliveries.ts";
import { reviveDeliveries } from "../../store/notify/deliveries.ts";
import { pageOf } from "../dag/dags.ts";
import type { Resource } from "../server/context.ts";
import { date, int, iso, many, nullableDate, orderBy } from "../server/fields.ts";
import { change } from "../server/idempotent.ts";
import { conflict, notFound } from "../server/problem.ts";
import { taskFilterOf, taskQuery } from "./task-filter.ts";

const deliveryDocument = z
  .object({
    id: z.number(),
    event: z.enum(DELIVERY_EVENTS),
    /** null: not about a deadline. */
    deadline_id: z.number().nullable(),
    dag_id: z.string(),
    dag_run_id: z.string(),
    /** null: about the run or a group. */
    task_id: z.string().nullable(),
    group_id: z.string().nullable(),
    map_index: z.number(),
    kind: z.enum(["function", "webhook", "email", "signal"]),
    /** A connection, an address without secrets, or a signal; null: a function of the DAG. */
    receiver: z.string().nullable(),
    occurred_at: date,
    /** handed: a worker runs the function. dead: failed and no longer retried. */
    state: z.enum(DELIVERY_STATES),
    attempts: z.number(),
    /** null: no further try. */
    next_try_at: nullableDate,
    error: z.string().nullable(),
    ended_at: nullableDate,
  })
  .meta({ id: "Delivery" });

const deliveryQuery = z.strictObject({
  ...taskQuery,
  event: many(z.enum(DELIVERY_EVENTS)).optional(),
  state: many(z.enum(DELIVERY_STATES)).optional(),
  deadline_id: int(0).optional(),
  order_by: orderBy(DELIVERY_ORDER, "-id"),
});
const deliveryParams = z.object({ delivery_id: int(0) });

export const deliveries: Resource = (app, options) => {
  const { database } = options;
  const tags = ["Delivery"];

  app.get(
    "/api/v2/deliveries",
    {
      schema: {
        querystring: deliveryQuery,
        response: { 200: z.object({ deliveries: z.array(deliveryDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const filter = {
        ...taskFilterOf(query),
        events: query.event,
        states: query.state,
        deadlineId: query.deadline_id,
      };
      const { rows, total } = await listDeliveries(database, filter, pageOf(query));
      return { deliveries: rows.map(showDelivery), total_entries: total };
    },
  );

  app.get(
    "/api/v2/deliveries/:delivery_id",
    { schema: { params: deliveryParams, response: { 200: deliveryDocument }, tags } },
    async ({ params: { delivery_id: deliveryId } }) => {
      const row = await findDelivery(database, deliveryId);
      if (row === undefined) throw notFound(`Delivery ${deliveryId} does not exist`);
      return showDelivery(row);
    },
  );

  app.post(
    "/api/v2/deliveries/:delivery_id/retry",
    { schema: { params: deliveryParams, response: { 200: deliveryDocument }, tags } },
    (request) =>
      change(options, request, async (tx) => {
        const { delivery_id: deliveryId } = request.params;
        const [revived] = await reviveDeliveries(tx, [deliveryId]);
        const row = await findDelivery(tx, deliveryId);
        if (row === undefined) throw notFound(`Delivery ${deliveryId} does not exist`);
        if (revived === undefined)
          throw conflict(`Delivery ${deliveryId} is ${row.state}: only dead deliveries can be retried`);
        const deed = {
          action: "retry_delivery",
          dagId: row.dag_id,
          runId: row.run_id,
          details: { delivery: deliveryId },
        };
        return { result: showDelivery(row), deed };
      }),
  );
};

function showDelivery({ action, ...row }: DeliveryRow): z.output<typeof deliveryDocument> {
  const { attempts, dag_id, deadline_id, error, event, group_id, id, map_index, run_id, state, task_id } =
    row;
  return {
    ...{ id, event, deadline_id, dag_id, dag_run_id: run_id, task_id, group_id, map_index },
    kind: action.kind,
    receiver: receiverOf(action),
    occurred_at: iso(row.occurred_at),
    state,
    attempts,
    next_try_at: state === "pending" ? iso(row.next_try_at) : null,
    error,
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
