/** `/triggers`: active triggers. Equal waits share one row. */
import { z } from "zod";
import {
  findTrigger,
  listTriggers,
  TRIGGER_ORDER,
  TRIGGER_STATES,
  type TriggerRow,
} from "../../store/list/triggers.ts";
import { listWaiting } from "../../store/list/waiting.ts";
import type { Resource } from "../server/context.ts";
import {
  cursorPageOf,
  cursorQuery,
  date,
  id,
  int,
  iso,
  many,
  nullableDate,
  orderBy,
} from "../server/fields.ts";
import { notFound } from "../server/problem.ts";
import { argsText, maskedArgs, memberDocument, memberStates } from "./trigger-args.ts";
import { showWait, waitDocument } from "./waiting.ts";

const runner = z.object({ id: z.number(), hostname: z.string().nullable(), is_alive: z.boolean() });

const triggerShape = {
  id: z.number(),
  kind: z.string(),
  args: z.any(),
  /** The arguments as one line of text. */
  args_text: z.string(),
  /** The members of a joint wait; null: not a joint wait. */
  members: z.array(memberDocument).nullable(),
  /** null: built in. */
  bundle_hash: z.string().nullable(),
  queue: z.string(),
  replicas: z.number(),
  state: z.enum(TRIGGER_STATES),
  /** Set for the trigger of a DAG's schedule. */
  dag_id: z.string().nullable(),
  created_at: date,
  wake_at: nullableDate,
  claimed_at: nullableDate,
  triggerer: runner.nullable(),
  standby: runner.nullable(),
  last_polled_at: nullableDate,
  waiting_tasks: z.number(),
};
const listedTrigger = z.object(triggerShape).meta({ id: "Trigger" });
const triggerDocument = z
  .object({ ...triggerShape, waits: z.array(waitDocument) })
  .meta({ id: "TriggerWithWaits" });

const MAX_INT8 = Number.MAX_SAFE_INTEGER;
const WAITS_SHOWN = 100;

export const triggers: Resource = (app, { database }) => {
  const tags = ["Trigger"];

  app.get(
    "/api/v2/triggers",
    {
      schema: {
        querystring: z.strictObject({
          ...cursorQuery,
          kind: many(id).optional(),
          queue: many(id).optional(),
          state: many(z.enum(TRIGGER_STATES)).optional(),
          dag_id: id.optional(),
          triggerer_id: int(1, MAX_INT8).optional(),
          order_by: orderBy(TRIGGER_ORDER, "id"),
        }),
        response: {
          200: z.object({
            triggers: z.array(listedTrigger),
            total_entries: z.number().nullable(),
            next_cursor: z.string().nullable(),
            previous_cursor: z.string().nullable(),
          }),
        },
        tags,
      },
    },
    async ({ query }) => {
      const filter = {
        kinds: query.kind,
        queues: query.queue,
        states: query.state,
        dagId: query.dag_id,
        triggererId: query.triggerer_id,
      };
      const { next, previous, rows, total } = await listTriggers(database, filter, cursorPageOf(query));
      return {
        triggers: rows.map(show),
        total_entries: total,
        next_cursor: next,
        previous_cursor: previous,
      };
    },
  );

  app.get(
    "/api/v2/triggers/:trigger_id",
    {
      schema: {
        params: z.object({ trigger_id: int(1, MAX_INT8) }),
        response: { 200: triggerDocument },
        tags,
      },
    },
    async ({ params }) => {
      const row = await findTrigger(database, params.trigger_id);
      if (row === undefined)
        throw notFound(`Trigger ${params.trigger_id} does not exist: it has fired, or has no waiters left`);
      const page = { limit: WAITS_SHOWN, offset: 0, orderBy: ["since"] };
      const { rows } = await listWaiting(database, { triggerId: row.id }, page);
      return { ...show(row), waits: rows.map(showWait) };
    },
  );
};

function show(row: TriggerRow): z.output<typeof listedTrigger> {
  return {
    id: row.id,
    kind: row.kind,
    args: maskedArgs(row),
    args_text: argsText(row),
    members: memberStates(row),
    bundle_hash: row.bundle_hash,
    queue: row.queue,
    replicas: row.replicas,
    state: row.state,
    dag_id: row.dag_id,
    created_at: iso(row.created_at),
    wake_at: iso(row.wake_at),
    claimed_at: iso(row.claimed_at),
    triggerer:
      row.owner_job === null
        ? null
        : { id: row.owner_job, hostname: row.owner_host, is_alive: row.owner_alive },
    standby:
      row.standby_job === null
        ? null
        : { id: row.standby_job, hostname: row.standby_host, is_alive: row.standby_alive },
    last_polled_at: iso(row.polled_at),
    waiting_tasks: row.waiting,
  };
}
