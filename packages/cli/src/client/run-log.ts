/** The log of a whole run: the lines of all its tasks in the order of time. No line is missed, none comes twice. */
import { type Client, path } from "./client.ts";
import { logEvents } from "./log-events.ts";
import type { LogEntry } from "./task-log.ts";

/** A line, and where it comes from. */
export interface RunLogEntry {
  /** null: a callback, or `onSignal`. */
  readonly task_id: string | null;
  readonly map_index: number;
  readonly try_number: number | null;
  /** The file it is in: lines of one file never change their order. */
  readonly attempt: string;
  readonly line: LogEntry;
}

export interface RunLogChoice {
  readonly taskIds?: readonly string[] | undefined;
  readonly level?: string | undefined;
  readonly withCallbacks: boolean;
  /** Until the run has ended. */
  readonly follow: boolean;
}

export async function* readRunLog(
  client: Client,
  { dagId, runId }: { readonly dagId: string; readonly runId: string },
  { follow, level, taskIds, withCallbacks }: RunLogChoice,
  signal: AbortSignal,
): AsyncGenerator<RunLogEntry> {
  /** Lines of each file that were read, and how many of them this connection has sent. */
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
