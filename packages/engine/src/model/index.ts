/** The rules of the system, as pure functions: no I/O, no clock, no randomness. */
export * from "./admission.ts";
export * from "./backoff.ts";
export { Cron, validateCron } from "./cron.ts";
export * from "./diagram.ts";
export * from "./errors.ts";
export * from "./graph.ts";
export type { Change, Expansion, Gate, Instance, InstanceRow, Place, Wait } from "./instance.ts";
export { isOccupying } from "./instance.ts";
export * from "./run.ts";
export type { RunEvent } from "./run-event.ts";
export type { RunVerdict } from "./run-verdict.ts";
export * from "./states.ts";
export * from "./timetable.ts";
export * from "./transitions.ts";
export * from "./trigger-rules.ts";
export { EXACT_LIMIT } from "./weights.ts";
