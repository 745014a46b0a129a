/**
 * `/dagRuns/{id}/logs/stream`: the logs of all tasks of a run, merged by time, as server-sent events; with `follow` until the
 * run has ended. Existing lines are fully ordered; later lines are ordered within the same read. Each line has its task, map
 * index and try. `attempt` names its file: the n-th line of a file never changes, so a client that reconnects can skip as many
 * lines per file as it has received.
 */
import type { FastifyReply } from "fastify";
import { z } from "zod";
import { type DagRunRow, findDagRunById } from "../../store/list/dag-runs.ts";
import { hasOpenCallbacks } from "../../store/notify/callbacks.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import { flag, id, many } from "../server/fields.ts";
import { stream } from "../server/streaming.ts";
import { showLine } from "../task/task-logs.ts";
import { requireRun, runParams } from "./dag-runs.ts";
import { LogMerge, type MergedLine } from "./log-merge.ts";
import { RunLogTree } from "./run-log-tree.ts";
import { isOver } from "./run-wait.ts";
import { RunWatch } from "./run-watch.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;
const EVENT_BYTES = 64 * 1024;
const KEEP_ALIVE_MS = 15_000;
const LOOK_MS = 1_000;
/** Full scans of the folders take at most 1/20 of the time. */
const LOOK_SHARE = 20;
const WATCH_MS = 15_000;

const query = z.strictObject({
  task_id: many(id).optional().describe("Only these tasks."),
  level: z.enum(LEVELS).default("debug").describe("Minimum level."),
  callbacks: flag.default(false).describe("Include the logs of callbacks and onSignal."),
  follow: flag.default(false).describe("Continue until the run has ended."),
});

export const runLogStream: Resource = (app, options) => {
  const watch = new RunWatch({ database: options.database, wakeUps: options.wakeUps });
  app.addHook("onClose", () => watch.close());

  app.get(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/logs/stream",
    { schema: { params: runParams, querystring: query, response: { 200: z.any() }, tags: ["DagRun"] } },
    async (request, reply) => {
      const run = await requireRun(options.database, request.params);
      return stream(reply as FastifyReply, "text/event-stream", (stop) =>
        runLog(options, { run, watch, stop, ...request.query }),
      );
    },
  );
};

interface RunLogCall extends z.output<typeof query> {
  readonly run: DagRunRow;
  readonly watch: RunWatch;
  readonly stop: AbortSignal;
}

async function* runLog(options: ApiOptions, call: RunLogCall): AsyncGenerator<string, void, undefined> {
  const { follow, level, run, stop } = call;
  const tree = new RunLogTree(options.logs, run, {
    taskIds: call.task_id,
    withCallbacks: call.callbacks,
    isFollowed: follow,
  });
  const merge = new LogMerge();
  let hasEnded = !follow;
  if (follow) {
    void awaitEnd(options, call).then(() => {
      hasEnded = true;
      tree.wake();
    });
  }
  let lookMs = LOOK_MS;
  let lookAt = 0;
  let sentAt = performance.now();
  // Sent at once, so that a client sees the connection before the first line is written.
  yield "retry: 1000\n\n";
  try {
    while (!stop.aborted) {
      // Read the state before the logs: lines written before the end are still sent.
      const isLast =
        hasEnded && !(follow && call.callbacks && (await hasOpenCallbacks(options.database, run.id)));
      const began = performance.now();
      const isAll = isLast || began >= lookAt;
      for await (const found of tree.changed({ isAll })) merge.add(found);
      if (isAll) {
        lookMs = Math.max(LOOK_MS, (performance.now() - began) * LOOK_SHARE);
        lookAt = performance.now() + lookMs;
      }
      for await (const event of events(merge.lines(stop), LEVELS.indexOf(level))) {
        sentAt = performance.now();
        yield event;
      }
      if (isLast) {
        if (!stop.aborted) yield "event: end\ndata: {}\n\n";
        return;
      }
      await tree.wait({ ms: lookMs, stop });
      if (performance.now() - sentAt < KEEP_ALIVE_MS) continue;
      sentAt = performance.now();
      yield ": still here\n\n";
    }
  } finally {
    tree.close();
  }
}

/** Returns when the run has ended or was deleted, or the client has disconnected. */
async function awaitEnd({ database }: ApiOptions, { run, stop, watch }: RunLogCall): Promise<void> {
  let now: DagRunRow | undefined = run;
  while (now && !isOver(now) && !stop.aborted) {
    await watch.change(now, { ms: WATCH_MS, stop });
    // While the database is unreachable, use the last known state.
    now = await findDagRunById(database, run.id).catch(() => now);
  }
}

async function* events(
  lines: AsyncGenerator<MergedLine, void, undefined>,
  level: number,
): AsyncGenerator<string, void, undefined> {
  let text = "";
  for await (const merged of lines) {
    if (LEVELS.indexOf(merged.line.level) < level) continue;
    text += `data: ${JSON.stringify(showMerged(merged))}\n`;
    if (text.length < EVENT_BYTES) continue;
    yield `${text}\n`;
    text = "";
  }
  if (text !== "") yield `${text}\n`;
}

function showMerged({ line, source }: MergedLine) {
  return {
    task_id: source.taskId,
    map_index: source.mapIndex,
    try_number: source.tryNumber,
    attempt: source.name,
    line: showLine(line),
  };
}
