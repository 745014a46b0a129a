/** The executors of a process that drives runs, by its configuration. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Executor } from "../execute/contract.ts";
import { LocalExecutor } from "../execute/local/local-executor.ts";
import type { LocalExecutorOptions } from "../execute/local/local-executor-options.ts";
import { QueueLauncher } from "../execute/queue/queue-launcher.ts";
import type { Launcher } from "../execute/remote/launcher.ts";
import { ModuleLauncher } from "../execute/remote/module-launcher.ts";
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

/** An executor with all of its settings. */
type ExecutorSettings =
  | { readonly type: "local" }
  | { readonly type: "queue"; readonly redisUrl: string; readonly parallelism: number }
  | {
      readonly type: "module";
      readonly module: string;
      readonly options: Json;
      readonly parallelism: number;
    };

type Settings = Pick<Config, "executor" | "executors" | "queueParallelism" | "redisUrl">;

/** The names that tasks may use, the default first. @throws EngineError if an executor lacks a setting. */
export function executorNames(config: Settings): string[] {
  return [...configured(config).keys()];
}

function configured({ executor, executors, queueParallelism, redisUrl }: Settings) {
  const all = new Map<string, ExecutorSettings>([["local", { type: "local" }]]);
  const builtIn: Settings["executors"] = redisUrl === undefined ? {} : { queue: { type: "queue" } };
  for (const [name, given] of Object.entries({ ...builtIn, ...executors })) {
    const { parallelism = queueParallelism } = given;
    if (given.type === "module") all.set(name, { ...given, parallelism });
    else
      all.set(name, { type: "queue", redisUrl: requireRedis(name, given.redisUrl ?? redisUrl), parallelism });
  }
  if (executor === "queue" && !all.has(executor)) requireRedis(executor, redisUrl);
  const standard = all.get(executor);
  if (standard === undefined) throw unknown(executor, [...all.keys()]);
  return new Map([[executor, standard], ...all]);
}

function requireRedis(name: string, url: string | undefined): string {
  if (url !== undefined) return url;
  throw invalid(
    "REDIS_URL",
    `Executor "${name}" needs a Redis: set REDIS_URL, e.g. redis://127.0.0.1:6379, or its redisUrl in TRADEWIND_EXECUTORS.`,
  );
}

function unknown(name: string, known: readonly string[]): EngineError {
  return invalid(
    "TRADEWIND_EXECUTOR",
    `TRADEWIND_EXECUTOR names the executor "${name}", which is not configured. Configured: ${known.join(", ")}. Name one of these, or add it to TRADEWIND_EXECUTORS.`,
  );
}

function invalid(setting: string, message: string): EngineError {
  return new EngineError("CONFIG_INVALID", message, { details: { setting } });
}

interface RemoteFacts {
  readonly type: string;
  readonly parallelism: number;
}

export function createExecutors(
  { config, database, logger, secretBox, wakeUps }: ServiceParts,
  localOptions: LocalExecutorOptions,
): Executors {
  const local = new LocalExecutor(localOptions);
  const remote = (name: string, launcher: Launcher, { parallelism, type }: RemoteFacts) =>
    new RemoteExecutor({
      name,
      type,
      database,
      launcher,
      secretBox,
      parallelism,
      logger: logger.child({ component: name === "" ? "executor" : `${name}-executor` }),
      onCancels: () => wakeUps.send("assignments"),
    });
  const all = [...configured(config)].map(([name, settings]) =>
    settings.type === "local" ? local : remote(name, launcherOf(name, settings), settings),
  );
  return { all, foreign: remote("", NO_LAUNCHER, { type: "", parallelism: 0 }), local };
}

function launcherOf(name: string, settings: Exclude<ExecutorSettings, { type: "local" }>): Launcher {
  if (settings.type === "queue") return new QueueLauncher({ url: settings.redisUrl });
  return new ModuleLauncher({ name, ...settings });
}

const NO_LAUNCHER: Launcher = { start: async () => {}, launch: () => {}, stop: async () => {} };
