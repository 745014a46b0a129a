/**
 * `/backfills`: Airflow's resource, extended by progress, changes while it runs, a stop at the first failure, and a backwards
 * order with a dry run that shows the action for each date.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { actionFor, backfillProgress, remainingMs } from "../../model/index.ts";
import { existingRuns } from "../../store/backfill/backfill-plan.ts";
import {
  BACKFILL_ORDER,
  type BackfillEdit,
  type BackfillRow,
  cancelBackfill,
  countBackfill,
  createBackfill,
  findBackfill,
  listBackfills,
  pauseBackfill,
  setBackfillLimits,
} from "../../store/backfill/backfills.ts";
import type { Connection } from "../../store/database/database.ts";
import { ParamsCheck } from "../dag/params-check.ts";
import { principalOf } from "../server/auth.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import { date, flag, id, instantOrDay, int, iso, jsonValue, orderBy, pageQuery } from "../server/fields.ts";
import { change, create } from "../server/idempotent.ts";
import { conflict, notFound } from "../server/problem.ts";
import { planBackfillDates } from "./backfill-dates.ts";
import {
  backfillDocument,
  dryRunDocument,
  madeDocument,
  progressDocument,
  REPROCESS,
  showBackfill,
} from "./backfill-document.ts";

const DEFAULT_MAX_ACTIVE = 10;
/** Maximum number of dates in a dry run; the total counts all. */
const DRY_RUN_SHOWN = 10_000;

const createBody = z.strictObject({
  dag_id: id,
  from_date: instantOrDay.describe(
    "A date without a time means the start of that day in the schedule's time zone.",
  ),
  to_date: instantOrDay.describe(
    "A date without a time means the end of that day in the schedule's time zone.",
  ),
  run_backwards: z.boolean().default(false),
  dag_run_conf: z.record(z.string(), jsonValue).nullish(),
  reprocess_behavior: z.enum(REPROCESS).default("none"),
  max_active_runs: z.int().min(1).max(100_000).default(DEFAULT_MAX_ACTIVE),
  run_on_latest_version: z.boolean().nullish(),
  stop_on_failure: z.boolean().default(false),
});

const patchBody = z.strictObject({
  max_active_runs: z.int().min(1).max(100_000).optional(),
  stop_on_failure: z.boolean().optional(),
});

const listQuery = z.strictObject({
  ...pageQuery,
  dag_id: id.optional(),
  active: flag.optional(),
  order_by: orderBy(BACKFILL_ORDER, "id"),
});
const params = z.object({ backfill_id: int(0) });

