/** The output of a task as JSON; a large output is streamed in pieces, as stored. */
import { path } from "../client/client.ts";
import { networkError } from "../client/http-error.ts";
import type { InstanceName } from "../client/task-log.ts";
import type { Session } from "../session.ts";
import { plainText } from "../terminal.ts";

interface OutputEntry {
  readonly value: unknown;
  /** Set for a large output. */
  readonly object?: object;
}

export async function printOutput(session: Session, name: InstanceName): Promise<void> {
  const { dagId, mapIndex, runId, taskId } = name;
  const where = path`/dags/${dagId}/dagRuns/${runId}/taskInstances/${taskId}/xcomEntries/return_value`;
  const call = { what: `cannot read the output of the task ${taskId}`, query: { map_index: mapIndex } };
  const entry = await session.client.get<OutputEntry>(where, call);
  const { terminal } = session;
  const { value, ...known } = entry;
  if (known.object === undefined || value !== null) {
    if (session.format !== "table") return session.printObject(entry, []);
    return terminal.data(shown(session, JSON.stringify(value, null, 2)));
  }
  const raw = await session.client.open(where, {
    ...call,
    query: { ...call.query, raw: true },
    timeoutMs: 0,
  });
  if (session.format === "table") {
    await pour(session, raw, call.what);
    return terminal.raw("\n");
  }
  // JSON is valid YAML.
  terminal.raw(`${JSON.stringify(known, null, 2).slice(0, -2)},\n  "value": `);
  await pour(session, raw, call.what);
  terminal.raw("\n}\n");
}

/** @throws If the connection breaks, because the printed output is then incomplete. */
async function pour(session: Session, { body }: Response, what: string): Promise<void> {
  try {
    for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? [])
      await session.terminal.pour(shown(session, text));
  } catch (error) {
    throw networkError(`${what} to its end`, session.client.target, error);
  }
}

function shown({ terminal }: Session, text: string): string {
  return terminal.width === undefined ? text : plainText(text, false);
}
