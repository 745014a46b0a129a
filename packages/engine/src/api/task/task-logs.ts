/**
 * `/logs/{try}`: the log of a try by byte offset (the continuation token is the offset), as NDJSON, or live as server-sent
 * events. The id of each event is the offset after it; Last-Event-ID resumes there.
 */
import type { FastifyReply } from "fastify";
import { z } from "zod";
import type { LogLine } from "../../log/task-log.ts";
import { FINISHED, isTaskState } from "../../model/run/states.ts";
import type { TaskInstanceRow } from "../../store/list/task-instances.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import { flag, int, mapIndex } from "../server/fields.ts";
import { invalid, notFound } from "../server/problem.ts";
import { stream } from "../server/streaming.ts";
import { TryLogReader } from "./log-files.ts";
import { addressOf, describe, requireInstance, taskParams } from "./task-instances.ts";

const MAX_OFFSET = Number.MAX_SAFE_INTEGER;
/** Approximate size of a piece. */
export const LOG_BYTES = 256 * 1024;
const FULL_BYTES = 8 * 1024 * 1024;
/** Poll interval of a quiet log, in case a change goes unnoticed and to find the end of its try; it grows up to a limit. */
const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 1_000;
/** Minimum time between two queries for the end of a try that writes without pause. */
const ASK_MS = 200;
const KEEP_ALIVE_MS = 15_000;

export const tryParams = taskParams.extend({ try_number: int(1) });
const where = {
  map_index: mapIndex.default(-1),
  token: int(0, MAX_OFFSET).optional(),
  offset: int(0, MAX_OFFSET).optional(),
};
const logQuery = z.strictObject({ ...where, full_content: flag.default(false) });
const streamQuery = z.strictObject(where);
const message = z.looseObject({ timestamp: z.string(), event: z.string() });
export const logDocument = z.object({ content: z.array(message), continuation_token: z.string().nullable() });

const BASE = "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/taskInstances/:task_id/logs/:try_number";

export const taskLogs: Resource = (app, options) => {
  app.get(
    BASE,
    {
      schema: {
        params: tryParams,
        querystring: logQuery,
        response: { 200: logDocument },
        tags: ["Task Instance"],
      },
    },
    async (request, reply) => {
      const { query } = request;
      const row = await requireTry(options, request.params, query.map_index);
      const log = new TryLogReader(options.logs, row, request.params.try_number);
      const from = query.token ?? query.offset ?? 0;
      if (/\bapplication\/x-ndjson\b/.test(request.headers.accept ?? "")) {
        return stream(reply as unknown as FastifyReply, "application/x-ndjson", (stop) =>
          wholeLog(log, from, stop),
        ) as never;
      }
      const chunk = await log.read(from, query.full_content ? FULL_BYTES : LOG_BYTES);
      const over = chunk.end && isOver(row, request.params.try_number);
      return {
        content: chunk.lines.map(showLine),
        continuation_token: over ? null : String(chunk.nextOffset),
      };
    },
  );

  app.get(
    `${BASE}/stream`,
    {
      schema: {
        params: tryParams,
        querystring: streamQuery,
        response: { 200: z.any() },
        tags: ["Task Instance"],
      },
    },
    async (request, reply) => {
      const { query } = request;
      const row = await requireTry(options, request.params, query.map_index);
      const from = lastEventId(request.headers["last-event-id"]) ?? query.token ?? query.offset ?? 0;
      const ended = async () => {
        const now = await requireInstance(options.database, addressOf(request.params, query.map_index)).catch(
          () => null,
        );
        return now === null || isOver(now, request.params.try_number);
      };
      return stream(reply as FastifyReply, "text/event-stream", (stop) => {
        const log = new TryLogReader(options.logs, row, request.params.try_number, true);
        return liveLog(log, { from, ended, stop });
      });
    },
  );
};

export async function requireTry(
  options: ApiOptions,
  path: z.output<typeof tryParams>,
  index: number,
): Promise<TaskInstanceRow> {
  const address = addressOf(path, index);
  const row = await requireInstance(options.database, address);
  if (path.try_number > Math.max(row.try_number, 1)) {
    throw notFound(`${describe(address)} has no try ${path.try_number}: the latest is try ${row.try_number}`);
  }
  return row;
}

/** True if nothing more will be written to the log of this try. */
export function isOver(row: TaskInstanceRow, tryNumber: number): boolean {
  return (
    tryNumber < row.try_number ||
    row.state === "up_for_retry" ||
    (isTaskState(row.state) && FINISHED.has(row.state))
  );
}

async function* wholeLog(
  log: TryLogReader,
  from: number,
  stop: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  for (let offset = from; !stop.aborted; ) {
    const chunk = await log.read(offset, LOG_BYTES);
    if (chunk.lines.length > 0)
      yield chunk.lines.map((line) => `${JSON.stringify(showLine(line))}\n`).join("");
    if (chunk.end) return;
    offset = chunk.nextOffset;
  }
}

interface Follow {
  readonly from: number;
  readonly ended: () => Promise<boolean>;
  readonly stop: AbortSignal;
}

async function* liveLog(
  log: TryLogReader,
  { ended, from, stop }: Follow,
): AsyncGenerator<string, void, undefined> {
  let offset = from;
  let lookMs = FIRST_LOOK_MS;
  let askAt = 0;
  let over = false;
  let spokeAt = performance.now();
  // Sent at once, so that a client sees the connection before the first line is written.
  yield "retry: 1000\n\n";
  try {
    while (!stop.aborted) {
      // Query the state before reading: lines written before the end are still read.
      if (!over && performance.now() >= askAt) {
        over = await ended();
        askAt = performance.now() + ASK_MS;
      }
      const chunk = await log.read(offset, LOG_BYTES);
      offset = chunk.nextOffset;
      if (chunk.lines.length > 0) {
        lookMs = FIRST_LOOK_MS;
        spokeAt = performance.now();
        yield `id: ${offset}\n${chunk.lines.map((line) => `data: ${JSON.stringify(showLine(line))}\n`).join("")}\n`;
      }
      if (!chunk.end) continue;
      if (over) {
        yield `id: ${offset}\nevent: end\ndata: {}\n\n`;
        return;
      }
      await log.wait({ ms: lookMs, stop });
      lookMs = Math.min(lookMs * 2, LAST_LOOK_MS);
      if (performance.now() - spokeAt >= KEEP_ALIVE_MS) {
        spokeAt = performance.now();
        yield ": still here\n\n";
      }
    }
  } finally {
    log.close();
  }
}

function lastEventId(header: string | string[] | undefined): number | undefined {
  if (header === undefined || header === "") return undefined;
  const offset = typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN;
  if (Number.isNaN(offset))
    throw invalid(["header", "last-event-id"], "Must be the id of an event of this stream (a byte offset)");
  return offset;
}

export function showLine(line: LogLine): z.output<typeof message> {
  return { ...line.fields, timestamp: line.t, level: line.level, logger: line.source, event: line.message };
}
