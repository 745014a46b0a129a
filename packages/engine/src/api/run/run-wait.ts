/**
 * `/dagRuns/{id}/wait`: NDJSON with one line now, one at each state change and one every `interval`, until the run has ended or
 * the timeout has passed. Does not poll: `RunWatch` receives the ends of runs.
 */
import type { FastifyReply } from "fastify";
import { z } from "zod";
import { type DagRunRow, findDagRunById } from "../../store/list/dag-runs.ts";
import { readOutputs } from "../../store/list/xcoms.ts";
import type { Resource } from "../server/context.ts";
import { id, iso, many } from "../server/fields.ts";
import { stream } from "../server/streaming.ts";
import { type OutputReader, shownOutputs } from "../task/shown-output.ts";
import { requireRun, runParams } from "./dag-runs.ts";
import { RunWatch } from "./run-watch.ts";

const DAY_SECONDS = 86_400;
const SHORTEST_INTERVAL_MS = 1_000;

const waitQuery = z.strictObject({
  interval: z.coerce
    .number()
    .gt(0)
    .max(DAY_SECONDS)
    .default(15)
    .describe("Seconds between two lines without a state change, at least 1. A change is sent at once."),
  timeout: z.coerce
    .number()
    .min(0)
    .max(DAY_SECONDS)
    .default(DAY_SECONDS)
    .describe("Seconds after which the response ends, even if the run has not ended."),
  result: many(id).optional().describe("Tasks whose outputs are included in the last line."),
});

export const runWait: Resource = (app, options) => {
  const { database } = options;
  const watch = new RunWatch({ database, wakeUps: options.wakeUps });
  app.addHook("onClose", () => watch.close());

  app.get(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/wait",
    { schema: { params: runParams, querystring: waitQuery, response: { 200: z.any() }, tags: ["DagRun"] } },
    async ({ params, query }, reply) => {
      const run = await requireRun(database, params);
      const line = async (now: DagRunRow) => {
        const isAsked = query.result !== undefined && isOver(now);
        const found = isAsked ? await readOutputs(database, now.id, query.result ?? []) : [];
        const results = isAsked ? await resultsOf(found, options.outputs) : null;
        return `${JSON.stringify({ ...show(now), ...(results === null ? {} : { results }) })}\n`;
      };
      return stream(reply as FastifyReply, "application/x-ndjson", async function* (stop) {
        const deadline = performance.now() + query.timeout * 1000;
        const intervalMs = Math.max(query.interval * 1000, SHORTEST_INTERVAL_MS);
        yield await line(run);
        let last: DagRunRow = run;
        while (!isOver(last)) {
          const ms = Math.min(intervalMs, deadline - performance.now());
          if (ms <= 0) return;
          await watch.change(last, { ms, stop });
          if (stop.aborted) return;
          const now = await findDagRunById(database, run.id);
          if (now === undefined) return;
          if (now.state !== last.state || ms === intervalMs) yield await line(now);
          last = now;
        }
      });
    },
  );
};

export function isOver(run: DagRunRow): boolean {
  return run.state === "success" || run.state === "failed";
}

function show({ dag_id, end_reason, ended_at, run_id, started_at, state }: DagRunRow) {
  return {
    state,
    dag_id,
    dag_run_id: run_id,
    start_date: iso(started_at),
    end_date: iso(ended_at),
    end_reason,
  };
}

/** In Airflow's form: the value of a task, or a list for a mapped task. */
async function resultsOf(
  found: Awaited<ReturnType<typeof readOutputs>>,
  reader: OutputReader | undefined,
): Promise<Record<string, unknown>> {
  const values = await shownOutputs(
    found.map(({ value }) => value),
    reader,
  );
  const outputs = found.map((output, place) => ({ ...output, value: values[place] }));
  const byTask = Map.groupBy(outputs, ({ task_id }) => task_id);
  return Object.fromEntries(
    [...byTask].map(([taskId, entries]) => [
      taskId,
      entries[0]!.map_index < 0 ? entries[0]!.value : entries.map(({ value }) => value),
    ]),
  );
}
