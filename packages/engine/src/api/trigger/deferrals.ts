/** `…/deferrals`: every wait of a task instance, with its trigger, its outcome and what followed. */
import type { Json } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { DEFERRAL_ORDER, type DeferralRow, listDeferrals } from "../../store/list/deferrals.ts";
import type { InstanceAddress } from "../../store/list/task-instances.ts";
import type { Resource } from "../server/context.ts";
import { date, flag, iso, mapIndex, nullableDate, orderBy, pageQuery } from "../server/fields.ts";
import { invalid } from "../server/problem.ts";
import { addressOf, mappedParams, requireInstance, taskParams } from "../task/task-instances.ts";

const deferralDocument = z
  .object({
    try_number: z.number(),
    trigger_id: z.number(),
    kind: z.string(),
    name: z.string().nullable(),
    method: z.string().nullable(),
    on_timeout: z.string(),
    deferred_at: date,
    timeout_at: nullableDate,
    fired_at: nullableDate,
    /** When the owner of the run processed the outcome: the task had resumed or ended. */
    ended_at: nullableDate,
    /** resumed, finished, timeout or cancelled; null while it waits. */
    end_kind: z.string().nullable(),
    /** event, ending, failed or timeout; null while it waits, and when it was cancelled. */
    outcome: z.string().nullable(),
    /** The error of the trigger, or why it ended the task. */
    reason: z.string().nullable(),
    /** Stored size of the outcome. */
    outcome_bytes: z.number().nullable(),
    /** The event; only on request. */
    payload: z.any().optional(),
  })
  .meta({ id: "Deferral" });

const listShape = {
  ...pageQuery,
  include_payload: flag.default(false),
  order_by: orderBy(DEFERRAL_ORDER, "deferred_at"),
};
const listQuery = z.strictObject({ ...listShape, map_index: mapIndex.default(-1) });
const mappedQuery = z.strictObject(listShape);
const deferralList = z.object({ deferrals: z.array(deferralDocument), total_entries: z.number() });

/** Events may have a megabyte each. */
const MAX_WITH_PAYLOAD = 50;

const BASE = "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/taskInstances/:task_id";

export const deferrals: Resource = (app, { database }) => {
  const tags = ["Task Instance"];
  const read = async (address: InstanceAddress, query: z.output<typeof mappedQuery>) => {
    if (query.include_payload && query.limit > MAX_WITH_PAYLOAD)
      throw invalid(["query", "limit"], `At most ${MAX_WITH_PAYLOAD} with include_payload`);
    const instance = await requireInstance(database, address);
    const page = { limit: query.limit, offset: query.offset, orderBy: query.order_by };
    const withPayload = query.include_payload;
    const { rows, total } = await listDeferrals(database, instance, { page, withPayload });
    return { deferrals: rows.map((row) => show(row, withPayload)), total_entries: total };
  };

  app.get(
    `${BASE}/deferrals`,
    { schema: { params: taskParams, querystring: listQuery, response: { 200: deferralList }, tags } },
    ({ params, query }) => read(addressOf(params, query.map_index), query),
  );
  app.get(
    `${BASE}/:map_index/deferrals`,
    { schema: { params: mappedParams, querystring: mappedQuery, response: { 200: deferralList }, tags } },
    ({ params, query }) => read(addressOf(params, params.map_index), query),
  );
};

function show(row: DeferralRow, withPayload: boolean): z.output<typeof deferralDocument> {
  return {
    try_number: row.try_number,
    trigger_id: row.trigger_id,
    kind: row.kind,
    name: row.name,
    method: row.method,
    on_timeout: row.on_timeout,
    deferred_at: iso(row.deferred_at),
    timeout_at: iso(row.timeout_at),
    fired_at: iso(row.fired_at),
    ended_at: iso(row.ended_at),
    end_kind: row.end_kind,
    outcome: row.outcome_kind,
    reason: reasonOf(row.outcome),
    outcome_bytes: row.outcome_bytes,
    ...(withPayload ? { payload: row.outcome?.["payload"] ?? null } : {}),
  };
}

function reasonOf(outcome: DeferralRow["outcome"]): string | null {
  const told = (outcome?.["error"] ?? outcome?.["ending"]) as { [key: string]: Json } | undefined;
  const reason = told?.["message"] ?? told?.["reason"];
  return typeof reason === "string" ? reason : null;
}
