/**
 * `/dagRuns/{id}/logs/stream`: the logs of all tasks of a run as one, in the order of time, as server-sent events; with
 * `follow` until the run has ended. What is there at the beginning is in order; of what is added later, lines that
 * arrive together are. With each line come its task, map index and try. `attempt` names its file: the n-th line of a file is
 * always the same, so a client that connects again can leave out as many lines of each as it has seen.
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
/** Reading all folders takes at most this part of the time. */
const LOOK_SHARE = 20;
const WATCH_MS = 15_000;

const query = z.strictObject({
  task_id: many(id).optional().describe("Only of these tasks."),
  level: z.enum(LEVELS).default("debug").describe("Only lines of this level or above."),
  callbacks: flag.default(false).describe("With what callbacks and onSignal have logged."),
  follow: flag.default(false).describe("Until the run has ended."),
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
  const tree = new RunLogTree(options.logsDir, run, {
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
  // Sent at once, so that a client knows it is connected before the first line is written.
  yield "retry: 1000\n\n";
  try {
    while (!stop.aborted) {
      // Decided before the logs are read: lines written before the end are still sent.
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

/** Returns when the run has ended, is gone, or the client has left. */
async function awaitEnd({ database }: ApiOptions, { run, stop, watch }: RunLogCall): Promise<void> {
  let now: DagRunRow | undefined = run;
  while (now && !isOver(now) && !stop.aborted) {
    await watch.change(now, { ms: WATCH_MS, stop });
    // While the database does not answer, the last known state counts.
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
