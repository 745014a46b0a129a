/** What can go wrong with a large output, as its reader and its author are told: which one it is, and what helps. */
import type { OutputReference } from "../model/index.ts";
import { EngineError, messageOf } from "../service/errors.ts";

/** @param address Where the object is, or should be. */
export function missing(reference: OutputReference, address: string): EngineError {
  return new EngineError(
    "OUTPUT_MISSING",
    `${subject(reference)} is not in its store any more: ${address}. Is the store the same for all machines (TRADEWIND_OUTPUT_STORE)? If the object is gone, clear the task: it makes its output again.`,
  );
}

export function damaged(reference: OutputReference, address: string, how: string): EngineError {
  return new EngineError(
    "OUTPUT_DAMAGED",
    `${subject(reference)} is damaged: of ${address}, ${how}. Restore the object, or clear the task: it makes its output again.`,
  );
}

/** The store does not let us read, or does not answer. */
export function unreadable(reference: OutputReference, cause: unknown): EngineError {
  const { key, store } = reference;
  return new EngineError(
    "OUTPUT_UNREADABLE",
    `${subject(reference)} cannot be read: ${key} in ${store}: ${messageOf(cause)}. Look at the store (tradewind doctor); the next try reads it again.`,
    { cause },
  );
}

/** @param bytes null: nobody knows, it could not even be written beside the store. */
export function notStored(store: string, bytes: number | null, cause: unknown): EngineError {
  const size = bytes === null ? "" : ` (${bytes} bytes)`;
  return new EngineError(
    "OUTPUT_NOT_STORED",
    `The output of the task${size} could not be stored in ${store}: ${messageOf(cause)}. Look at the store (tradewind doctor) and its free space.`,
    { cause },
  );
}

/** A key begins with whose output it is. */
function subject({ key }: OutputReference): string {
  const [dag, run, task, index] = key.split("/");
  const item = index === undefined || Number(index) < 0 ? "" : `[${index}]`;
  return `The output of task "${task}"${item} of DAG "${dag}", run number ${run},`;
}
