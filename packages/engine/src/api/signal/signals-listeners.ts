/** `/signals/listeners` and `/signals/deadLetters`: named listeners, their positions and their dead letters. */
import { z } from "zod";
import { readChange, showDeadLetter, showPlace, showRetry } from "../../signal/http-documents.ts";
import { deadLetterOf } from "../../signal/postgres-records.ts";
import { showPosition } from "../../signal/signal.ts";
import { type LetterResult, retryLetter } from "../../store/drive/manual-commands.ts";
import {
  DEAD_LETTER_ORDER,
  deleteDeadLetter,
  deleteListener,
  findListener,
  LISTENER_ORDER,
  listDeadLetters,
  listListeners,
} from "../../store/signal/signals-watch.ts";
import type { Resource } from "../server/context.ts";
import { date, flag, id, int, iso, nullableDate, orderBy, pageQuery, text } from "../server/fields.ts";
import { change } from "../server/idempotent.ts";
import { conflict, notFound, Problem } from "../server/problem.ts";
import { filterOf, filterShape, placeDocument, signalDocument, startOf, startShape } from "./signals.ts";
import { signalProblem, signalsOf } from "./signals-service.ts";

const MAX_INT8 = Number.MAX_SAFE_INTEGER;

const listenerDocument = z
  .object({
    name: z.string(),
    filter: z.any(),
    position: z.string(),
    is_active: z.boolean(),
    host: z.string().nullable(),
    processed: z.number(),
    /** Number of signals after its position, also those it does not subscribe to; 10,000 means that many or more. */
    behind: z.number(),
    dead_letters: z.number(),
    /** Keys with a pending retry; the first hundred. */
    retrying: z.array(
      z.object({
        namespace: z.string(),
        key: z.string(),
        version: z.number(),
        attempts: z.number(),
        error: z.string().nullable(),
        retry_at: nullableDate,
      }),
    ),
    created_at: date,
    seen_at: date,
  })
  .meta({ id: "SignalListener" });

const letterDocument = z
  .object({
    id: z.number(),
    listener: z.string(),
    signal: signalDocument,
    error: z.string(),
    attempts: z.number(),
    time: date,
    is_retried: z.boolean(),
  })
  .meta({ id: "SignalDeadLetter" });

const retryDocument = z.object({
  namespace: z.string().min(1).max(250),
  key: z.string().min(1).max(250),
  version: int(0, MAX_INT8),
  attempts: int(0),
  error: text.nullable(),
  in_ms: z.number().min(0).max(86_400_000),
});

const position = z.string().max(60);
const held = { holder: id, lease_ms: int(100, 600_000).default(6_000) };
const changeDocument = z.strictObject({
  ...held,
  position: position.optional(),
  processed: int(0, MAX_INT8).optional(),
  park: z.array(retryDocument).max(1_000).optional(),
  unpark: z
    .array(z.object({ namespace: id, key: id }))
    .max(1_000)
    .optional(),
  dead_letters: z
    .array(z.object({ version: int(1, MAX_INT8), error: text, attempts: int(1) }))
    .max(1_000)
    .optional(),
  redelivered: z.object({ id: int(1, MAX_INT8), error: text.nullable() }).optional(),
});

const listenerParams = z.object({ name: id });
const letterParams = z.object({ dead_letter_id: int(1, MAX_INT8) });

