/** `/eventLogs`: the audit log. */
import { z } from "zod";
import { AUDIT_ORDER, type AuditRow, findAudit, listAudit } from "../../store/access/audit.ts";
import { pageOf } from "../dag/dags.ts";
import type { Resource } from "../server/context.ts";
import {
  date,
  id,
  instant,
  int,
  iso,
  many,
  mapIndex,
  nullableDate,
  orderBy,
  pageQuery,
  text,
} from "../server/fields.ts";
import { notFound } from "../server/problem.ts";

const eventDocument = z
  .object({
    event_log_id: z.number(),
    when: date,
    dag_id: z.string().nullable(),
    task_id: z.string().nullable(),
    run_id: z.string().nullable(),
    map_index: z.number().nullable(),
    try_number: z.number().nullable(),
    event: z.string(),
    logical_date: nullableDate,
    owner: z.string().nullable(),
    extra: z.string().nullable(),
    dag_display_name: z.string().nullable(),
    task_display_name: z.string().nullable(),
  })
  .meta({ id: "EventLogResponse" });

const listQuery = z.strictObject({
  ...pageQuery,
  dag_id: id.optional(),
  run_id: id.optional(),
  task_id: id.optional(),
  map_index: mapIndex.optional(),
  owner: text.optional(),
  event: text.optional(),
  included_events: many(text).optional(),
  excluded_events: many(text).optional(),
  before: instant.optional(),
  after: instant.optional(),
  dag_id_pattern: text.optional(),
  run_id_pattern: text.optional(),
  task_id_pattern: text.optional(),
  owner_pattern: text.optional(),
  event_pattern: text.optional(),
  dag_id_prefix_pattern: text.optional(),
  run_id_prefix_pattern: text.optional(),
  task_id_prefix_pattern: text.optional(),
  owner_prefix_pattern: text.optional(),
  event_prefix_pattern: text.optional(),
  try_number: int(0).optional().describe("Events have no try number: this filter matches none."),
  order_by: orderBy(AUDIT_ORDER, "id"),
});

export const eventLogs: Resource = (app, { database }) => {
  app.get(
    "/api/v2/eventLogs",
    {
      schema: {
        querystring: listQuery,
        response: { 200: z.object({ event_logs: z.array(eventDocument), total_entries: z.number() }) },
        tags: ["Event Log"],
      },
    },
    async ({ query }) => {
      const filter = {
        dagId: query.dag_id,
        runId: query.run_id,
        taskId: query.task_id,
        mapIndex: query.map_index,
        actor: query.owner,
        action: query.event,
        included: query.included_events,
        excluded: query.excluded_events,
        before: query.before,
        after: query.after,
        dagIdPattern: query.dag_id_pattern,
        runIdPattern: query.run_id_pattern,
        taskIdPattern: query.task_id_pattern,
        actorPattern: query.owner_pattern,
        actionPattern: query.event_pattern,
        dagIdPrefix: query.dag_id_prefix_pattern,
        runIdPrefix: query.run_id_prefix_pattern,
        taskIdPrefix: query.task_id_prefix_pattern,
        actorPrefix: query.owner_prefix_pattern,
        actionPrefix: query.event_prefix_pattern,
        nothing: query.try_number !== undefined,
      };
      const { rows, total } = await listAudit(database, filter, pageOf(query));
      return { event_logs: rows.map(show), total_entries: total };
    },
  );

  app.get(
    "/api/v2/eventLogs/:event_log_id",
    {
      schema: {
        params: z.object({ event_log_id: int(0, Number.MAX_SAFE_INTEGER) }),
        response: { 200: eventDocument },
        tags: ["Event Log"],
      },
    },
    async ({ params }) => {
      const row = await findAudit(database, params.event_log_id);
      if (row === undefined) throw notFound(`Event log ${params.event_log_id} does not exist`);
      return show(row);
    },
  );
};

function show(row: AuditRow): z.output<typeof eventDocument> {
  return {
    event_log_id: row.id,
    when: iso(row.at),
    dag_id: row.dag_id,
    task_id: row.task_id,
    run_id: row.run_id,
    map_index: row.map_index,
    try_number: null,
    event: row.action,
    logical_date: null,
    owner: row.actor,
    extra: row.details === null ? null : JSON.stringify(row.details),
    dag_display_name: row.dag_id,
    task_display_name: row.task_id,
  };
}
