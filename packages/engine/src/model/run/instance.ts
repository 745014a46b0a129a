/** One task instance of a run as the run model keeps it, and what it hands to the store about it. */
import type { TaskNode } from "../graph/graph.ts";
import { unexpandedAt } from "../graph/scope.ts";
import { OCCUPYING, type TaskState } from "./states.ts";

/** A stored instance, as `RunModel.load` takes it. Instants are milliseconds. */
export interface InstanceRow {
  readonly taskId: string;
  /** The ordinal of its item; below 0: not mapped, or mapped and not yet expanded (see scope.ts). */
  readonly mapIndex: number;
  readonly state: TaskState;
  /** Of the current or last try; 0 before the first. */
  readonly tryNumber: number;
  /** A failure of try n is retried while n <= maxTries. */
  readonly maxTries: number;
  readonly attempt: string | null;
  readonly retryAt: number | null;
  readonly infraLosses: number;
  /** Of the current try: its execution timeout counts from here, over all its waits. */
  readonly startedAt?: number | null;
  readonly resumedAttempt?: string | null;
  /** Of a deferred instance. */
  readonly wait?: Wait | null;
}

/** What the owner has to know about a wait besides that it lasts. */
export interface Wait {
  /** When the wait itself is over; null: it may last. */
  readonly timeoutAt: number | null;
  /** How long that is from the beginning of the wait, for messages. */
  readonly timeoutMs?: number | null;
  readonly onTimeout: "fail" | "fatal" | "skip" | "resume";
  /** The pool counts it although it waits. */
  readonly keepsSlot: boolean;
  /** What is waited for, in words, and where a worker goes on; for whoever is told that it took too long. */
  readonly what?: string;
  readonly method?: string | null;
}

/**
 * Why an instance in state `none` is held although its rule lets it run: "waiting" for the past of its DAG,
 * "expanding" for the length of what it is mapped over, "signal" for something that starts it. "open": the past was
 * found in order.
 */
export type Gate = "none" | "waiting" | "expanding" | "signal" | "open";

/** Where an instance takes slots: its pool, and the counter of its task across all runs if that is limited. */
export interface Place {
  readonly pool: string;
  readonly slots: number;
  readonly limitKey: string | null;
}

/** Changed only by the model; everybody else reads. */
export interface Instance {
  readonly node: TaskNode;
  readonly mapIndex: number;
  /**
   * In how many of its task's scopes it lies, and in which item of the last of them (-1: in none). Fewer than its
   * task: it stands for all instances that are to come there.
   */
  readonly level: number;
  readonly ordinal: number;
  /** Where it is in the list of its task's instances. */
  position: number;
  state: TaskState;
  tryNumber: number;
  maxTries: number;
  attempt: string | null;
  /** When an instance up for retry or reschedule goes on. */
  retryAt: number | null;
  /** Attempts of this try that ended by no fault of the task. */
  infraLosses: number;
  startedAt: number | null;
  /** Of the current attempt alone: a try that waits has several. */
  attemptStartedAt: number | null;
  endedAt: number | null;
  /** The attempt that deferred, whose wait this try resumes from; null: it starts at the beginning. */
  resumedAttempt: string | null;
  /** Set while deferred. */
  wait: Wait | null;
  /** When it became ready and when it was admitted, and the process that runs it: noted by the owner, for the record. */
  scheduledAt: number | null;
  queuedAt: number | null;
  pid: number | null;
  /** As its row has it, which may differ from a newer version's manifest; null until noted. */
  place: Place | null;
  reason: string | null;
  gate: Gate;
  /** As last taken by `takeChanges`; null: there is no row yet. */
  committed: TaskState | null;
  committedAttempt: string | null;
  committedTry: number;
  committedMaxTries: number;
  /** Took slots when last taken. */
  committedOccupying: boolean;
  /** In the list of changes to take. */
  dirty: boolean;
  /** It has begun again since it was last taken: it is to be stored also if it has ended as before. */
  hasBegunAgain: boolean;
}

/** The net change of one instance between two commits; the new values are the instance's own. */
export interface Change {
  readonly instance: Instance;
  /** null: the row has to be inserted. */
  readonly from: TaskState | null;
  readonly fromAttempt: string | null;
  readonly fromTry: number;
  readonly fromMaxTries: number;
  readonly wasOccupying: boolean;
  readonly hasBegunAgain: boolean;
}

export function storedInstance(node: TaskNode, row: InstanceRow): Instance {
  const { mapIndex } = row;
  const depth = node.scope?.depth ?? 0;
  const { level, ordinal } =
    mapIndex >= 0 ? { level: depth, ordinal: mapIndex } : unexpandedAt(depth, mapIndex);
  return {
    node,
    mapIndex,
    level,
    ordinal,
    position: 0,
    state: row.state,
    tryNumber: row.tryNumber,
    maxTries: row.maxTries,
    attempt: row.attempt,
    retryAt: row.retryAt,
    infraLosses: row.infraLosses,
    startedAt: row.startedAt ?? null,
    attemptStartedAt: null,
    endedAt: null,
    resumedAttempt: row.resumedAttempt ?? null,
    wait: row.wait ?? null,
    scheduledAt: null,
    queuedAt: null,
    pid: null,
    place: null,
    reason: null,
    // What has been let through once needs no second look at the past.
    gate: row.state === "none" ? "none" : "open",
    committed: row.state,
    committedAttempt: row.attempt,
    committedTry: row.tryNumber,
    committedMaxTries: row.maxTries,
    committedOccupying: isOccupying({
      state: row.state,
      wait: row.wait ?? null,
    }),
    dirty: false,
    hasBegunAgain: false,
  };
}

/** Whether an instance takes slots of its pool and its limits. */
export function isOccupying({ state, wait }: Pick<Instance, "state" | "wait">): boolean {
  return OCCUPYING.has(state) || (state === "deferred" && wait !== null && wait.keepsSlot);
}

/** `tries`: how many went before it at the same place, in a map that was expanded again. */
export function newInstance(node: TaskNode, mapIndex: number, tries = 0): Instance {
  const row = {
    taskId: node.id,
    mapIndex,
    state: "none",
    tryNumber: tries,
    maxTries: tries + node.manifest.retries,
  } as const;
  const instance = storedInstance(node, { ...row, attempt: null, retryAt: null, infraLosses: 0 });
  instance.committed = null;
  return instance;
}

/** It stands for instances whose number is not known yet. */
export function isUnexpanded({ level, node }: Instance): boolean {
  return node.scope !== null && level < node.scope.depth;
}

export function isHeld(instance: Instance): boolean {
  return instance.gate === "waiting" || instance.gate === "expanding" || instance.gate === "signal";
}