export const signalListeners: Resource = (app, options) => {
  const tags = ["Signal"];
  const { database } = options;
  const service = signalsOf(app, options);

  app.get(
    "/api/v2/signals/listeners",
    {
      schema: {
        querystring: z.strictObject({ ...pageQuery, order_by: orderBy(LISTENER_ORDER, "name") }),
        response: { 200: z.object({ listeners: z.array(listenerDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const { rows, total } = await listListeners(database, { ...query, orderBy: query.order_by });
      return {
        listeners: rows.map(({ created_at, retrying, seen_at, signal_id, tx, ...row }) => ({
          ...row,
          retrying: [...retrying],
          position: showPosition({ tx, id: signal_id }),
          created_at: iso(created_at),
          seen_at: iso(seen_at),
        })),
        total_entries: total,
      };
    },
  );

  app.delete(
    "/api/v2/signals/listeners/:name",
    { schema: { params: listenerParams, response: { 204: z.null() }, tags } },
    async (request, reply) => {
      const { name } = request.params;
      await change(options, request, async (tx) => {
        if (await deleteListener(tx, name))
          return {
            result: null,
            deed: { action: "delete_signal_listener", about: `listeners/${name}`, details: { name } },
          };
        if (await findListener(tx, name))
          throw conflict(`Listener "${name}" is active. Stop its process first.`);
        throw notFound(`Listener "${name}" does not exist`);
      });
      return reply.code(204).send(null);
    },
  );

  app.post(
    "/api/v2/signals/listeners/:name/claim",
    {
      schema: {
        params: listenerParams,
        body: z.strictObject({
          ...held,
          host: text.default(""),
          filter: z.strictObject(filterShape).default({}),
          start: z.strictObject(startShape).default({}),
        }),
        response: {
          200: z.object({
            claimed: z.boolean(),
            place: placeDocument.nullable(),
            retries: z.array(retryDocument),
            has_redeliveries: z.boolean(),
          }),
        },
        tags,
        description:
          "Makes the holder (a name chosen for this claim) the only active listener with this name, until lease_ms after its last commit. Not claimed if another holder is active.",
      },
    },
    async ({ body, params }) =>
      signalProblem(async () => {
        const claimed = await service.records.claim({
          name: params.name,
          holder: body.holder,
          ttlMs: body.lease_ms,
          host: body.host.slice(0, 250),
          filter: filterOf(body.filter),
          from: startOf(body.start),
        });
        if (claimed === null) return { claimed: false, place: null, retries: [], has_redeliveries: false };
        const { hasRedeliveries, retries, start } = claimed;
        return {
          claimed: true,
          place: showPlace({ ...start, position: showPosition(start.position) }),
          retries: retries.map(showRetry),
          has_redeliveries: hasRedeliveries,
        };
      }),
  );

  app.post(
    "/api/v2/signals/listeners/:name/commit",
    {
      schema: {
        params: listenerParams,
        body: changeDocument,
        response: { 200: z.object({ has_redeliveries: z.boolean() }) },
        tags,
        description:
          "Stores the position of the holder and renews its lease. 409: another holder has taken over.",
      },
    },
    async ({ body, params }) =>
      signalProblem(async () => {
        const { holder, lease_ms: ttlMs, ...rest } = body;
        const stored = await service.records.commit({ name: params.name, holder, ttlMs }, readChange(rest));
        return { has_redeliveries: stored.hasRedeliveries };
      }),
  );

  app.post(
    "/api/v2/signals/listeners/:name/release",
    {
      schema: {
        params: listenerParams,
        body: z.strictObject({ holder: id }),
        response: { 204: z.null() },
        tags,
      },
    },
    async ({ body, params }, reply) => {
      await service.records.release({ name: params.name, holder: body.holder, ttlMs: 0 });
      return reply.code(204).send(null);
    },
  );

  app.get(
    "/api/v2/signals/deadLetters",
    {
      schema: {
        querystring: z.strictObject({
          ...pageQuery,
          listener: id.optional(),
          only_retried: flag.optional(),
          order_by: orderBy(DEAD_LETTER_ORDER, "id"),
        }),
        response: { 200: z.object({ dead_letters: z.array(letterDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const { listener, only_retried: isRetried } = query;
      const page = { ...query, orderBy: query.order_by };
      const { rows, total } = await listDeadLetters(database, { listener, isRetried }, page);
      const letters = rows.map((row) => showDeadLetter(deadLetterOf(row)));
      return { dead_letters: letters, total_entries: total };
    },
  );

  app.post(
    "/api/v2/signals/deadLetters/:dead_letter_id/retry",
    { schema: { params: letterParams, response: { 202: letterDocument }, tags } },
    async (request, reply) => {
      const letterId = request.params.dead_letter_id;
      let dagRunId: number | null = null;
      const letter = await change(options, request, async (tx) => {
        dagRunId = retried(await retryLetter(tx, letterId), letterId);
        const { rows } = await listDeadLetters(tx, { id: letterId }, { limit: 1, offset: 0 });
        const deed = {
          action: "retry_signal_dead_letter",
          about: `deadLetters/${letterId}`,
          details: { id: letterId },
        };
        return { result: showDeadLetter(deadLetterOf(rows[0]!)), deed };
      });
      options.notify({ kind: "signals_sent" });
      if (dagRunId !== null) options.notify({ kind: "run_edited", dagRunIds: [dagRunId] });
      reply.code(202);
      return letter;
    },
  );

  app.delete(
    "/api/v2/signals/deadLetters/:dead_letter_id",
    { schema: { params: letterParams, response: { 204: z.null() }, tags } },
    async (request, reply) => {
      const letterId = request.params.dead_letter_id;
      await change(options, request, async (tx) => {
        if (!(await deleteDeadLetter(tx, letterId))) throw missing(letterId);
        return {
          result: null,
          deed: {
            action: "delete_signal_dead_letter",
            about: `deadLetters/${letterId}`,
            details: { id: letterId },
          },
        };
      });
      return reply.code(204).send(null);
    },
  );
};

/** The run whose owner must be notified; null: none. */
function retried(result: LetterResult, letterId: number): number | null {
  if (result.kind === "retried") return result.dagRunId;
  if (result.kind === "unknown") throw missing(letterId);
  const { dagId, runId, taskId } = result.task;
  const fate = result.state === null ? "does not exist any more" : `has ended (${result.state})`;
  throw new Problem(
    409,
    "RUN_OVER",
    `Run "${runId}" of DAG "${dagId}" ${fate}: its task "${taskId}" no longer receives signals. Delete the dead letter with: tradewind signals dead-letters delete ${letterId}`,
  );
}

function missing(letterId: number) {
  return notFound(`Dead letter ${letterId} does not exist: it was processed or deleted`);
}
