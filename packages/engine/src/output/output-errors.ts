/** What can go wrong with a large output, as its reader and its author are told: which one it is, and what helps. */
import type { OutputReference } from "../model/index.ts";
import { EngineError, messageOf } from "../service/errors.ts";

/** @param address Where the object is, or should be. */
export function missing(reference: OutputReference, address: string): EngineError {
  return new EngineError(
    "OUTPUT_MISSING",
    `${subject(reference)} is not in its store any more: ${address}. Is the store the same for all machines (TRADEWIND_OUTPUT_STORE)? If the object is gone, ${again(reference)}.`,
  );
}

export function damaged(reference: OutputReference, address: string, how: string): EngineError {
  return new EngineError(
    "OUTPUT_DAMAGED",
    `${subject(reference)} is damaged: of ${address}, ${how}. Restore the object, or ${again(reference)}.`,
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
    `The output of the task${size} could not be stored in ${store}: ${messageOf(cause)}. Look at that place and its free space (tradewind doctor, with the settings of the scheduler).`,
    { cause },
  );
}

function subject(reference: OutputReference): string {
  const { dag, index, run, task } = placeOf(reference);
  return `The output of task "${task}"${index === null ? "" : `[${index}]`} of DAG "${dag}", run ${run.shown},`;
}

/** What makes it again. */
function again(reference: OutputReference): string {
  const { dag, index, run, task } = placeOf(reference);
  const instance = index === null ? "" : ` --map-index ${index}`;
  return `clear the task, and it makes its output again: tradewind tasks clear ${dag} ${run.argument} ${task}${instance} (--downstream: and all that come after it)`;
}

/** A key begins with whose output it is; of the run it has the number only. */
function placeOf({ key, run: runId }: OutputReference) {
  const [dag = "", number = "", task = "", index = "-1"] = key.split("/");
  const run = runId
    ? { shown: `"${runId}"`, argument: runId }
    : { shown: `number ${number}`, argument: "<run>" };
  return { dag, run, task, index: Number(index) < 0 ? null : index };
}
