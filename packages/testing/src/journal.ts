/** What a run leaves behind: outputs, errors, logs, timeline. It stands where the store and the log files do otherwise. */
import { type Change, type Instance, isFinished } from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import type { ErrorFacts, SettledInput, TaskHost, TaskOutcome } from "@tradewind/sdk/program";
import type { LogLine, RunOptions, RunProgress } from "./options.ts";
import type { TaskResult, TimelineEntry } from "./result.ts";
import { connectionOf } from "./run-facts.ts";

export class Journal {
  readonly timeline: TimelineEntry[] = [];
  readonly logs: Record<string, LogLine[]> = {};
  readonly #options: RunOptions;
  readonly #outputs = new Map<string, Json | undefined>();
  readonly #errors = new Map<string, ErrorFacts>();

  constructor(options: RunOptions) {
    this.#options = options;
  }

  report(progress: RunProgress): void {
    this.#options.onEvent?.(progress);
  }

  keep(taskId: string, outcome: TaskOutcome): void {
    if (outcome.kind === "failed") this.#errors.set(taskId, outcome.error);
    else this.#errors.delete(taskId);
    if (outcome.kind === "success") this.#outputs.set(taskId, outcome.output);
  }

  /** Writes down what the model decided: only what an author would call a step. `durationMs` is that of the attempt. */
  note(changes: readonly Change[], atMs: number, durationMs = 0): void {
    for (const { instance } of changes) {
      const { node, mapIndex, tryNumber, state } = instance;
      const hasEnded = isFinished(state) || state === "up_for_retry";
      if (!hasEnded && state !== "running") continue;
      this.timeline.push({ atMs, taskId: node.id, mapIndex, tryNumber, state });
      if (!hasEnded) continue;
      const hasRun = tryNumber > 0 && state !== "upstream_failed";
      const output = this.#outputOf(instance);
      const error = this.#errors.get(node.id);
      const ended = { taskId: node.id, mapIndex, tryNumber, state, output, error };
      this.report({ type: "ended", durationMs: hasRun ? durationMs : 0, ...ended });
    }
  }

  /** Copies, as in production: no task can change what another one sees. */
  settled(upstream: Instance): SettledInput {
    const state = isFinished(upstream.state) ? upstream.state : "none";
    return { state: state as SettledInput["state"], value: structuredClone(this.#outputOf(upstream)) };
  }

  host(taskId: string, mapIndex: number): Omit<TaskHost, "abort"> {
    return {
      log: (level, message, fields) => {
        const line = { level, message, fields };
        const lines = this.logs[taskId] ?? [];
        lines.push(line);
        this.logs[taskId] = lines;
        this.report({ type: "log", taskId, mapIndex, ...line });
      },
      output: async (id) => structuredClone(this.#outputs.get(id)),
      variable: async (key) => this.#options.variables?.[key],
      connection: async (id) => connectionOf(this.#options, id),
    };
  }

  result(instance: Instance): TaskResult {
    const { node, mapIndex, state, tryNumber, reason } = instance;
    const error = state === "failed" ? this.#errors.get(node.id) : undefined;
    return {
      taskId: node.id,
      mapIndex,
      state,
      tries: tryNumber,
      output: this.#outputOf(instance),
      error,
      reason,
    };
  }

  #outputOf({ node, state }: Instance): Json | undefined {
    return state === "success" ? this.#outputs.get(node.id) : undefined;
  }
}
