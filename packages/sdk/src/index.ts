/** Everything an author of DAGs needs. Values only: nothing happens on import. */
export type {
  AddOptions,
  BranchChoice,
  BranchResult,
  BranchTarget,
  DagBuilder,
  Edges,
  GroupOptions,
  Handler,
  ShortCircuitOptions,
} from "./builder.ts";
export type {
  AnyParams,
  BaseContext,
  Callback,
  CallbackContext,
  Connection,
  RunContext,
  TaskContext,
  TaskLog,
} from "./context.ts";
export { type Control, fail, skip, TaskFailed, TaskSkipped } from "./control.ts";
export { type Dag, dag, isDag } from "./dag.ts";
export type { DagOptions, NoSchema } from "./dag-options.ts";
export type { Duration, DurationUnit } from "./duration.ts";
export { DagDefinitionError, type DefinitionErrorCode, TaskError, type TaskErrorCode } from "./errors.ts";
export type {
  AnyOutput,
  Group,
  InputHandles,
  InputValues,
  NoInputs,
  Output,
  Settled,
  Upstream,
} from "./handle.ts";
export type { NotJson, Produced, ReturnsJson } from "./json.ts";
export type { Json, TriggerRule, WeightRule } from "./manifest.ts";
export { type AnyInputs, Operator } from "./operator.ts";
export type { ErrorFacts, LogLevel } from "./program.ts";
export {
  continuous,
  cron,
  every,
  once,
  type Schedule,
  type ScheduleOption,
  type SchedulePreset,
  type ScheduleStyle,
} from "./schedule.ts";
export type { SchemaInput, SchemaOutput, StandardSchemaV1 } from "./standard-schema.ts";
export type { MemorySize, TaskDefaults, TaskOptions } from "./task-options.ts";
