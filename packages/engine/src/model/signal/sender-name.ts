/** A task of a run, as the sender of a signal. */
export interface TaskPlace {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
}

/** The name of a task as the sender of a signal. A condition on signals of its own run compares this text. */
export function senderName({ dagId, runId, taskId }: TaskPlace): string {
  return `task:${dagId}/${runId}/${taskId}`;
}

/** The inverse of `senderName`; null: the sender is not a task. Only a run id may contain a slash. */
export function senderPlace(name: string): TaskPlace | null {
  const [, dagId, runId, taskId] = /^task:([^/]+)\/(.+)\/([^/]+)$/s.exec(name) ?? [];
  return dagId && runId && taskId ? { dagId, runId, taskId } : null;
}
