/**
 * The rows of `pool` that count active instances across all runs of a DAG: of one task, and of all its tasks. The prefix
 * "@" marks internal counters. `task_instance.limit_key` lists the counters of an instance, one name per line.
 */
export function limitKey(dagId: string, taskId: string): string {
  return `@${dagId}/${taskId}`;
}

/** No DAG id begins with "@", so this cannot be the key of a task. */
export function dagLimitKey(dagId: string): string {
  return `@@${dagId}`;
}

/** The counters of an instance of this task; null: none. */
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
