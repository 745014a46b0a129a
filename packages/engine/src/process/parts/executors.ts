/** The executors of a process that drives runs, by its configuration. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Executor } from "../../execute/contract.ts";
import {
  KubernetesLauncher,
  type KubernetesLauncherOptions,
} from "../../execute/kubernetes/kubernetes-launcher.ts";
import { LocalExecutor } from "../../execute/local/local-executor.ts";
import type { LocalExecutorOptions } from "../../execute/local/local-executor-options.ts";
import { QueueLauncher } from "../../execute/queue/queue-launcher.ts";
import type { Launcher } from "../../execute/remote/launcher.ts";
import { ModuleLauncher } from "../../execute/remote/module-launcher.ts";
import { RemoteExecutor } from "../../execute/remote/remote-executor.ts";
import type { Config } from "../../service/config.ts";
import { EngineError } from "../../service/errors.ts";
import type { GivenExecutor } from "../../service/executor-settings.ts";
import type { KubernetesConfig } from "../../service/kubernetes-settings.ts";
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
  | (KubernetesLauncherOptions & { readonly type: "kubernetes"; readonly parallelism: number })
  | {
      readonly type: "module";
      readonly module: string;
      readonly options: Json;
      readonly parallelism: number;
    };

type Settings = Pick<
  Config,
  "executor" | "executors" | "queueParallelism" | "redisUrl" | keyof KubernetesConfig
>;

/** The names that tasks may use, the default first. @throws EngineError if an executor lacks a setting. */
export function executorNames(config: Settings): string[] {
  return [...configured(config).keys()];
}

function configured(config: Settings): ReadonlyMap<string, ExecutorSettings> {
  const { executor, executors, podTemplate, queueParallelism, redisUrl } = config;
  const all = new Map<string, ExecutorSettings>([["local", { type: "local" }]]);
  const builtIn: Settings["executors"] = {
    ...((redisUrl !== undefined || executor === "queue") && { queue: { type: "queue" } }),
    ...((podTemplate !== undefined || executor === "kubernetes") && { kubernetes: { type: "kubernetes" } }),
  };
  for (const [name, given] of Object.entries({ ...builtIn, ...executors })) {
    const { parallelism = queueParallelism } = given;
    if (given.type === "module") all.set(name, { ...given, parallelism });
    else if (given.type === "kubernetes")
      all.set(name, { type: "kubernetes", parallelism, ...kubernetesOptions(name, given, config) });
    else
      all.set(name, { type: "queue", redisUrl: requireRedis(name, given.redisUrl ?? redisUrl), parallelism });
  }
  const standard = all.get(executor);
  if (standard === undefined) throw unknown(executor, [...all.keys()]);
  return new Map([[executor, standard], ...all]);
}

function kubernetesOptions(
  name: string,
  given: Extract<GivenExecutor, { type: "kubernetes" }>,
  config: Settings,
): KubernetesLauncherOptions {
  const { executionUrl = config.executionUrl, podTemplate = config.podTemplate } = given;
  if (podTemplate === undefined)
    throw invalid(
      "TRADEWIND_POD_TEMPLATE",
      `Executor "${name}" needs a pod template: set TRADEWIND_POD_TEMPLATE to a YAML file with a pod whose container "task" has the image of your tasks.`,
    );
  if (executionUrl === undefined)
    throw invalid(
      "TRADEWIND_EXECUTION_URL",
      `Executor "${name}" needs the address of the API as seen from pods: set TRADEWIND_EXECUTION_URL, e.g. http://tradewind-api.tradewind:8080.`,
    );
  return {
    podTemplate,
    executionUrl,
    namespaces: given.namespaces ?? config.kubernetesNamespace,
    deletePods: config.kubernetesDeletePods,
    pendingMs: config.kubernetesPendingMs,
    createRate: config.kubernetesCreateRate,
    ...(given.kubeconfig !== undefined && { kubeconfig: given.kubeconfig }),
  };
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
      logs: localOptions.logs,
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
  if (settings.type === "kubernetes") return new KubernetesLauncher(settings);
  return new ModuleLauncher({ name, ...settings });
}

const NO_LAUNCHER: Launcher = { start: async () => {}, launch: () => {}, stop: async () => {} };
