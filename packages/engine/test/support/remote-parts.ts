/** API servers and workers in the process of a test, for the rigs of remote execution. */
import { createApi } from "../../src/process/api.ts";
import { openLogs } from "../../src/process/parts/log-store.ts";
import type { ServiceParts } from "../../src/process/parts/service-parts.ts";
import { startWorker, type WorkerStart } from "../../src/process/worker.ts";
import { resolveConfig } from "../../src/service/config.ts";
import { openHome } from "../../src/service/home.ts";
import { createLogger, silentLogger } from "../../src/service/logger.ts";

export interface StartedApi {
  readonly url: string;
  stop(): Promise<void>;
}

/** @param home Folder of the API server. `settings`: environment variables. */
export async function startTestApi(
  home: string,
  {
    settings = {},
    workerLeaseMs,
    ...given
  }: Pick<ServiceParts, "database" | "secretBox" | "wakeUps"> & {
    readonly settings?: Readonly<Record<string, string>>;
    readonly workerLeaseMs?: number;
  },
): Promise<StartedApi> {
  const config = resolveConfig({ home, port: 0 }, settings);
  const logger = process.env.TRADEWIND_TEST_LOG ? createLogger({ level: "debug" }) : silentLogger;
  const parts = { ...given, config, logger, home: await openHome(home), logs: await openLogs(config) };
  const { api, close } = await createApi({ ...parts, ...(workerLeaseMs && { workerLeaseMs }) });
  await api.start();
  return {
    url: api.url,
    stop: async () => {
      await api.stop();
      await close();
      await parts.logs.close();
    },
  };
}

export interface StartedWorker {
  /** Resolves when a user has removed the worker. */
  readonly finished: Promise<void>;
  stop(): Promise<void>;
}

/** A worker with task processes of its own. @param home Its folder. `settings`: environment variables. */
export async function startTestWorker(
  home: string,
  { settings, ...start }: WorkerStart & { readonly settings?: Readonly<Record<string, string>> },
): Promise<StartedWorker> {
  const level = process.env.TRADEWIND_TEST_LOG ? "debug" : "error";
  const env = { TRADEWIND_DRAIN: "1s", TRADEWIND_STOP_GRACE_MS: "500", TRADEWIND_LOG_LEVEL: level };
  const { finished, stop } = await startWorker(resolveConfig({ home }, { ...env, ...settings }), start);
  let stopped: Promise<void> | null = null;
  return { finished, stop: () => (stopped ??= stop()) };
}
