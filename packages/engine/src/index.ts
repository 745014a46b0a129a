/** The engine, as the command line and embedders use it. */
export { ParamsCheck } from "./api/params-check.ts";
export { provideRequirements } from "./bundle/bundle-folder.ts";
export type { BundleResult } from "./bundle/bundler/protocol.ts";
export { BundlerPool } from "./bundle/bundler-pool.ts";
export { DagFolder, isCodeFile } from "./bundle/dag-files.ts";
export { withHint } from "./bundle/error-hints.ts";
export { forgetfulFiles } from "./bundle/file-ledger.ts";
export { startApi } from "./processes/api.ts";
export { startBackfillRunner } from "./processes/backfill.ts";
export { CLEANABLE, clean } from "./processes/clean.ts";
export { startDagProcessor } from "./processes/dag-processor.ts";
export {
  DagRunJob,
  type DagRunJobOptions,
  type EndedRun,
  type RunProgress,
  type RunRequest,
} from "./processes/dag-run-job.ts";
export { probeOutputStore } from "./processes/large-outputs.ts";
export { type OpenedDatabase, openDatabase } from "./processes/open-database.ts";
export { startScheduler } from "./processes/scheduler.ts";
export { startSignalServer } from "./processes/signal-server.ts";
export { type Standalone, startStandalone } from "./processes/standalone.ts";
export { probeSecrets, readSecrets } from "./processes/stored-secrets.ts";
export { startTriggerer } from "./processes/triggerer.ts";
export { type Config, resolveConfig } from "./service/config.ts";
export { EngineError } from "./service/errors.ts";
export { missingVariableHint } from "./service/missing-variable.ts";
export { userEnvironment, withheldNames } from "./service/user-environment.ts";
export { migrate, migrationStatus } from "./store/migrate.ts";
export { serverVersion } from "./store/server-version.ts";
export { blockerRemedy, describeBlocker, signalBlockers } from "./store/signals-blockers.ts";
export { type ConnectionTest, testConnection } from "./trigger/builtin/connection-test.ts";
export { VERSION } from "./version.ts";
