/** The names of the options of a DAG, a group and a task. docs/guides/options.md has a row for each. */
import type { DagOptions } from "../author/dag-options.ts";
import type { GroupOptions } from "../author/group-options.ts";
import type { TaskDefaults } from "../author/task-options.ts";

export const DAG_OPTION_NAMES = [
  "schedule",
  "start",
  "end",
  "catchup",
  "jitter",
  "pauseAfterFailures",
  "maxActiveRuns",
  "maxActiveTasks",
  "maxActiveTasksPerDag",
  "runTimeout",
  "runRetries",
  "runRetryDelay",
  "runRetryFrom",
  "deadline",
  "stop",
  "endWhen",
  "env",
  "defaults",
  "params",
  "tags",
  "owner",
  "description",
  "docs",
  "onSuccess",
  "onFailure",
] as const satisfies readonly (keyof DagOptions)[];

export const GROUP_OPTION_NAMES = [
  "after",
  "defaults",
  "retries",
  "retryDelay",
  "onSuccess",
  "onFailure",
  "onRetry",
  "docs",
] as const satisfies readonly (keyof GroupOptions)[];

/** Options of a task that `defaults` of a DAG or group also takes. */
export const TASK_DEFAULT_NAMES = [
  "retries",
  "retryDelay",
  "retryBackoff",
  "maxRetryDelay",
  "timeout",
  "pool",
  "poolSlots",
  "priority",
  "weightRule",
  "queue",
  "executor",
  "executorConfig",
  "isolation",
  "memory",
  "openWork",
  "dependsOnPast",
  "waitForDownstream",
  "maxActivePerDag",
  "maxActivePerRun",
  "grace",
  "onSignalTimeout",
  "onSuccess",
  "onFailure",
  "onRetry",
  "onCancel",
] as const satisfies readonly (keyof TaskDefaults)[];

/** All options of a task of any kind. */
export const TASK_OPTION_NAMES: readonly string[] = [
  ...TASK_DEFAULT_NAMES,
  "after",
  "consumes",
  "deadline",
  "docs",
  "env",
  "every",
  "inputs",
  "lifetime",
  "on",
  "produces",
  "rule",
];
