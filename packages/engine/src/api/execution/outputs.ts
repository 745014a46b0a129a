/** `/execution/v1/outputs`: large outputs of assignments, stored and read by the API server for its workers. */
import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { z } from "zod";
import { LargeValue } from "../../model/index.ts";
import type { OpenText } from "../../output/large-outputs.ts";
import { isReadGrant } from "../../secret/attempt-token.ts";
import { EngineError } from "../../service/errors.ts";
import { findObject } from "../../store/output/output-objects.ts";
import type { ApiApp, ApiOptions, Resource } from "../server/context.ts";
import { int } from "../server/fields.ts";
import { invalid, notFound, Problem } from "../server/problem.ts";
import { ExecutionAccess, executionRoute } from "./execution-access.ts";

/** The attempt token: a header, because paths and queries are often logged. */
const headers = z.looseObject({ "tradewind-attempt": z.string().max(512) });

const reference = z.object({
  id: z.number(),
  store: z.string(),
  key: z.string(),
  bytes: z.number(),
  sha256: z.string(),
  items: z.number().nullable(),
});

const storeQuery = z.strictObject({
  worker: int(1),
  bytes: int(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const readQuery = z.strictObject({
  worker: int(1),
  grant: z.string().max(100),
  /** Item indexes from the output inwards, e.g. `3,0`; left out: the whole output. */
  path: z
    .string()
    .max(1_000)
    .regex(/^\d{1,10}(,\d{1,10})*$/)
    .optional(),
  /** Bytes to skip: to continue after an interruption. */
  from: int(0).default(0),
});

const params = z.object({ object_id: int(1, Number.MAX_SAFE_INTEGER) });
const tags = ["Task execution"];

export function executionOutputs(outputs: Outputs): Resource {
  return (app, options) => register(app, options, outputs);
}

function register(app: ApiApp, options: ApiOptions, outputs: Outputs): void {
  const access = new ExecutionAccess(options);

  // The only route that accepts a body other than JSON.
  void app.register(async (raw) => {
    raw.addContentTypeParser("application/octet-stream", (_request, body, done) => done(null, body));
    (raw as ApiApp).post(
      "/execution/v1/outputs",
      {
        config: { ...executionRoute(options), isUpload: true },
        schema: { headers, querystring: storeQuery, response: { 201: reference }, tags },
      },
      async (request, reply) => {
        const { bytes, sha256, worker } = request.query;
        const of = await access.requireCurrent(request, worker, request.headers["tradewind-attempt"]);
        if (of.kind !== "attempt") throw invalid(["header", "tradewind-attempt"], "is not of an attempt");
        const { most } = outputs.limits;
        if (bytes > most)
          throw new Problem(
            413,
            "OUTPUT_TOO_LARGE",
            `The output has ${bytes} bytes, and ${most} are the limit`,
          );
        const draft = outputs.draft({ bytes, sha256 });
        try {
          await draft.open();
          for await (const piece of request.body as Readable) await draft.write(piece as Buffer);
        } catch {
          await draft.discard();
          throw new Problem(
            400,
            "BODY_INCOMPLETE",
            "The connection broke before the whole output had arrived",
          );
        }
        const { dagRunId: runId, id: attempt, mapIndex, run, taskId } = of;
        const place = { dagId: run.dagId, runId, run: run.runId, taskId, mapIndex, attempt };
        const stored = await shown(() => outputs.keep(draft, place));
        reply.code(201);
        return stored;
      },
    );
  });

  app.get(
    "/execution/v1/outputs/:object_id",
    {
      config: executionRoute(options),
      schema: { headers, params, querystring: readQuery, response: { 200: z.any() }, tags },
    },
    async (request, reply) => {
      const { from, grant, path, worker } = request.query;
      const id = request.params.object_id;
      const { id: reader } = await access.requireCurrent(
        request,
        worker,
        request.headers["tradewind-attempt"],
      );
      if (!isReadGrant(options.secretBox, grant, reader, id))
        throw new Problem(
          403,
          "OUTPUT_FOREIGN",
          `The assignment has no reference to the output object ${id}`,
        );
      const found = await findObject(options.database, id);
      if (found === undefined) throw notFound(`There is no output object ${id}`);
      const value = new LargeValue(found, path?.split(",").map(Number));
      const text = await shown(() => outputs.open(value));
      const answer = reply as unknown as FastifyReply;
      // Also for a client that disconnected before the first piece.
      answer.raw.once("close", () => text.close());
      const pieces = request.method === "HEAD" ? [] : bytesFrom(text, from);
      return answer.type("application/json").send(Readable.from(pieces, { objectMode: false })) as never;
    },
  );
}

type Outputs = NonNullable<ApiOptions["execution"]>["outputs"];

/** If this fails, or the server stops, the connection is cut: an answer that ends by itself is complete. */
async function* bytesFrom(text: OpenText, from: number): AsyncGenerator<Buffer> {
  let skip = from;
  for await (const piece of text.pieces()) {
    const bytes = Buffer.from(piece);
    if (skip < bytes.length) yield skip === 0 ? bytes : bytes.subarray(skip);
    skip = Math.max(0, skip - bytes.length);
  }
}

/** The errors of large outputs are for the author of the task: the worker passes them on. */
async function shown<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const status = error instanceof EngineError ? STATUS[error.code] : undefined;
    throw status === undefined
      ? error
      : new Problem(status, (error as EngineError).code, (error as EngineError).message);
  }
}

const STATUS: Readonly<Record<string, number>> = {
  OUTPUT_DAMAGED: 409,
  OUTPUT_MISSING: 404,
  OUTPUT_NOT_STORED: 503,
  OUTPUT_UNREADABLE: 503,
};
