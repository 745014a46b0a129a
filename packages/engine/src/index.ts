/** The engine, as used by the command line and embedders. */
export { ParamsCheck } from "./api/dag/params-check.ts";
export { type ConnectionTest, testConnection } from "./builtin/connection-test.ts";
export type { BundleResult } from "./bundle/bundler/protocol.ts";
export { BundlerPool } from "./bundle/bundler-pool.ts";
export { DagFolder, isCodeFile } from "./bundle/dag-files.ts";
export { forgetfulFiles } from "./bundle/file-ledger.ts";
export { provideRequirements } from "./code/bundle-folder.ts";
export { withHint } from "./code/error-hints.ts";
export type {
  LaunchedTask,
  Launcher,
  LauncherHost,
  LaunchFailure,
  LaunchRequest,
  UnclaimedAssignment,
} from "./execute/remote/launcher.ts";
export { ExecutionError } from "./execute/worker/execution-client.ts";
export { startApi } from "./process/api.ts";
export { startBackfillRunner } from "./process/backfill.ts";
export { CLEANABLE, clean } from "./process/clean.ts";
export { startDagProcessor } from "./process/dag-processor.ts";
export {
  DagRunJob,
  type DagRunJobOptions,
  type EndedRun,
  type RunProgress,
  type RunRequest,
} from "./process/dag-run-job.ts";
export { probeOutputStore } from "./process/parts/large-outputs.ts";
export { probeLogStore } from "./process/parts/log-store.ts";
export { type OpenedDatabase, openDatabase } from "./process/parts/open-database.ts";
export { probeSecrets, readSecrets } from "./process/parts/stored-secrets.ts";
export { startScheduler } from "./process/scheduler.ts";
export { startSignalServer } from "./process/signal-server.ts";
export { type Standalone, startStandalone } from "./process/standalone.ts";
export { startTriggerer } from "./process/triggerer.ts";
export { startWorker, type WorkerStart } from "./process/worker.ts";
export { type Config, resolveConfig } from "./service/config.ts";
export { EngineError } from "./service/errors.ts";
export { missingVariableHint } from "./service/missing-variable.ts";
export { METRICS_TYPE, processMetrics } from "./service/process-metrics.ts";
export { userEnvironment, withheldNames } from "./service/user-environment.ts";
export { migrate, migrationStatus } from "./store/database/migrate.ts";
export { serverVersion } from "./store/database/server-version.ts";
export { blockerRemedy, describeBlocker, signalBlockers } from "./store/signal/signals-blockers.ts";
export { VERSION } from "./version.ts";
