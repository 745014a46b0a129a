/** The executors of a process that drives runs, by its configuration. */
import type { Executor } from "../execute/contract.ts";
import { LocalExecutor } from "../execute/local/local-executor.ts";
import type { LocalExecutorOptions } from "../execute/local/local-executor-options.ts";
import { QueueLauncher } from "../execute/queue/queue-launcher.ts";
import type { Launcher } from "../execute/remote/launcher.ts";
import { RemoteExecutor } from "../execute/remote/remote-executor.ts";
import type { Config } from "../service/config.ts";
import { EngineError } from "../service/errors.ts";
import type { ServiceParts } from "./service-parts.ts";

export interface Executors {
  /** The default first. */
  readonly all: readonly Executor[];
  /** Holds adopted attempts of executors that this process does not have. */
  readonly foreign: Executor;
  readonly local: LocalExecutor;
}

/** The names that tasks may use. @throws EngineError if the default executor lacks a setting. */
export function executorNames({ executor, redisUrl }: Pick<Config, "executor" | "redisUrl">): string[] {
  if (executor === "queue" && redisUrl === undefined)
    throw new EngineError(
      "CONFIG_INVALID",
      "The queue executor needs a Redis: set REDIS_URL, e.g. redis://127.0.0.1:6379.",
      { details: { setting: "REDIS_URL" } },
    );
  const names = ["local", ...(redisUrl === undefined ? [] : ["queue"])];
  return [executor, ...names.filter((name) => name !== executor)];
}

export function createExecutors(
  { config, database, logger, secretBox, wakeUps }: ServiceParts,
  localOptions: LocalExecutorOptions,
): Executors {
  const local = new LocalExecutor(localOptions);
  const remote = (name: string, launcher: Launcher) =>
    new RemoteExecutor({
      name,
      database,
      launcher,
      secretBox,
      parallelism: config.queueParallelism,
      logger: logger.child({ component: name === "" ? "executor" : `${name}-executor` }),
      onCancels: () => wakeUps.send("assignments"),
    });
  const { redisUrl } = config;
  const all = executorNames(config).map((name) =>
    name === "local" ? local : remote(name, new QueueLauncher({ url: redisUrl ?? "" })),
  );
  return { all, foreign: remote("", NO_LAUNCHER), local };
}

const NO_LAUNCHER: Launcher = { start: async () => {}, launch: () => {}, stop: async () => {} };
