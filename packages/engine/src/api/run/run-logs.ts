/**
 * `/dagRuns/{id}/logs`: log lines of a run that belong to no task's log: callbacks of the run, callbacks of tasks whose process
 * had ended, and `onSignal`. Each begins with a line that names it. Paged by byte offset, like the log of a try. It may grow after
 * the end of the run, because callbacks run then.
 */
import { z } from "zod";
import type { Resource } from "../server/context.ts";
import { int } from "../server/fields.ts";
import { RunLogReader } from "../task/log-files.ts";
import { LOG_BYTES, logDocument, showLine } from "../task/task-logs.ts";
import { requireRun, runParams } from "./dag-runs.ts";

const query = z.strictObject({ token: int(0, Number.MAX_SAFE_INTEGER).default(0) });

export const runLogs: Resource = (app, options) => {
  app.get(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/logs",
    { schema: { params: runParams, querystring: query, response: { 200: logDocument }, tags: ["DagRun"] } },
    async (request) => {
      const run = await requireRun(options.database, request.params);
      const log = new RunLogReader(options.logs, run);
      const { lines, nextOffset, end } = await log.read(request.query.token, LOG_BYTES);
      return { content: lines.map(showLine), continuation_token: end ? null : String(nextOffset) };
    },
  );
};
