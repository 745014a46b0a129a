/**
 * The only transition table. Every state change is listed here: the run model rejects any other, the store names the states
 * it leaves, and the diagrams in the docs are drawn from it.
 *
 * Moves are made by the system. Edits are made by users (clear, mark), from any state. They increment the run's generation,
 * so that its owner reloads it.
 */
import type { RunState, TaskState } from "./states.ts";

export interface Move {
  readonly by: "scheduler" | "admission" | "executor" | "trigger";
  readonly why: string;
}

type Moves<S extends string> = { readonly [From in S]: { readonly [To in S]?: Move } };

const halted: Move = { by: "scheduler", why: "the run was ended" };
const stopped: Move = { by: "scheduler", why: "a streaming task was stopped" };
const restarted: Move = { by: "scheduler", why: "it was restarted" };
const again: Move = { by: "scheduler", why: "it or an upstream task was started again" };
const ended = {
  success: { by: "executor", why: "the task succeeded" },
  failed: { by: "executor", why: "the task failed, no try is left" },
  skipped: { by: "executor", why: "the task asked to be skipped" },
  up_for_retry: { by: "executor", why: "the task failed, a try is left" },
  up_for_reschedule: { by: "executor", why: "the task asked to be called again later" },
  deferred: { by: "executor", why: "the task waits for a trigger" },
  restarting: { by: "scheduler", why: "cleared or restarted while it ran" },
} as const satisfies { [To in TaskState]?: Move };

export const TASK_MOVES: Moves<TaskState> = {
  pending: {
    scheduled: { by: "scheduler", why: "its trigger rule is satisfied" },
    skipped: { by: "scheduler", why: "its trigger rule or a branch skips it" },
    upstream_failed: { by: "scheduler", why: "its trigger rule can no longer be satisfied" },
    success: stopped,
  },
  scheduled: {
    queued: { by: "admission", why: "its pool and limits have room" },
    deferred: { by: "scheduler", why: "it begins with a wait for its trigger" },
    skipped: { by: "scheduler", why: "a branch skips it, or it was stopped" },
    success: stopped,
    pending: { by: "scheduler", why: "an upstream task was started again" },
  },
  queued: {
    ...ended,
    running: { by: "executor", why: "the attempt started" },
    scheduled: { by: "scheduler", why: "the attempt was lost" },
  },
  running: {
    ...ended,
    scheduled: { by: "scheduler", why: "the attempt was lost" },
  },
  restarting: {
    pending: { by: "executor", why: "the old attempt ended" },
    success: halted,
    failed: halted,
    skipped: halted,
  },
  up_for_retry: {
    scheduled: { by: "scheduler", why: "the retry is due" },
    pending: { by: "scheduler", why: "it was restarted, or its trigger rule no longer holds" },
    failed: halted,
    skipped: halted,
    success: stopped,
  },
  up_for_reschedule: {
    scheduled: { by: "scheduler", why: "the next call is due" },
    success: halted,
    failed: halted,
    skipped: halted,
    pending: restarted,
  },
  deferred: {
    scheduled: { by: "trigger", why: "the trigger fired" },
    success: { by: "trigger", why: "the trigger ended the task" },
    failed: { by: "trigger", why: "the trigger ended the task, no try is left" },
    skipped: { by: "trigger", why: "the trigger ended the task" },
    up_for_retry: { by: "trigger", why: "the trigger failed the task, a try is left" },
    pending: restarted,
  },
  success: { pending: again },
  failed: { pending: again },
  skipped: { pending: again },
  upstream_failed: { pending: again },
  removed: {},
};

export const RUN_MOVES: Moves<RunState> = {
  queued: { running: { by: "scheduler", why: "it is due and the DAG may have one more active run" } },
  running: {
    queued: { by: "scheduler", why: "it only waits for earlier runs, and an earlier date needs its slot" },
    success: { by: "scheduler", why: "all tasks ended, no leaf failed" },
    failed: { by: "scheduler", why: "all tasks ended and a leaf failed, or no task can run" },
  },
  success: {},
  failed: {},
};

/** States that a user can set on an instance, in any state. */
export const TASK_EDITS = {
  pending: "clear",
  success: "mark success",
  failed: "mark failed",
  skipped: "mark skipped",
} as const satisfies { [To in TaskState]?: string };

/** States that a user can set on a run, in any state. */
export const RUN_EDITS = {
  queued: "clear",
  success: "mark success",
  failed: "mark failed or cancel",
} as const satisfies { [To in RunState]?: string };

/** Whether the system may make this change to an instance. */
export function mayMove(from: TaskState, to: TaskState): boolean {
  return TASK_MOVES[from][to] !== undefined;
}

/** Whether the system may make this change to a run. */
export function mayMoveRun(from: RunState, to: RunState): boolean {
  return RUN_MOVES[from][to] !== undefined;
}
