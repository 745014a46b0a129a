/**
 * `/dagRuns/{id}/wait`: NDJSON, one line now and one at each change of the run's state, until it is over or the
 * timeout has passed. Each look at the database is a read of one row by key.
 */
import type { FastifyReply } from "fastify";
import { z } from "zod";
import { type DagRunRow, findDagRunById } from "../store/list/dag-runs.ts";
import type { Resource } from "./context.ts";
import { requireRun, runParams } from "./dag-runs.ts";
import { iso } from "./fields.ts";
import { pause, stream } from "./streaming.ts";

const DAY_SECONDS = 86_400;

const waitQuery = z.strictObject({
  /** Seconds between two looks. */
  interval: z.coerce.number().min(0.05).max(60).default(0.2),
  /** Seconds after which the answer ends, finished or not. */
  timeout: z.coerce.number().min(0).max(DAY_SECONDS).default(DAY_SECONDS),
});

export const runWait: Resource = (app, { database }) => {
  app.get(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/wait",
    { schema: { params: runParams, querystring: waitQuery, response: { 200: z.any() }, tags: ["DagRun"] } },
    async ({ params, query }, reply) => {
      const run = await requireRun(database, params);
      return stream(reply as FastifyReply, "application/x-ndjson", async function* (stop) {
        const deadline = performance.now() + query.timeout * 1000;
        yield line(run);
        let last: DagRunRow = run;
        while (!isOver(last) && !stop.aborted) {
          const leftMs = deadline - performance.now();
          if (leftMs <= 0) return;
          await pause(Math.min(query.interval * 1000, leftMs), stop);
          if (stop.aborted) return;
          const now = await findDagRunById(database, run.id);
          if (now === undefined) return;
          if (now.state !== last.state) yield line(now);
          last = now;
        }
      });
    },
  );
};

function isOver(run: DagRunRow): boolean {
  return run.state === "success" || run.state === "failed";
}

function line(run: DagRunRow): string {
  const { dag_id, end_reason, ended_at, run_id, started_at, state } = run;
  return `${JSON.stringify({ state, dag_id, dag_run_id: run_id, start_date: iso(started_at), end_date: iso(ended_at), end_reason })}\n`;
}
