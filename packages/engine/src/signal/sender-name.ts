/** A task as the sender of a signal. A condition on signals of its own run looks for this text. */
export function senderName(from: {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
}): string {
  return `task:${from.dagId}/${from.runId}/${from.taskId}`;
}
