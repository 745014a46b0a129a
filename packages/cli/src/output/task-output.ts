/** What a task returned, as JSON; of one that is too large to be shown, where it is. */
import { path } from "../client/client.ts";
import type { InstanceName } from "../client/task-log.ts";
import type { Session } from "../session.ts";
import { plainText } from "../terminal.ts";

interface OutputEntry {
  readonly value: unknown;
  /** Of a large one. */
  readonly object?: {
    readonly store: string;
    readonly key: string;
    readonly bytes: number;
    readonly items: number | null;
  };
}

export async function printOutput(session: Session, name: InstanceName): Promise<void> {
  const { dagId, mapIndex, runId, taskId } = name;
  const entry = await session.client.get<OutputEntry>(
    path`/dags/${dagId}/dagRuns/${runId}/taskInstances/${taskId}/xcomEntries/return_value`,
    { what: `cannot read the output of the task ${taskId}`, query: { map_index: mapIndex } },
  );
  const { terminal } = session;
  if (session.format !== "table") return session.printObject(entry, []);
  const { object, value } = entry;
  if (object !== undefined && value === null) {
    const items = object.items === null ? "" : `, ${object.items} items`;
    session.note(`Too large to be shown (${object.bytes} bytes${items}): ${object.key} in ${object.store}`);
    return;
  }
  const text = JSON.stringify(value, null, 2);
  terminal.data(terminal.width === undefined ? text : plainText(text, false));
}
