/** Runs a DAG in a test: in-process, on a virtual clock, with the engine's own rules. */
export { DagTestError } from "./errors.ts";
export type { When } from "./moment.ts";
export type { GivenCommand, GivenSignal, LogLine, RunOptions, RunProgress } from "./options.ts";
export {
  type Action,
  type DeadLetter,
  type NoticeResult,
  RunResult,
  type SentSignal,
  type SubRun,
  type TaskResult,
  type TimelineEntry,
  type TryResult,
} from "./result.ts";
export { type RunnableDag, runDag } from "./run-dag.ts";
export type { ApprovalScript, Approvals, GivenAnswer } from "./trigger/given-answers.ts";
export {
  after,
  type Delayed,
  type TriggerScript,
  type Triggers,
  type WaitFacts,
} from "./trigger/trigger-script.ts";
