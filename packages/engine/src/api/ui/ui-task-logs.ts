/**
 * `/ui/…/log/{try}`: the log of a try for a viewer that shows some lines of a large log: an index of its lines, the text of a
 * range, and the lines that contain a text. Live lines come from the stream of `task-logs.ts`.
 */
import type { FastifyReply } from "fastify";
import { z } from "zod";
import type { Resource } from "../server/context.ts";
import { flag, int, mapIndex, text } from "../server/fields.ts";
import { type LogPart, TryLogReader } from "../task/log-files.ts";
import { indexLog, linesBetween, searchLog } from "../task/log-scan.ts";
import { isOver, requireTry, tryParams } from "../task/task-logs.ts";
import { bytes, UI_TAG } from "./columns.ts";

const CHUNK_BYTES = 64 * 1024;
const MOST_INDEXED = 128 * 1024 * 1024;
const MOST_READ = 4 * 1024 * 1024;
const MOST_MATCHES = 50_000;
const MOST_TEXT = 1_000;

const offset = int(0, Number.MAX_SAFE_INTEGER);
const indexQuery = z.strictObject({
  map_index: mapIndex.default(-1),
  after: offset.default(0).describe("The `size` of an earlier answer: only what was written since then."),
  tail: flag.default(false).describe("With the text of the last chunk."),
});
const textQuery = z.strictObject({
  map_index: mapIndex.default(-1),
  from: offset.default(0).describe("The beginning of a line."),
  to: offset.default(MOST_READ),
});
const searchQuery = z.strictObject({
  map_index: mapIndex.default(-1),
  q: text
    .max(MOST_TEXT)
    .default("")
    .describe("Without capital letters, it matches both cases. Empty: no line."),
});

const indexDocument = z
  .object({
    size: z.number().describe("The position in bytes after the last whole line."),
    lines: z.number(),
    chunk_lines: z.array(z.number()).describe("The first line of each chunk, from 0 on."),
    chunk_starts: z.array(z.number()).describe("The position of each chunk in bytes."),
    kinds: bytes.describe(
      "Base64, a byte per line. Bits 0 and 1: debug, info, warn, error. Bits 2 and 3: task, stdout, stderr, engine. Bit 4: of a trigger. Bit 5: `::group::`. Bit 6: `::endgroup::`.",
    ),
    tail: z.string().nullable().describe("The text of the last chunk, on request."),
    more: z.boolean().describe("There is more after `size`: ask again."),
    is_over: z.boolean().describe("Nothing more will be written."),
  })
  .meta({ id: "UiLogIndex" });

const matchesDocument = z
  .object({
    total: z.number().describe("Lines with the text."),
    lines: z.array(z.number()).describe(`Their numbers, from 0 on; at most ${MOST_MATCHES}.`),
  })
  .meta({ id: "UiLogMatches" });

const BASE = "/ui/dags/:dag_id/runs/:dag_run_id/task-instances/:task_id/log/:try_number";

export const uiTaskLogs: Resource = (app, options) => {
  const tags = [UI_TAG.name];

  app.get(
    BASE,
    { schema: { params: tryParams, querystring: indexQuery, response: { 200: indexDocument }, tags } },
    async ({ params, query }) => {
      const row = await requireTry(options, params, query.map_index);
      const parts = await new TryLogReader(options.logs, row, params.try_number).parts();
      const found = await indexLog(parts, query.after, { chunkBytes: CHUNK_BYTES, mostBytes: MOST_INDEXED });
      const last = found.chunkStarts.at(-1);
      const tail = query.tail && last !== undefined ? await textBetween(parts, last, found.size) : null;
      return {
        tail: tail?.toString("utf8") ?? null,
        size: found.size,
        lines: found.lines,
        chunk_lines: [...found.chunkLines],
        chunk_starts: [...found.chunkStarts],
        kinds: found.kinds.toString("base64"),
        more: !found.isWhole,
        is_over: isOver(row, params.try_number),
      };
    },
  );

  app.get(
    `${BASE}/text`,
    { schema: { params: tryParams, querystring: textQuery, response: { 200: z.any() }, tags } },
    async ({ params, query }, reply) => {
      const row = await requireTry(options, params, query.map_index);
      const parts = await new TryLogReader(options.logs, row, params.try_number).parts();
      const to = Math.min(query.to, query.from + MOST_READ);
      return (reply as unknown as FastifyReply)
        .type("application/x-ndjson")
        .send(await textBetween(parts, query.from, to)) as never;
    },
  );

  app.get(
    `${BASE}/search`,
    { schema: { params: tryParams, querystring: searchQuery, response: { 200: matchesDocument }, tags } },
    async ({ params, query }) => {
      const row = await requireTry(options, params, query.map_index);
      if (query.q === "") return { total: 0, lines: [] };
      const parts = await new TryLogReader(options.logs, row, params.try_number).parts();
      const { lines, total } = await searchLog(parts, query.q, MOST_MATCHES);
      return { total, lines: [...lines] };
    },
  );
};

async function textBetween(parts: readonly LogPart[], from: number, to: number): Promise<Buffer> {
  const found: Buffer[] = [];
  for await (const { bytes } of linesBetween(parts, from, to)) found.push(bytes);
  return Buffer.concat(found);
}
