/**
 * A launcher from a package that the operator has named. Its code runs in the scheduler's process, so nothing that it throws
 * may end that process: a failed launch is logged, and is repeated by the launcher itself.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { importConfigured } from "../../service/configured-module.ts";
import { EngineError, messageOf } from "../../service/errors.ts";
import type { Launcher, LauncherHost, LaunchRequest } from "./launcher.ts";

/** The default export of the module. */
type LauncherClass = new (options: Json) => Launcher;

export interface ModuleLauncherOptions {
  /** The name of the executor. */
  readonly name: string;
  readonly module: string;
  readonly options: Json;
}

const METHODS = ["start", "launch", "stop"] as const satisfies readonly (keyof Launcher)[];

export class ModuleLauncher implements Launcher {
  readonly #options: ModuleLauncherOptions;
  #launcher: Launcher | null = null;
  #host: LauncherHost | null = null;

  constructor(options: ModuleLauncherOptions) {
    this.#options = options;
  }

  /** @throws EngineError if the module provides no launcher, or its launcher does not start. */
  async start(host: LauncherHost): Promise<void> {
    this.#host = host;
    const launcher = await this.#load();
    await launcher.start(host).catch((error: unknown) => {
      throw this.#refused(`its executor does not start: ${messageOf(error)}`, error);
    });
    this.#launcher = launcher;
  }

  launch(requests: readonly LaunchRequest[]): void {
    this.#guard("launch", () => this.#launcher?.launch(requests));
  }

  withdraw(ids: readonly string[]): void {
    this.#guard("withdraw", () => this.#launcher?.withdraw?.(ids));
  }

  problem(): string | null {
    try {
      return this.#launcher?.problem?.() ?? null;
    } catch (error) {
      return `its method "problem" failed: ${messageOf(error)}`;
    }
  }

  async stop(): Promise<void> {
    try {
      await this.#launcher?.stop();
    } catch (error) {
      this.#failed("stop", error);
    }
  }

  /** A method that returns a promise by mistake must not reject unhandled. */
  #guard(method: string, call: () => unknown): void {
    try {
      void Promise.resolve(call()).catch((error: unknown) => this.#failed(method, error));
    } catch (error) {
      this.#failed(method, error);
    }
  }

  #failed(method: string, error: unknown): void {
    this.#host?.logger.error(`"${method}" of the executor's module failed`, { error: messageOf(error) });
  }

  async #load(): Promise<Launcher> {
    const { module: path, options } = this.#options;
    let module: { readonly default?: unknown };
    try {
      module = await importConfigured(path);
    } catch (error) {
      throw this.#refused(`it cannot be loaded: ${messageOf(error)}`, error);
    }
    if (typeof module.default !== "function") throw this.#refused("its default export is not a class");
    let launcher: Launcher;
    try {
      launcher = new (module.default as LauncherClass)(options);
    } catch (error) {
      throw this.#refused(`its class rejects the options: ${messageOf(error)}`, error);
    }
    const missing = METHODS.filter((name) => typeof launcher[name] !== "function");
    if (missing.length > 0) throw this.#refused(`its class lacks ${missing.join(", ")}`);
    return launcher;
  }

  #refused(why: string, cause?: unknown): EngineError {
    const { module, name } = this.#options;
    return new EngineError(
      "EXECUTOR_MODULE",
      `Executor "${name}" of TRADEWIND_EXECUTORS: the module ${module} provides no executor: ${why}. Install the package where the scheduler runs, or correct its options.`,
      { cause },
    );
  }
}
