/** The signals that are stored with the success of a task: its own, and those of its assets. */
import type { RunFacts, SignalToSend } from "@tradewind/sdk/program";
import { type Instance, successSignals } from "../../model/index.ts";
import { senderName } from "../../model/signal/sender-name.ts";
import type { SignalDraft } from "../../store/signal/signals.ts";

export function successDrafts(
  { dagId, runId }: RunFacts,
  { mapIndex, node }: Instance,
  told: readonly SignalToSend[] = [],
): SignalDraft[] {
  const source = { dagId, runId, taskId: node.id, mapIndex };
  const sender = senderName(source);
  return successSignals(node.manifest, told, source).map((signal) => ({ ...signal, sender }));
}
