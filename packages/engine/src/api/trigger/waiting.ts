/** `/waiting`: current waits with their trigger, start, timeout and triggerer. */
import { z } from "zod";
import { listWaiting, WAIT_ORDER, type WaitRow } from "../../store/list/waiting.ts";
import type { Resource } from "../server/context.ts";
import { instanceAddress } from "../server/documents.ts";
import { cursorPageOf, cursorQuery, date, id, int, iso, nullableDate, orderBy } from "../server/fields.ts";
import { taskPlace } from "../server/task-place.ts";
import { argsText, maskedArgs, memberDocument, memberStates } from "./trigger-args.ts";

export const waitDocument = z
  .object({
    ...instanceAddress,
    try_number: z.number(),
    trigger_id: z.number(),
    kind: z.string(),
    args: z.any(),
    /** The arguments as one line of text. */
    args_text: z.string(),
    /** The members of a joint wait; null: not a joint wait. */
    members: z.array(memberDocument).nullable(),
    queue: z.string(),
    /** hot, cold, timed or unowned, as for a trigger. */
    trigger_state: z.string(),
    /** Where the task resumes: the name of a `ctx.until`, or a method of an operator. */
    name: z.string().nullable(),
    method: z.string().nullable(),
    since: date,
    /** The earlier of the two timeouts; null: no timeout. */
    until: nullableDate,
    timeout_at: nullableDate,
    task_timeout_at: nullableDate,
    /** The trigger is not polled before this time; null: it never fires by itself. */
    wake_at: nullableDate,
    triggerer: z
      .object({ id: z.number(), hostname: z.string().nullable(), is_alive: z.boolean() })
      .nullable(),
    last_polled_at: nullableDate,
  })
  .meta({ id: "Wait" });

const MAX_INT8 = Number.MAX_SAFE_INTEGER;
const listQuery = z.strictObject({
  ...cursorQuery,
  dag_id: id.optional(),
  run_id: id.optional(),
  task_id: id.optional(),
  kind: id.optional(),
  trigger_id: int(1, MAX_INT8).optional(),
  signal: id.optional().describe("namespace/key, as the wait names it: a pattern matches only itself."),
  order_by: orderBy(WAIT_ORDER, "since"),
});

export const waiting: Resource = (app, { database }) => {
  app.get(
    "/api/v2/waiting",
    {
      schema: {
        querystring: listQuery,
        response: {
          200: z.object({
            waiting: z.array(waitDocument),
            total_entries: z.number().nullable(),
            next_cursor: z.string().nullable(),
            previous_cursor: z.string().nullable(),
          }),
        },
        tags: ["Trigger"],
      },
    },
    async ({ query }) => {
      const filter = {
        dagId: query.dag_id,
        runId: query.run_id,
        taskId: query.task_id,
        kind: query.kind,
        triggerId: query.trigger_id,
        signal: query.signal,
      };
      const { next, previous, rows, total } = await listWaiting(database, filter, cursorPageOf(query));
      return {
        waiting: rows.map(showWait),
        total_entries: total,
        next_cursor: next,
        previous_cursor: previous,
      };
    },
  );
};

export function showWait(row: WaitRow): z.output<typeof waitDocument> {
  return {
    ...taskPlace(row),
    trigger_id: row.trigger_id,
    kind: row.kind,
    args: maskedArgs(row),
    args_text: argsText(row),
    members: memberStates(row),
    queue: row.queue,
    trigger_state: row.trigger_state,
    name: row.name,
    method: row.method,
    since: iso(row.deferred_at),
    until: iso(earlier(row.timeout_at, row.task_timeout_at)),
    timeout_at: iso(row.timeout_at),
    task_timeout_at: iso(row.task_timeout_at),
    wake_at: iso(row.wake_at),
    triggerer:
      row.owner_job === null
        ? null
        : { id: row.owner_job, hostname: row.owner_host, is_alive: row.owner_alive },
    last_polled_at: iso(row.polled_at),
  };
}

export function earlier(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return a ?? b;
  return a < b ? a : b;
}
