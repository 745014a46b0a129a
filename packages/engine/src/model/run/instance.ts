/** A task instance in the run model, and the changes of it to store. */
import type { TaskNode } from "../graph/graph.ts";
import { unexpandedAt } from "../graph/scope.ts";
import { OCCUPYING, type TaskState } from "./states.ts";

/** A stored instance, as loaded by `RunModel.load`. Instants are milliseconds. */
export interface InstanceRow {
  readonly taskId: string;
  /** The ordinal of its item; negative: not mapped, or mapped and not yet expanded (see scope.ts). */
  readonly mapIndex: number;
  readonly state: TaskState;
  /** The number of the current or last try; 0 before the first. */
  readonly tryNumber: number;
  /** A failed try n is retried while n <= maxTries. */
  readonly maxTries: number;
  readonly attempt: string | null;
  readonly retryAt: number | null;
  readonly infraLosses: number;
  /** The start of the current try: its execution timeout counts from here, including its waits. */
  readonly startedAt?: number | null;
  readonly resumedAttempt?: string | null;
  /** Set for a deferred instance. */
  readonly wait?: Wait | null;
}

/** The properties of a wait that the owner needs. */
export interface Wait {
  /** When the wait times out; null: never. */
  readonly timeoutAt: number | null;
  /** The timeout as a duration from the start of the wait, for messages. */
  readonly timeoutMs?: number | null;
  readonly onTimeout: "fail" | "fatal" | "skip" | "resume";
  /** The pool counts the instance although it waits. */
  readonly keepsSlot: boolean;
  /** The description of the event, and the point to resume at, for messages about a timeout. */
  readonly what?: string;
  readonly method?: string | null;
}

/**
 * Why an instance in state `none` is held although its rule allows it to run: "waiting" for earlier runs of its DAG,
 * "expanding" for the length of its map, "signal" for a start. "open": earlier runs allow it to run.
 */
export type Gate = "none" | "waiting" | "expanding" | "signal" | "open";

/** Where an instance occupies slots: its pool, and the counter of its task across all runs if that is limited. */
export interface Place {
  readonly pool: string;
  readonly slots: number;
  readonly limitKey: string | null;
}

/** Changed only by the model; other code only reads it. */
export interface Instance {
  readonly node: TaskNode;
  readonly mapIndex: number;
  /**
   * The number of its task's scopes that it is in, and the ordinal of its item in the innermost of them (-1: none). Fewer
   * scopes than its task: it is the stand-in for all future instances there.
   */
  readonly level: number;
  readonly ordinal: number;
  /** Its index in the list of its task's instances. */
  position: number;
  state: TaskState;
  tryNumber: number;
  maxTries: number;
  attempt: string | null;
  /** When an instance in up_for_retry or up_for_reschedule resumes. */
  retryAt: number | null;
  /** Attempts of this try that were lost through no fault of the task. */
  infraLosses: number;
  startedAt: number | null;
  /** The start of the current attempt: a try with waits has several attempts. */
  attemptStartedAt: number | null;
  endedAt: number | null;
  /** The attempt that deferred, whose wait this try resumes from; null: it starts at the beginning. */
  resumedAttempt: string | null;
  /** Set while deferred. */
  wait: Wait | null;
  /** When it became ready, when it was admitted, and its process: recorded by the owner for reporting. */
  scheduledAt: number | null;
  queuedAt: number | null;
  pid: number | null;
  /** The job and the host that run the attempt, if it is not its owner's; null until a worker has reported. */
  executorJob: number | null;
  hostname: string | null;
  /** As in its row, which may differ from the manifest of a newer version; null until recorded. */
  place: Place | null;
  reason: string | null;
  gate: Gate;
  /** The state at the last `takeChanges`; null: no row exists yet. */
  committed: TaskState | null;
  committedAttempt: string | null;
  committedTry: number;
  committedMaxTries: number;
  /** Occupied slots at the last `takeChanges`. */
  committedOccupying: boolean;
  /** In the list of changes. */
  dirty: boolean;
  /** Started again since the last `takeChanges`: it is stored even if it has ended in the same state as before. */
  hasBegunAgain: boolean;
}

/** The net change of an instance between two commits; the new values are those of the instance. */
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
    executorJob: null,
    hostname: null,
    place: null,
    reason: null,
    // An instance that was allowed to run once needs no second check of earlier runs.
    gate: row.state === "pending" ? "none" : "open",
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

/** Whether an instance occupies slots of its pool and limits. */
export function isOccupying({ state, wait }: Pick<Instance, "state" | "wait">): boolean {
  return OCCUPYING.has(state) || (state === "deferred" && wait !== null && wait.keepsSlot);
}

/** `tries`: the number of earlier tries at the same place, in a map that was expanded again. */
export function newInstance(node: TaskNode, mapIndex: number, tries = 0): Instance {
  const row = {
    taskId: node.id,
    mapIndex,
    state: "pending",
    tryNumber: tries,
    maxTries: tries + node.manifest.retries,
  } as const;
  const instance = storedInstance(node, { ...row, attempt: null, retryAt: null, infraLosses: 0 });
  instance.committed = null;
  return instance;
}

/** Whether it is a stand-in for instances whose number is not known yet. */
export function isUnexpanded({ level, node }: Instance): boolean {
  return node.scope !== null && level < node.scope.depth;
}

export function isHeld(instance: Instance): boolean {
  return instance.gate === "waiting" || instance.gate === "expanding" || instance.gate === "signal";
}
