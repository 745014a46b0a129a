import type { RunName, SignalFacts } from "../../model/index.ts";
import type { SignalRow } from "../../store/signal/signals-read.ts";

/** A row of the log, as conditions are told of it. */
export function signalFacts({ id, key, namespace, sender, value }: SignalRow): SignalFacts {
  return { namespace, key, value, version: id, from: senderRun(sender) };
}

/** The run of the task that sent it: see `senderName`. Ids of DAGs and tasks have no slash; those of runs may. */
function senderRun(sender: string): RunName | null {
  const [, dagId, runId] = /^task:([^/]+)\/(.+)\/[^/]+$/s.exec(sender) ?? [];
  return dagId === undefined || runId === undefined ? null : { dagId, runId };
}
