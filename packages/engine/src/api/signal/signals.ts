/** `/signals`: send them, list them, wait for them. Those who listen under a name: signals-listeners.ts. */
import type { FastifyReply } from "fastify";
import { z } from "zod";
import { showPlace, showSignal } from "../../signal/http-documents.ts";
import type { SignalFilter, SignalStart, SignalToSend } from "../../signal/signal.ts";
import { requireForeign } from "../../signal/signal.ts";
import type { SignalPlace, SignalService } from "../../signal/signal-service.ts";
import { sendSignals } from "../../store/signal/signals.ts";
import { principalOf } from "../server/auth.ts";
import type { Resource } from "../server/context.ts";
import { date, instant, instantRange, instantsOf, int, many, numberRange } from "../server/fields.ts";
import { create } from "../server/idempotent.ts";
import { invalid } from "../server/problem.ts";
import { stream } from "../server/streaming.ts";
import { signalProblem, signalsOf } from "./signals-service.ts";

const MAX_TOGETHER = 1_000;
const MAX_WAIT_SECONDS = 30;
const KEEP_ALIVE_MS = 15_000;

export const signalDocument = z
  .object({
    namespace: z.string(),
    key: z.string(),
    value: z.any(),
    /** Strictly increasing for each key. */
    version: z.number(),
    sender: z.string(),
    time: date,
    /** Its place among all signals. */
    position: z.string(),
  })
  .meta({ id: "Signal" });

const sentDocument = z
  .object({ ...signalDocument.shape, is_duplicate: z.boolean() })
  .meta({ id: "SentSignal" });

const newSignal = z
  .strictObject({
    namespace: z.string().optional(),
    key: z.string(),
    value: z.any().optional(),
    sender: z.string().optional().describe("The name of the token unless given."),
    client: z.string().optional().describe("With sequence: stored once, however often it is sent."),
    sequence: z.number().optional(),
  })
  .meta({ id: "NewSignal" });

const pattern = z
  .string()
  .min(1)
  .max(250)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
  .regex(/^[^\u0000-\u001f\u007f]*$/, "Must not contain control characters");

export const filterShape = {
  namespace: pattern.optional().describe('With * as a wildcard; "default" unless given.'),
  key: many(pattern).optional().describe("With * as a wildcard; may be repeated."),
  sender: pattern.optional(),
};

/** Where to begin: one of these; now, if none is given. */
export const startShape = {
  from: z.enum(["now", "start"]).optional(),
  after_version: int(0, Number.MAX_SAFE_INTEGER).optional(),
  since: instant.optional(),
  position: z.string().max(60).optional(),
};

export const placeDocument = z
  .object({ position: z.string(), after_version: z.number().nullable(), since: z.string().nullable() })
  .meta({ id: "SignalPlace" });

export const signals: Resource = (app, options) => {
  const tags = ["Signal"];
  const service = signalsOf(app, options);

  app.post(
    "/api/v2/signals",
    {
      schema: {
        body: z.union([z.strictObject({ signals: z.array(newSignal).min(1).max(MAX_TOGETHER) }), newSignal]),
        response: { 201: z.object({ signals: z.array(sentDocument) }) },
        tags,
      },
    },
    async (request, reply) => {
      const { name } = principalOf(request);
      const given = "signals" in request.body ? request.body.signals : [request.body];
      const drafts = given.map((each): SignalToSend => ({ ...each, sender: each.sender ?? name }));
      const show = (
        sent: readonly { version: number; position: string; time: Date; isDuplicate: boolean }[],
      ) => ({
        signals: sent.map(({ isDuplicate, ...stored }, at) => {
          const { key, namespace = "default", sender = name, value = null } = drafts[at]!;
          const { position, time, version } = stored;
          const shown = showSignal({ namespace, key, value, sender, version, position, time });
          return { ...shown, is_duplicate: isDuplicate };
        }),
      });
      return signalProblem(async () => {
        for (const draft of drafts) requireForeign(draft);
        reply.code(201);
        if (request.headers["idempotency-key"] === undefined || !service.hasTransactions)
          return show(await service.send(withKey(drafts, request.headers["idempotency-key"], name)));
        const { body, replayed } = await create(options, { request, reply }, async (tx) => {
          const stored = await sendSignals(tx, drafts.map(draftOf));
          const sent = stored.map(({ createdAt, id, tx: at, ...rest }) => ({
            ...rest,
            version: id,
            position: `${at}-${id}`,
            time: createdAt,
          }));
          return { status: 201, body: show(sent) };
        });
        if (!replayed) options.notify({ kind: "signals_sent" });
        return body;
      });
    },
  );

  app.get(
    "/api/v2/signals",
    {
      schema: {
        querystring: z.strictObject({
          ...filterShape,
          ...numberRange("version"),
          ...instantRange("time"),
          order_by: z.enum(["version", "-version"]).default("version"),
          limit: int(1)
            .default(50)
            .transform((value) => Math.min(value, 1_000)),
          cursor: z.string().max(100).optional().describe("next_cursor of the page before."),
        }),
        response: {
          200: z.object({ signals: z.array(signalDocument), next_cursor: z.string().nullable() }),
        },
        tags,
      },
    },
    async ({ query }) =>
      signalProblem(async () => {
        const { signals: found, next } = await service.list({
          ...filterOf(query),
          version: {
            gt: query.version_gt,
            gte: query.version_gte,
            lt: query.version_lt,
            lte: query.version_lte,
          },
          time: instantsOf(query, "time"),
          descending: query.order_by === "-version",
          limit: query.limit,
          cursor: query.cursor,
        });
        return { signals: found.map(showSignal), next_cursor: next };
      }),
  );

  app.get(
    "/api/v2/signals/position",
    { schema: { querystring: z.strictObject(startShape), response: { 200: placeDocument }, tags } },
    async ({ query }) => signalProblem(async () => showPlace(await placeOf(service, query))),
  );

  app.get(
    "/api/v2/signals/ofKey",
    {
      schema: {
        querystring: z.strictObject({
          namespace: pattern.default("default"),
          key: pattern,
          sender: pattern.optional(),
          version_gte: int(0, Number.MAX_SAFE_INTEGER).default(0),
          up_to: z.string().max(60),
          limit: int(1)
            .default(50)
            .transform((value) => Math.min(value, 1_000)),
        }),
        response: { 200: z.object({ signals: z.array(signalDocument) }) },
        tags,
      },
    },
    async ({ query }) =>
      signalProblem(async () => {
        const { up_to: upTo, version_gte: from, ...rest } = query;
        return { signals: (await service.readKey({ ...rest, from, upTo })).map(showSignal) };
      }),
  );

  app.get(
    "/api/v2/signals/listen",
    {
      schema: {
        querystring: z.strictObject({
          ...filterShape,
          ...startShape,
          limit: int(1)
            .default(100)
            .transform((value) => Math.min(value, 1_000)),
          timeout: z.coerce
            .number()
            .min(0)
            .default(MAX_WAIT_SECONDS)
            .transform((value) => Math.min(value, MAX_WAIT_SECONDS))
            .describe("Seconds to wait for the first signal, 30 at most. Not for text/event-stream."),
        }),
        response: { 200: z.any() },
        tags,
        description:
          "Waits for signals and answers them with the position to go on from. With Accept: text/event-stream it goes on until the client leaves; the id of each event is a position, and Last-Event-ID resumes.",
      },
    },
    async ({ headers, method, query }, reply) =>
      signalProblem(async () => {
        const isStream = headers.accept?.includes("text/event-stream") === true;
        const last = headers["last-event-id"];
        const resumed = isStream && typeof last === "string" && last !== "";
        const place = await placeOf(service, resumed ? { ...query, position: last, from: undefined } : query);
        const filter = filterOf(query);
        if (isStream)
          return stream(reply as FastifyReply, "text/event-stream", (stop) =>
            events(service, { filter, place, limit: query.limit, stop }),
          );
        const gone = new AbortController();
        reply.raw.once("close", () => gone.abort());
        const abort = AbortSignal.any([gone.signal, app.closing]);
        const subscription = service.subscribe(filter, place);
        try {
          // Whoever asks with HEAD learns of no signal, so there is none to wait for.
          const waitMs = method === "HEAD" ? 0 : query.timeout * 1000;
          const batch = await subscription.next({ limit: query.limit, waitMs, abort });
          return { signals: batch.signals.map(showSignal), position: batch.position };
        } finally {
          subscription.close();
        }
      }),
  );
};

