/** Triggers that wait for something in our own database: answered by queries, never run in a child. */
export const RUN_KIND = "tradewind.dagrun";
export const TASK_KIND = "tradewind.externaltask";
export const WEBHOOK_KIND = "tradewind.webhook";

export function isEngineKind(kind: string): boolean {
  return kind === RUN_KIND || kind === TASK_KIND || kind === WEBHOOK_KIND;
}
