import type { RunName, SignalFacts } from "../../model/index.ts";
import type { SignalRow } from "../../store/signal/signals-read.ts";

/** A row of the log, in the form that conditions are evaluated against. */
export function signalFacts({ id, key, namespace, sender, value }: SignalRow): SignalFacts {
  return { namespace, key, value, version: id, from: senderRun(sender) };
}

/** The run of the task that sent the signal: see `senderName`. DAG ids and task ids contain no slash; run ids may. */
function senderRun(sender: string): RunName | null {
  const [, dagId, runId] = /^task:([^/]+)\/(.+)\/[^/]+$/s.exec(sender) ?? [];
  return dagId === undefined || runId === undefined ? null : { dagId, runId };
}