async function* events(
  service: SignalService,
  request: { filter: SignalFilter; place: SignalPlace; limit: number; stop: AbortSignal },
): AsyncGenerator<string, void, undefined> {
  const { filter, limit, place, stop } = request;
  const subscription = service.subscribe(filter, place);
  try {
    // The place as an id: a client that is cut off before the first signal resumes from here.
    yield `retry: 1000\nid: ${place.position}\nevent: position\ndata: ${JSON.stringify(showPlace(place))}\n\n`;
    while (!stop.aborted) {
      const batch = await subscription.next({ limit, waitMs: KEEP_ALIVE_MS, abort: stop });
      if (stop.aborted) return;
      const told = batch.signals.map(
        (signal) => `id: ${signal.position}\nevent: signal\ndata: ${JSON.stringify(showSignal(signal))}\n\n`,
      );
      yield told.length > 0 ? told.join("") : ": still here\n\n";
    }
  } finally {
    subscription.close();
  }
}

type FilterQuery = {
  readonly namespace?: string | undefined;
  readonly key?: readonly string[] | undefined;
  readonly sender?: string | undefined;
};

export function filterOf({ key, namespace, sender }: FilterQuery): SignalFilter {
  return { namespace, key, sender };
}

type StartQuery = {
  readonly from?: "now" | "start" | undefined;
  readonly after_version?: number | undefined;
  readonly since?: Date | undefined;
  readonly position?: string | undefined;
};

/** A position may come with bounds: those of the place it belongs to. */
async function placeOf(service: SignalService, query: StartQuery): Promise<SignalPlace> {
  const { after_version: afterVersion = null, position, since = null } = query;
  if (position !== undefined) {
    await service.position({ position });
    return { position, afterVersion, since };
  }
  return service.position(startOf(query));
}

export function startOf({ after_version, from, position, since }: StartQuery): SignalStart {
  if (position !== undefined) return { position };
  const given = [from, after_version, since].filter((each) => each !== undefined);
  if (given.length > 1)
    throw invalid(["query", "from"], "Give only one of: from, after_version, since, position");
  if (after_version !== undefined) return { afterVersion: after_version };
  if (since !== undefined) return { since };
  return from ?? "now";
}

function draftOf({ client, key, namespace = "default", sender, sequence, value = null }: SignalToSend) {
  return { namespace, key, value, sender: sender!, client, sequence };
}

/** For a service without transactions a key is a client, and the places in the list are its numbers. */
function withKey(
  drafts: readonly SignalToSend[],
  key: string | string[] | undefined,
  principal: string,
): readonly SignalToSend[] {
  if (typeof key !== "string") return drafts;
  return drafts.map((draft, at) =>
    draft.client === undefined
      ? { ...draft, client: `${principal}/${key}`.slice(0, 250), sequence: at }
      : draft,
  );
}
