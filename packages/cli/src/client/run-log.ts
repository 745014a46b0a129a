/** The log of a whole run: the lines of all its tasks by time. No line is lost or repeated. */
import { type Client, path } from "./client.ts";
import { logEvents } from "./log-events.ts";
import type { LogEntry } from "./task-log.ts";

/** A line and its source. */
export interface RunLogEntry {
  /** null: a callback or `onSignal`. */
  readonly task_id: string | null;
  readonly map_index: number;
  readonly try_number: number | null;
  /** The log file; lines of one file keep their order. */
  readonly attempt: string;
  readonly line: LogEntry;
}

export interface RunLogChoice {
  readonly taskIds?: readonly string[] | undefined;
  readonly level?: string | undefined;
  readonly withCallbacks: boolean;
  /** Continue until the run has ended. */
  readonly follow: boolean;
}

export async function* readRunLog(
  client: Client,
  { dagId, runId }: { readonly dagId: string; readonly runId: string },
  { follow, level, taskIds, withCallbacks }: RunLogChoice,
  signal: AbortSignal,
): AsyncGenerator<RunLogEntry> {
  /** Per file: lines read in total, and lines sent by this connection. */
  const read = new Map<string, number>();
  let sent = new Map<string, number>();
  const request = () => {
    sent = new Map();
    return {
      what: `cannot read the log of the run ${runId} of ${dagId}`,
      query: { task_id: taskIds, level, callbacks: withCallbacks, follow },
    };
  };
  const where = path`/dags/${dagId}/dagRuns/${runId}/logs/stream`;
  for await (const { data } of logEvents(client, where, request, signal)) {
    for (const line of data) {
      const entry = JSON.parse(line) as RunLogEntry;
      const place = (sent.get(entry.attempt) ?? 0) + 1;
      sent.set(entry.attempt, place);
      if (place <= (read.get(entry.attempt) ?? 0)) continue;
      read.set(entry.attempt, place);
      yield entry;
    }
  }
}
