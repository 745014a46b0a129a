/**
 * The rows of `pool` that count active instances across all runs of a DAG: of one task, and of all its tasks. "@": the
 * engine's own. An instance remembers which of them count it (`task_instance.limit_key`), one name a line.
 */
export function limitKey(dagId: string, taskId: string): string {
  return `@${dagId}/${taskId}`;
}

/** No DAG's id begins with "@", so that this is no task's. */
export function dagLimitKey(dagId: string): string {
  return `@@${dagId}`;
}

/** What counts an instance of this task; null: nothing does. */
export function limitKeyOf(
  dag: { readonly dagId: string; readonly maxActiveTasksPerDag?: number },
  task: { readonly taskId: string; readonly maxActivePerDag: number | null },
): string | null {
  const names: string[] = [];
  if (task.maxActivePerDag !== null) names.push(limitKey(dag.dagId, task.taskId));
  if (dag.maxActiveTasksPerDag !== undefined) names.push(dagLimitKey(dag.dagId));
  return names.length === 0 ? null : names.join("\n");
}

export function limitNames(key: string | null): readonly string[] {
  return key === null ? [] : key.split("\n");
}
