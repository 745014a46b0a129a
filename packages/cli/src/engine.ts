/** What a program of one's own imports to drive runs: `tradewind/engine`. */
export {
  DagRunJob,
  type DagRunJobOptions,
  type EndedRun,
  EngineError,
  type RunProgress,
  type RunRequest,
} from "@tradewind/engine";
