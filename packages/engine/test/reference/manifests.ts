/** Manifests with defaults for every field, for tests that set only a few. */
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";

export function taskManifest(taskId: string, facts: Partial<TaskManifest> = {}): TaskManifest {
  return {
    taskId,
    operator: "task",
    upstream: [],
    inputs: {},
    rule: "allSuccess",
    retries: 0,
    retryDelayMs: 0,
    retryBackoff: 1,
    maxRetryDelayMs: null,
    timeoutMs: null,
    memoryMb: null,
    pool: "default_pool",
    poolSlots: 1,
    priority: 1,
    weightRule: "downstream",
    queue: "default",
    executor: null,
    isolation: "warm",
    dependsOnPast: false,
    waitForDownstream: false,
    maxActivePerDag: null,
    maxActivePerRun: null,
    group: null,
    role: "work",
    callbacks: { success: false, failure: false, retry: false },
    docs: null,
    ...facts,
  };
}

export function dagManifest(tasks: readonly TaskManifest[], facts: Partial<DagManifest> = {}): DagManifest {
  return {
    dagId: "dag",
    description: null,
    docs: null,
    owner: null,
    tags: [],
    schedule: { kind: "none" },
    start: null,
    end: null,
    catchup: false,
    maxActiveRuns: 16,
    maxActiveTasks: 16,
    runTimeoutMs: null,
    paramsSchema: null,
    hasParams: false,
    callbacks: { success: false, failure: false },
    tasks,
    groups: [],
    ...facts,
  };
}
