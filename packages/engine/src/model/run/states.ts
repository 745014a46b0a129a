/** The states of task instances and runs, defined once: SQL checks, API enums and diagrams follow this table. */

/** Properties of a task state. */
interface TaskStateFacts {
  /** The instance no longer changes by itself; only a user can change it. */
  readonly finished: boolean;
  /** Counts as a failure in the verdict on the run. */
  readonly failed: boolean;
  /** Counts as a success in the verdict on the run. */
  readonly succeeded: boolean;
  /** Occupies slots of its pool and limits. */
  readonly occupying: boolean;
}

const waiting = { finished: false, failed: false, succeeded: false, occupying: false } as const;
const occupying = { ...waiting, occupying: true } as const;
const good = { finished: true, failed: false, succeeded: true, occupying: false } as const;
const bad = { finished: true, failed: true, succeeded: false, occupying: false } as const;

export const TASK_STATES = {
  pending: waiting,
  scheduled: waiting,
  queued: occupying,
  running: occupying,
  restarting: occupying,
  up_for_retry: waiting,
  up_for_reschedule: waiting,
  deferred: waiting,
  success: good,
  failed: bad,
  skipped: good,
  upstream_failed: bad,
  removed: { ...good, succeeded: false },
} as const satisfies Readonly<Record<string, TaskStateFacts>>;

export const RUN_STATES = {
  queued: { finished: false },
  running: { finished: false },
  success: { finished: true },
  failed: { finished: true },
} as const;

export type TaskState = keyof typeof TASK_STATES;
export type RunState = keyof typeof RUN_STATES;

const taskStates = Object.keys(TASK_STATES) as TaskState[];

export const ALL_TASK_STATES: readonly TaskState[] = taskStates;
export const ALL_RUN_STATES: readonly RunState[] = Object.keys(RUN_STATES) as RunState[];

export const FINISHED: ReadonlySet<TaskState> = new Set(taskStates.filter((s) => TASK_STATES[s].finished));
export const UNFINISHED: ReadonlySet<TaskState> = new Set(taskStates.filter((s) => !TASK_STATES[s].finished));
export const FAILED: ReadonlySet<TaskState> = new Set(taskStates.filter((s) => TASK_STATES[s].failed));
export const SUCCEEDED: ReadonlySet<TaskState> = new Set(taskStates.filter((s) => TASK_STATES[s].succeeded));
export const OCCUPYING: ReadonlySet<TaskState> = new Set(taskStates.filter((s) => TASK_STATES[s].occupying));

export function isFinished(state: TaskState): boolean {
  return TASK_STATES[state].finished;
}

export function isTaskState(text: string): text is TaskState {
  return Object.hasOwn(TASK_STATES, text);
}

export function isRunState(text: string): text is RunState {
  return Object.hasOwn(RUN_STATES, text);
}
