/**
 * Columns of large answers: one byte per value, in base64, with a legend that says what each byte means; and times as
 * milliseconds since 1970.
 */
import { z } from "zod";
import { ALL_RUN_STATES, ALL_TASK_STATES, type RunState, type TaskState } from "../../model/index.ts";

/** The tag of all routes below /ui: aggregates that no other client needs, without a promise of stability. */
export const UI_TAG = {
  name: "Web UI",
  description: "What the pages of the web UI show. It may change with every release.",
};

/** Byte 0 stands for a task without an instance in the run. */
export const TASK_LEGEND: readonly string[] = ["none", ...ALL_TASK_STATES];
export const RUN_LEGEND: readonly string[] = ALL_RUN_STATES;

export const bytes = z.string().describe("Base64: one byte per value.");
export const legend = z.array(z.string()).describe("The meaning of each byte of `states`, by index.");
export const epochMs = z.number().describe("Milliseconds since 1970.");
export const times = z.array(epochMs.nullable());

const taskBytes = new Map<string, number>(TASK_LEGEND.map((state, byte) => [state, byte]));
const runBytes = new Map<string, number>(RUN_LEGEND.map((state, byte) => [state, byte]));

export function taskByte(state: TaskState): number {
  return taskBytes.get(state) ?? 0;
}

export function runStateBytes(states: readonly RunState[]): string {
  return Buffer.from(states.map((state) => runBytes.get(state) ?? 0)).toString("base64");
}

/** A count that stops at a limit, so that it costs the same for any number of rows. */
export const boundedCount = z
  .object({ count: z.number(), more: z.boolean().describe("There are more than `count`.") })
  .meta({ id: "UiCount" });
