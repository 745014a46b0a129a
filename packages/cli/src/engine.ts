/** `tradewind/engine`: imports for a program that drives runs, and for an executor of your own. */
export {
  DagRunJob,
  type DagRunJobOptions,
  type EndedRun,
  EngineError,
  type LaunchedTask,
  type Launcher,
  type LauncherHost,
  type LaunchFailure,
  type LaunchRequest,
  type RunProgress,
  type RunRequest,
  type UnclaimedAssignment,
} from "@tradewind/engine";
