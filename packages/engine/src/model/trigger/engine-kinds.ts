/** Triggers that wait for something in the engine's database. Queries answer them; they never run in a child process. */
export const RUN_KIND = "tradewind.dagrun";
export const TASK_KIND = "tradewind.externaltask";
export const WEBHOOK_KIND = "tradewind.webhook";
export const SIGNAL_KIND = "tradewind.signal";

const KINDS: ReadonlySet<string> = new Set([RUN_KIND, TASK_KIND, WEBHOOK_KIND, SIGNAL_KIND]);

export function isEngineKind(kind: string): boolean {
  return KINDS.has(kind);
}
