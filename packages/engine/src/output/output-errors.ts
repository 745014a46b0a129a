/** The errors of large outputs, for readers and authors: which output it is, and the remedy. */
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

/** The store denies access, or does not answer. */
export function unreadable(reference: OutputReference, cause: unknown): EngineError {
  const { key, store } = reference;
  return new EngineError(
    "OUTPUT_UNREADABLE",
    `${subject(reference)} cannot be read: ${key} in ${store}: ${messageOf(cause)}. Look at the store (tradewind doctor); the next try reads it again.`,
    { cause },
  );
}

/** @param bytes null: unknown, because it could not be written beside the store. */
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

/** The command that creates the output again. */
function again(reference: OutputReference): string {
  const { dag, index, run, task } = placeOf(reference);
  const instance = index === null ? "" : ` --map-index ${index}`;
  return `clear the task to create its output again: tradewind tasks clear ${dag} ${run.argument} ${task}${instance} (--downstream: also the tasks after it)`;
}

/** A key begins with the task instance; of the run it contains only the number. */
function placeOf({ key, run: runId }: OutputReference) {
  const [dag = "", number = "", task = "", index = "-1"] = key.split("/");
  const run = runId
    ? { shown: `"${runId}"`, argument: runId }
    : { shown: `number ${number}`, argument: "<run>" };
  return { dag, run, task, index: Number(index) < 0 ? null : index };
}
