/** Everything an author of DAGs needs. Values only: nothing happens on import. */
export {
  type AnyAsset,
  type Asset,
  type AssetAlias,
  type AssetEvent,
  type AssetOptions,
  type AssetParams,
  type AssetSource,
  asset,
  assetAlias,
  type Producible,
} from "./asset.ts";
export type { AssetScheduleOptions } from "./asset-schedule.ts";
export type {
  AddOptions,
  BranchChoice,
  BranchResult,
  BranchTarget,
  DagBuilder,
  Edges,
  Handler,
  MapGroupOptions,
  MapHandler,
  MapLabelFunction,
  MapOptions,
  ShortCircuitOptions,
  TeardownOptions,
} from "./builder.ts";
export {
  DagRunSensor,
  DateTimeSensor,
  ExternalTaskSensor,
  FileSensor,
  HttpSensor,
  type MomentOfRun,
  ProcessSensor,
  RedisKeySensor,
  RedisStreamSensor,
  type RunOfSensor,
  S3KeySensor,
  S3PrefixSensor,
  SqlSensor,
  TimeDeltaSensor,
  WebhookSensor,
} from "./builtin-sensors.ts";
export type { PollOptions, TriggerPlace } from "./builtin-trigger.ts";
export type {
  DagRunEvent,
  DagRunState,
  ExternalTaskEvent,
  ExternalTaskState,
  FileEvent,
  HttpEvent,
  MomentEvent,
  ProcessEvent,
  RedisKeyEvent,
  RedisStreamEvent,
  S3KeyEvent,
  S3PrefixEvent,
  SignalEvent,
  SqlEvent,
  WebhookEvent,
} from "./builtin-triggers.ts";
export { all, any, type Condition, type ConditionPart, type TimePart, type ValueOf } from "./condition.ts";
export { type ConfReference, conf, type JsonMatch } from "./conf-reference.ts";
export type {
  AnyParams,
  BaseContext,
  Callback,
  CallbackContext,
  CancelCallback,
  CancelContext,
  Connection,
  GroupCallback,
  GroupCallbackContext,
  Payload,
  ProduceContext,
  ProduceOptions,
  Remembered,
  RunContext,
  SendContext,
  SendOptions,
  StartingSignal,
  StepContext,
  TaskContext,
  TaskLog,
  UntilOptions,
} from "./context.ts";
export { type Control, fail, skip, TaskFailed, TaskSkipped } from "./control.ts";
export { type Dag, dag, isDag } from "./dag.ts";
export type { DagOptions, EventDagOptions, NoSchema, SignalDagOptions } from "./dag-options.ts";
export type { ResultOf } from "./dag-result.ts";
export {
  type AverageOf,
  averageOf,
  type Deadline,
  type DeadlineContext,
  type DeadlineFunction,
  type DeadlineOptions,
  deadline,
} from "./deadline.ts";
export type { DeferOptions, Deferred, DefersWell, StartFrom, WrongDeferral } from "./deferral.ts";
export type { Duration, DurationUnit } from "./duration.ts";
export { type Ending, endWith } from "./ending.ts";
export { type ConnectionReference, connection, type Env, type EnvReference, variable } from "./env.ts";
export {
  DagDefinitionError,
  type DefinitionErrorCode,
  TaskError,
  type TaskErrorCode,
  TriggerError,
  type TriggerErrorCode,
} from "./errors.ts";
export type { GroupOptions } from "./group-options.ts";
export type {
  AnyOutput,
  Group,
  InputHandles,
  InputValues,
  Mapped,
  NoInputs,
  Output,
  Settled,
  Upstream,
} from "./handle.ts";
export type { Moment } from "./instant.ts";
export type {
  AllTrigger,
  AnyTrigger,
  EventsAreJson,
  EventsOf,
  FirstByIndex,
  FirstByName,
  Members,
  ReceivedOf,
} from "./joint-trigger.ts";
export type { EventIsJson, IsJson, NotJson, Produced, ReturnsJson } from "./json.ts";
export type { Json, MomentSchedule, TriggerCall, TriggerRule, WeightRule } from "./manifest.ts";
export type { LabelField, LabelItem } from "./map-label.ts";
export { cross, type Gathered, type ItemOf, type JoinedLists, type Over, zip } from "./mapping.ts";
export {
  type DateTimeOptions,
  DateTimeTrigger,
  type TimeDeltaOptions,
  TimeDeltaTrigger,
} from "./moment-triggers.ts";
export { type CallbackOption, email, type Notice, sendSignal, webhook } from "./notice.ts";
export { type AnyInputs, Operator } from "./operator.ts";
export { type Polled, PollTrigger } from "./poll-trigger.ts";
export type { ErrorFacts, LogLevel, TriggerAbortKind } from "./program.ts";
export { type HeardSignal, SignalAction, type SignalContext } from "./reaction.ts";
export { type Rule, type RuleOptions, restart, start, stop } from "./rule.ts";
export {
  type DagRunOfOptions,
  type DagRunOptions,
  DagRunTrigger,
  type ExternalTaskOfOptions,
  type ExternalTaskOptions,
  ExternalTaskTrigger,
  type WebhookOptions,
  WebhookTrigger,
  type WhichRun,
} from "./run-triggers.ts";
export {
  type CronSchedule,
  continuous,
  cron,
  type DatesSchedule,
  dates,
  type EventParams,
  type EventSchedule,
  every,
  type IntervalSchedule,
  on,
  once,
  type RouteOptions,
  type Schedule,
  type ScheduleOption,
  type SchedulePreset,
  type ScheduleStyle,
  type SignalParams,
  type SignalSchedule,
} from "./schedule.ts";
export { type Found, Sensor, type SensorArgs, type SensorOptions } from "./sensor.ts";
export {
  type FileOptions,
  FileTrigger,
  type HttpOptions,
  HttpTrigger,
  type ProcessOptions,
  ProcessTrigger,
  type RedisKeyOptions,
  RedisKeyTrigger,
  type RedisStreamOptions,
  RedisStreamTrigger,
  type S3KeyOptions,
  S3KeyTrigger,
  type S3PrefixOptions,
  S3PrefixTrigger,
  type SqlOptions,
  SqlTrigger,
} from "./service-triggers.ts";
export type { Services } from "./services.ts";
export {
  type AnySignal,
  type Match,
  type Signal,
  type SignalLeaf,
  type SignalNaming,
  signal,
} from "./signal.ts";
export type { SchemaInput, SchemaOutput, StandardSchemaV1 } from "./standard-schema.ts";
export type { MapDagOptions, SubDagOptions, WithoutParams } from "./sub-dag.ts";
export type { MemorySize, TaskDefaults, TaskOptions } from "./task-options.ts";
export { type Due, type DueBefore, Timetable, type TimetableQuestion } from "./timetable.ts";
export { Trigger, type TriggerContext } from "./trigger.ts";
export {
  type PassedOn,
  type TriggerDagRunArgs,
  TriggerDagRunOperator,
  type TriggeredRun,
} from "./trigger-dag-run.ts";
export { DeferralTimeoutError, TriggerFailedError } from "./wait-errors.ts";
export { type EventOf, serialise, type Waitable, type WaitableJson } from "./waitable.ts";
export type { WeighedTask, WeightFunction } from "./weight.ts";
