/** The row of `pool` that counts a task's active instances across all runs of its DAG. "@": the engine's own. */
export function limitKey(dagId: string, taskId: string): string {
  return `@${dagId}/${taskId}`;
}
