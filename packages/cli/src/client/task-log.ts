/** The log of one try: its current lines, or live until the try has ended. No line is lost or repeated. */
import { type Client, path } from "./client.ts";
import { HttpError } from "./http-error.ts";
import { logEvents } from "./log-events.ts";
import type { DagRun, TaskInstance } from "./resources.ts";

/** A log line: structured, or plain text from other software. */
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

const START_SECONDS = 60;

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

/** The instance. Waits while the run is queued, because instances are created when the run starts. */
export async function awaitInstance(
  client: Client,
  name: InstanceName,
  signal: AbortSignal,
): Promise<TaskInstance> {
  const { dagId, runId, taskId } = name;
  // Fail at once if the task does not exist.
  await client.get(path`/dags/${dagId}/tasks/${taskId}`, {
    what: `cannot follow the log of ${taskId}`,
    signal,
  });
  for (;;) {
    // Read the run before the instance: a run that starts in between has its instances by then.
    const what = `cannot follow the run ${runId} of ${dagId}`;
    const ofRun = path`/dags/${dagId}/dagRuns/${runId}`;
    const run = await client.get<DagRun>(ofRun, { what, signal });
    try {
      return await getInstance(client, name, signal);
    } catch (error) {
      const missing = error instanceof HttpError && error.status === 404;
      if (!missing || run.state !== "queued") throw error;
    }
    await awaitStart(client, ofRun, { what, signal });
  }
}

/** Returns when the run is no longer queued, or after a timeout. */
async function awaitStart(
  client: Client,
  ofRun: string,
  { signal, what }: { readonly what: string; readonly signal: AbortSignal },
): Promise<void> {
  const response = await client.open(`${ofRun}/wait`, {
    what,
    query: { timeout: START_SECONDS, interval: START_SECONDS },
    timeoutMs: 0,
    signal,
  });
  let lines = 0;
  try {
    for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      // The first line is the current state; the second one reports a change.
      lines += text.split("\n").length - 1;
      if (lines > 1) return;
    }
  } catch {
    // The connection broke, or the command was interrupted: the next request shows which.
  }
}

/** All lines written so far. */
export async function* readLog(
  client: Client,
  name: InstanceName,
  tryNumber: number,
): AsyncGenerator<LogEntry> {
  yield* pages((token) => readPage(client, { name, tryNumber, token }));
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

/** All lines so far and new ones, until the try has ended or the signal aborts. Each event carries the offset to resume from. */
export async function* followLog(
  client: Client,
  name: InstanceName,
  options: { tryNumber: number; signal: AbortSignal },
): AsyncGenerator<LogEntry> {
  const { tryNumber, signal } = options;
  let offset: string | undefined;
  const request = () => ({
    what: `cannot follow the log of ${name.taskId}`,
    query: { map_index: name.mapIndex, offset },
  });
  for await (const event of logEvents(client, `${logPath(name, tryNumber)}/stream`, request, signal)) {
    if (event.id !== undefined) offset = event.id;
    for (const line of event.data) yield JSON.parse(line) as LogEntry;
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