export const backfills: Resource = (app, options) => {
  const { database } = options;
  const tags = ["Backfill"];
  const paramsCheck = new ParamsCheck();
  const one = { params, response: { 200: backfillDocument }, tags };

  app.get(
    "/api/v2/backfills",
    {
      schema: {
        querystring: listQuery,
        response: { 200: z.object({ backfills: z.array(backfillDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const page = { limit: query.limit, offset: query.offset, orderBy: query.order_by };
      const { rows, total } = await listBackfills(
        database,
        { dagId: query.dag_id, active: query.active },
        page,
      );
      return { backfills: rows.map(showBackfill), total_entries: total };
    },
  );

  app.get("/api/v2/backfills/:backfill_id", { schema: one }, async (request) =>
    showBackfill(await requireBackfill(database, request.params.backfill_id)),
  );

  app.get(
    "/api/v2/backfills/:backfill_id/progress",
    { schema: { params, response: { 200: progressDocument }, tags } },
    async (request) => showProgress(database, request.params.backfill_id),
  );

  app.post(
    "/api/v2/backfills",
    { schema: { body: createBody, response: { 200: madeDocument }, tags } },
    async (request, reply) => {
      const { body } = request;
      const plan = await planBackfillDates(options, body, paramsCheck);
      const [first, last] = plan.ends.map((each) => new Date(each)) as [Date, Date];
      let made: number | undefined;
      const answer = await create(options, { request, reply }, async (tx) => {
        made = await createBackfill(tx, {
          dagId: body.dag_id,
          schedule: plan.schedule,
          anchor: plan.anchor,
          versionId: body.run_on_latest_version === false ? plan.versionId : null,
          from: plan.from,
          to: plan.to,
          reprocess: body.reprocess_behavior,
          isReverse: body.run_backwards,
          maxActive: body.max_active_runs,
          conf: (body.dag_run_conf ?? null) as Json,
          stopOnFailure: body.stop_on_failure,
          totalRuns: plan.total,
          firstDate: new Date(plan.first.logicalDate),
          now: plan.now,
          createdBy: principalOf(request).name,
        });
        return {
          status: 200,
          body: {
            ...showBackfill(await requireBackfill(tx, made)),
            first_date: iso(first),
            last_date: iso(last),
          },
          deed: { action: "create_backfill", dagId: body.dag_id, details: { backfill: made } },
        };
      });
      if (made !== undefined) options.notify({ kind: "backfill_changed", backfillId: made });
      return answer.body;
    },
  );

  app.post(
    "/api/v2/backfills/dry_run",
    {
      schema: {
        body: createBody,
        response: {
          200: z.object({
            backfills: z.array(dryRunDocument),
            total_entries: z.number(),
            from_date: date.describe("Not in Airflow: the first instant of the range."),
            to_date: date.describe("Not in Airflow: the last instant of the range."),
            first_date: date.describe("Not in Airflow: the earliest date."),
            last_date: date.describe("Not in Airflow: the latest date."),
          }),
        },
        tags,
      },
    },
    async ({ body }) => {
      const plan = await planBackfillDates(options, body, paramsCheck);
      const dates = plan.dates(DRY_RUN_SHOWN);
      const existing = await existingRuns(database, body.dag_id, dates);
      const rows = dates.map((run) => {
        const other = existing.get(run.logicalDate);
        return {
          logical_date: new Date(run.logicalDate).toISOString(),
          partition_key: null,
          partition_date: null,
          action: actionFor(other, body.reprocess_behavior),
          state: other?.state ?? null,
        };
      });
      const [first, last] = plan.ends.map((each) => new Date(each)) as [Date, Date];
      return {
        backfills: rows,
        total_entries: plan.total,
        from_date: iso(plan.from),
        to_date: iso(plan.to),
        first_date: iso(first),
        last_date: iso(last),
      };
    },
  );

  app.put("/api/v2/backfills/:backfill_id/pause", { schema: one }, (request) =>
    edit(options, request, { action: "pause_backfill", work: (tx, it) => pauseBackfill(tx, it, true) }),
  );

  app.put("/api/v2/backfills/:backfill_id/unpause", { schema: one }, (request) =>
    edit(options, request, { action: "unpause_backfill", work: (tx, it) => pauseBackfill(tx, it, false) }),
  );

  app.put(
    "/api/v2/backfills/:backfill_id/cancel",
    { schema: { ...one, querystring: z.strictObject({ let_finish: flag.default(false) }) } },
    (request) =>
      edit(options, request, {
        action: "cancel_backfill",
        work: (tx, it) => cancelBackfill(tx, it, request.query.let_finish),
      }),
  );

  app.patch("/api/v2/backfills/:backfill_id", { schema: { ...one, body: patchBody } }, (request) =>
    edit(options, request, {
      action: "patch_backfill",
      work: (tx, it) =>
        setBackfillLimits(tx, it, {
          maxActive: request.body.max_active_runs,
          stopOnFailure: request.body.stop_on_failure,
        }),
    }),
  );
};

type EditRequest = Parameters<typeof change>[1] & { readonly params: { readonly backfill_id: number } };

async function edit(
  options: ApiOptions,
  request: EditRequest,
  { action, work }: { action: string; work: (tx: Connection, id: number) => Promise<BackfillEdit> },
): Promise<z.output<typeof backfillDocument>> {
  const { backfill_id: backfillId } = request.params;
  const { row, runIds } = await change(options, request, async (tx) => {
    const result = await work(tx, backfillId);
    if (result.kind === "not_found") throw noBackfill(backfillId);
    if (result.kind === "over")
      throw conflict(`Backfill ${backfillId} is ${result.state}: it can no longer be changed`);
    const after = await requireBackfill(tx, backfillId);
    const deed = { action, dagId: after.dag_id, details: { backfill: backfillId } };
    return { result: { row: after, runIds: result.runIds }, ...(result.changed ? { deed } : {}) };
  });
  options.notify({ kind: "backfill_changed", backfillId });
  if (runIds.length > 0) options.notify({ kind: "run_edited", dagRunIds: runIds });
  return showBackfill(row);
}

async function requireBackfill(connection: Connection, backfillId: number): Promise<BackfillRow> {
  const row = await findBackfill(connection, backfillId);
  if (row === undefined) throw noBackfill(backfillId);
  return row;
}

function noBackfill(backfillId: number) {
  return notFound(`Backfill ${backfillId} does not exist`);
}

async function showProgress(
  database: Connection,
  backfillId: number,
): Promise<z.output<typeof progressDocument>> {
  // Read the state first: after the end the figures are final, so later counts are correct.
  const row = await requireBackfill(database, backfillId);
  const counted = await countBackfill(database, backfillId);
  if (counted === undefined) throw noBackfill(backfillId);
  const progress = backfillProgress(counted);
  const isMoving = row.ended_at === null && row.state === "running" && row.ending === null;
  const left = remainingMs({
    endedAt: counted.endedAt,
    since: (row.started_at ?? row.created_at).getTime(),
    now: counted.now,
    runsLeft: progress.runs.total - progress.runs.finished,
  });
  const remaining = isMoving ? left : null;
  return {
    backfill: showBackfill(row),
    ...progress,
    eta: remaining === null ? null : new Date(counted.now + remaining).toISOString(),
    remaining_seconds: remaining === null ? null : remaining / 1000,
  };
}
