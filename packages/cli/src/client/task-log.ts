/** The log of one try: what is there now, or live until the try has ended. No line is missed, none comes twice. */
import { setTimeout as sleep } from "node:timers/promises";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { type Client, path } from "./client.ts";
import { readEvents } from "./event-stream.ts";
import { HttpError } from "./http-error.ts";
import type { DagRun, TaskInstance } from "./resources.ts";

/** One line of a log: structured, or the plain text of a foreign one. */
export type LogEntry = string | (Readonly<Record<string, unknown>> & { readonly event: string });

export interface InstanceName {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly mapIndex: number;
}

interface LogPage {
  readonly content: readonly LogEntry[];
  readonly continuation_token: string | null;
}

const RECONNECT_MS = 500;
const PATIENCE_MS = 30_000;

export function instancePath({ dagId, runId, taskId, mapIndex }: InstanceName): string {
  const base = path`/dags/${dagId}/dagRuns/${runId}/taskInstances/${taskId}`;
  return mapIndex === -1 ? base : `${base}/${mapIndex}`;
}

export function getInstance(client: Client, name: InstanceName, signal?: AbortSignal): Promise<TaskInstance> {
  return client.get<TaskInstance>(instancePath(name), {
    what: `cannot find the task ${name.taskId} in the run ${name.runId} of ${name.dagId}`,
    signal,
  });
}

/** The instance, waiting for it while its run is still to start: only then are there instances. */
export async function awaitInstance(
  client: Client,
  name: InstanceName,
  signal: AbortSignal,
): Promise<TaskInstance> {
  const { dagId, runId, taskId } = name;
  // What does not exist at all is not waited for.
  await client.get(path`/dags/${dagId}/tasks/${taskId}`, {
    what: `cannot follow the log of ${taskId}`,
    signal,
  });
  for (;;) {
    // Asked before the instance: a run that starts in between has its instances by then.
    const what = `cannot follow the run ${runId} of ${dagId}`;
    const run = await client.get<DagRun>(path`/dags/${dagId}/dagRuns/${runId}`, { what, signal });
    try {
      return await getInstance(client, name, signal);
    } catch (error) {
      const missing = error instanceof HttpError && error.status === 404;
      if (!missing || run.state !== "queued") throw error;
    }
    await sleep(RECONNECT_MS, undefined, { signal });
  }
}

/** Everything there is now. */
export async function* readLog(
  client: Client,
  name: InstanceName,
  tryNumber: number,
): AsyncGenerator<LogEntry> {
  yield* pages((token) => readPage(client, { name, tryNumber, token }));
}

/** What the run's own code has said: callbacks and `onSignal`. */
export async function* readRunLog(client: Client, dagId: string, runId: string): AsyncGenerator<LogEntry> {
  const where = path`/dags/${dagId}/dagRuns/${runId}/logs`;
  const what = `cannot read the log of the run ${runId} of ${dagId}`;
  yield* pages((token) => client.get<LogPage>(where, { what, query: { token } }));
}

async function* pages(read: (token: string | null) => Promise<LogPage>): AsyncGenerator<LogEntry> {
  let token: string | null = null;
  do {
    const page: LogPage = await read(token);
    yield* page.content;
    if (page.content.length === 0) return;
    token = page.continuation_token;
  } while (token !== null);
}

/**
 * Everything there is, and what is added until the try has ended or the signal aborts. Each event of the stream says
 * where the log goes on: after a broken connection the next stream begins there.
 */
export async function* followLog(
  client: Client,
  name: InstanceName,
  options: { tryNumber: number; signal: AbortSignal },
): AsyncGenerator<LogEntry> {
  const { tryNumber, signal } = options;
  let offset: string | undefined;
  let answeredAt = Date.now();
  while (!signal.aborted) {
    try {
      const response = await client.open(`${logPath(name, tryNumber)}/stream`, {
        what: `cannot follow the log of ${name.taskId}`,
        query: { map_index: name.mapIndex, offset },
        accept: "text/event-stream",
        timeoutMs: 0,
        signal,
      });
      answeredAt = Date.now();
      for await (const event of readEvents(response)) {
        answeredAt = Date.now();
        if (event.id !== undefined) offset = event.id;
        if (event.type === "end") return;
        for (const line of event.data) yield JSON.parse(line) as LogEntry;
      }
    } catch (error) {
      if (signal.aborted) return;
      // A stream that breaks off has no status; whether the server is still there shows at the next attempt.
      const away = !(error instanceof CliError) || error.exit === EXIT.server;
      if (!away || Date.now() - answeredAt > PATIENCE_MS) throw error;
    }
    await sleep(RECONNECT_MS, undefined, { signal }).catch(() => {});
  }
}

function readPage(
  client: Client,
  page: { name: InstanceName; tryNumber: number; token: string | null },
): Promise<LogPage> {
  return client.get<LogPage>(logPath(page.name, page.tryNumber), {
    what: `cannot read the log of ${page.name.taskId}`,
    query: { map_index: page.name.mapIndex, token: page.token },
  });
}

function logPath({ dagId, runId, taskId }: InstanceName, tryNumber: number): string {
  return path`/dags/${dagId}/dagRuns/${runId}/taskInstances/${taskId}/logs/${tryNumber}`;
}
