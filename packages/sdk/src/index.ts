/** The API for authors of DAGs. Importing it has no side effects. */
/// <reference path="../file-imports.d.ts" preserve="true" />
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
} from "./asset/asset.ts";
export type { ApprovalBuilder, ApprovalOptions, ApprovalPart } from "./author/approval.ts";
export type {
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
  OperatorOptions,
  ShortCircuitOptions,
  TeardownOptions,
} from "./author/builder.ts";
export { type Dag, dag, isDag } from "./author/dag.ts";
export type { DagOptions, EventDagOptions, NoSchema, SignalDagOptions } from "./author/dag-options.ts";
export type { ResultOf } from "./author/dag-result.ts";
export type { GroupOptions } from "./author/group-options.ts";
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
} from "./author/handle.ts";
export type { LabelField, LabelItem } from "./author/map-label.ts";
export { cross, type Gathered, type ItemOf, type JoinedLists, type Over, zip } from "./author/mapping.ts";
export { type ConfReference, conf, type JsonMatch } from "./author/params/conf-reference.ts";
export {
  type ConnectionReference,
  connection,
  type Env,
  type EnvReference,
  variable,
} from "./author/params/env.ts";
export { type Rule, type RuleOptions, restart, start, stop } from "./author/rule.ts";
export type { MapDagOptions, SubDagOptions, WithoutParams } from "./author/sub-dag.ts";
export type { MemorySize, TaskDefaults, TaskOptions } from "./author/task-options.ts";
export type { WeighedTask, WeightFunction } from "./author/weight.ts";
export {
  DagDefinitionError,
  type DefinitionErrorCode,
  TaskError,
  type TaskErrorCode,
  TriggerError,
  type TriggerErrorCode,
} from "./check/errors.ts";
export type { EventIsJson, IsJson, NotJson, Produced, ReturnsJson } from "./check/json.ts";
export type { SchemaInput, SchemaOutput, StandardSchemaV1 } from "./check/standard-schema.ts";
export type { Json, MomentSchedule, TriggerCall, TriggerRule, WeightRule } from "./manifest.ts";
export {
  type AverageOf,
  averageOf,
  type Deadline,
  type DeadlineContext,
  type DeadlineFunction,
  type DeadlineOptions,
  deadline,
} from "./notify/deadline.ts";
export { type CallbackOption, email, type Notice, sendSignal, webhook } from "./notify/notice.ts";
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
  StartSignal,
  StepContext,
  TaskContext,
  TaskLog,
  UntilOptions,
} from "./runtime/context.ts";
export { type Ending, endWith } from "./runtime/ending.ts";
export type { ErrorFacts, LogLevel, TriggerAbortKind } from "./runtime/program.ts";
export type { Services } from "./runtime/services.ts";
export type { AssetScheduleOptions } from "./schedule/asset-schedule.ts";
export {
  all,
  any,
  type Condition,
  type ConditionPart,
  type TimePart,
  type ValueOf,
} from "./schedule/condition.ts";
export type { Duration, DurationUnit } from "./schedule/duration.ts";
export type { Moment } from "./schedule/instant.ts";
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
} from "./schedule/schedule.ts";
export { type Due, type DueBefore, Timetable, type TimetableQuery } from "./schedule/timetable.ts";
export { type Control, fail, skip, TaskFailed, TaskSkipped } from "./signal/control.ts";
export { type IncomingSignal, SignalAction, type SignalContext } from "./signal/reaction.ts";
export {
  type AnySignal,
  type Match,
  type Signal,
  type SignalLeaf,
  type SignalNaming,
  signal,
} from "./signal/signal.ts";
export type { Approval } from "./trigger/approval-request.ts";
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
} from "./trigger/builtin-sensors.ts";
export type { PollOptions, TriggerPlace } from "./trigger/builtin-trigger.ts";
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
} from "./trigger/builtin-triggers.ts";
export type { DeferOptions, Deferred, DefersWell, StartFrom, WrongDeferral } from "./trigger/deferral.ts";
export type {
  AllTrigger,
  AnyTrigger,
  EventsAreJson,
  EventsOf,
  FirstByIndex,
  FirstByName,
  Members,
  ReceivedOf,
} from "./trigger/joint-trigger.ts";
export {
  type DateTimeOptions,
  DateTimeTrigger,
  type TimeDeltaOptions,
  TimeDeltaTrigger,
} from "./trigger/moment-triggers.ts";
export { type AnyInputs, Operator } from "./trigger/operator.ts";
export { type Polled, PollTrigger } from "./trigger/poll-trigger.ts";
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
} from "./trigger/run-triggers.ts";
export { type Found, Sensor, type SensorArgs, type SensorOptions } from "./trigger/sensor.ts";
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
} from "./trigger/service-triggers.ts";
export { Trigger, type TriggerContext } from "./trigger/trigger.ts";
export {
  type PassedOn,
  type TriggerDagRunArgs,
  TriggerDagRunOperator,
  type TriggeredRun,
} from "./trigger/trigger-dag-run.ts";
export { DeferralTimeoutError, TriggerFailedError } from "./trigger/wait-errors.ts";
export { type EventOf, serialise, type Waitable, type WaitableJson } from "./trigger/waitable.ts";
