/** `tradewind/engine`: imports for a program that drives runs. */
export {
  DagRunJob,
  type DagRunJobOptions,
  type EndedRun,
  EngineError,
  type RunProgress,
  type RunRequest,
} from "@tradewind/engine";
