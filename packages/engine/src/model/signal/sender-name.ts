/** A task of a run, as the sender of a signal. */
export interface TaskPlace {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
}

/** A task as the sender of a signal. A condition on signals of its own run looks for this text. */
export function senderName({ dagId, runId, taskId }: TaskPlace): string {
  return `task:${dagId}/${runId}/${taskId}`;
}

/** The other way round; null: that is no task. Only the id of a run may have a slash. */
export function senderPlace(name: string): TaskPlace | null {
  const [, dagId, runId, taskId] = /^task:([^/]+)\/(.+)\/([^/]+)$/s.exec(name) ?? [];
  return dagId && runId && taskId ? { dagId, runId, taskId } : null;
}
