/** The stored rows of a signal-driven run. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import {
  type Change,
  type EditableRow,
  haltedAs,
  isFinished,
  isStopped,
  OCCUPYING,
  type TaskState,
} from "../../src/model/index.ts";

export function freshRows(manifest: DagManifest): Map<string, EditableRow> {
  const fresh = {
    mapIndex: -1,
    state: "pending",
    tryNumber: 0,
    attempt: null,
    retryAt: null,
    infraLosses: 0,
    isMarked: false,
  } as const;
  return new Map(
    manifest.tasks.map(({ retries, taskId }) => [taskId, { taskId, ...fresh, maxTries: retries }]),
  );
}

/** The row that the batch writes for a change. */
export function rowAfter({ instance }: Change): EditableRow {
  const { attempt, infraLosses, maxTries, node, retryAt, startedAt, state, resumedAttempt, tryNumber, wait } =
    instance;
  return {
    ...{ taskId: node.id, mapIndex: -1, state, tryNumber, maxTries, attempt, retryAt, infraLosses },
    ...{ startedAt, resumedAttempt, wait, isMarked: isStopped(instance.reason) },
  };
}

/** A task with an attempt begins again when the attempt has ended, every other task at once. */
export function clearedRow(row: EditableRow, retries: number): EditableRow {
  const again = {
    ...{
      maxTries: row.tryNumber + retries,
      infraLosses: 0,
      retryAt: null,
      resumedAttempt: null,
      isMarked: false,
    },
  } as const;
  if (OCCUPYING.has(row.state)) return { ...row, ...again, state: "restarting" };
  return { ...row, ...again, state: "pending", attempt: null };
}

export function markedRow(row: EditableRow, state: TaskState, isStarted: boolean): EditableRow {
  const ended = { retryAt: null, attempt: null, resumedAttempt: null, isMarked: true };
  return { ...row, ...ended, state, tryNumber: tryOf(row, isStarted) };
}

/** The row after a user has ended its run. */
export function haltedRow(row: EditableRow, as: "success" | "failed", isStarted: boolean): EditableRow {
  if (isFinished(row.state)) return row;
  return { ...markedRow(row, haltedAs(row.state, as), isStarted), isMarked: as === "success" };
}

/** A start that ends before its task has begun counts as a try. */
function tryOf({ state, tryNumber }: EditableRow, isStarted: boolean): number {
  return state === "pending" && tryNumber === 0 && isStarted ? 1 : tryNumber;
}
