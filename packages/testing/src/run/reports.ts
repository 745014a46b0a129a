/**
 * Applies the reports of attempts and triggers to the model, like the scheduler (run/loaded/run-actor.ts of the
 * engine).
 */
import {
  type Instance,
  isFinished,
  isStreaming,
  type RunModel,
  retryDelayMs,
  type WaitResult,
  waitOf,
} from "@tradewind/engine/model";
import type { Deferral, RunFacts, TaskOutcome } from "@tradewind/sdk/program";
import type { KeptWait, Waits } from "../trigger/waits.ts";
import type { EndedAttempt } from "./attempts.ts";
import type { Callbacks } from "./callbacks.ts";
import type { Clock } from "./clock.ts";
import type { Journal } from "./journal.ts";

/** The outcomes that end a try. */
export type TryEnd = Extract<TaskOutcome, { kind: "success" | "failed" | "skipped" }>;

export interface ReportsParts {
  readonly callbacks: Callbacks;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly model: RunModel;
  readonly run: RunFacts;
  readonly waits: Waits;
}

export class Reports {
  readonly #parts: ReportsParts;

  constructor(parts: ReportsParts) {
    this.#parts = parts;
  }

  /** Records the changes of the model; `durationMs` is that of the attempt that caused them. */
  note(durationMs?: number): void {
    const { journal, model } = this.#parts;
    journal.note(model.takeChanges(), durationMs);
  }

  async ended({ instance, attempt, outcome, durationMs }: EndedAttempt): Promise<void> {
    const { clock, journal, model, waits } = this.#parts;
    if (instance.attempt !== attempt || isFinished(instance.state)) return;
    const now = clock.now();
    const of = { ...keyOf(instance, attempt), at: now };
    if (model.stopping(instance) !== null && outcome.kind !== "success") {
      this.#gone(instance, attempt, "stopped");
      this.note(durationMs);
      if (stateOf(instance) === "success") await this.#tell(instance, SUCCESS);
      return;
    }
    if (instance.state === "restarting") {
      journal.restarted(instance, durationMs);
      this.#gone(instance, attempt, instance.reason ?? "restarted");
      this.note();
      return;
    }
    switch (outcome.kind) {
      case "deferred":
        if (model.apply({ type: "deferred", wait: waitOf(outcome, now), ...of }, now))
          waits.begin(instance, attempt, outcome);
        break;
      case "rescheduled": {
        const retryAt = now + outcome.afterMs;
        if (model.apply({ type: "rescheduled", retryAt, ...of }, now)) journal.putOff(instance);
        break;
      }
      case "cancelled":
        this.#gone(instance, attempt, "cancelled");
        break;
      default:
        this.#end(instance, attempt, outcome);
    }
    this.note(durationMs);
    await this.#tell(instance, outcome);
  }

  /** Starts a task with a wait: it needs no attempt before its trigger fires. */
  startWaiting(instance: Instance, attempt: string, deferral: Deferral): void {
    const { clock, journal, model, waits } = this.#parts;
    const at = clock.now();
    const event = { type: "startedWaiting", ...keyOf(instance, attempt), at } as const;
    if (!model.apply({ ...event, wait: waitOf(deferral, at) }, at)) return;
    journal.begin(instance);
    waits.begin(instance, attempt, deferral);
  }

  /** Applies the end of a wait. */
  async follow({ instance, attempt }: KeptWait, result: WaitResult): Promise<void> {
    const { clock, model } = this.#parts;
    if (instance.state !== "deferred" || instance.attempt !== attempt) return;
    if (result.kind === "resume") {
      model.apply({ type: "resumed", ...keyOf(instance, attempt) }, clock.now());
      return;
    }
    const end = result.kind === "success" ? { ...result, skip: [] } : result;
    this.#end(instance, attempt, end);
    this.note();
    await this.#tell(instance, end);
  }

  /** Runs the task's callback for the end of its try, if it has ended. */
  async #tell(instance: Instance, outcome: EndedAttempt["outcome"] | TryEnd): Promise<void> {
    const { callbacks } = this.#parts;
    if (outcome.kind === "success") await callbacks.ofTask(instance, "success");
    if (outcome.kind !== "failed") return;
    const isRetried = ["up_for_retry", "scheduled"].includes(stateOf(instance));
    await callbacks.ofTask(instance, isRetried ? "retry" : "failure", outcome.error);
  }

  /** An attempt, or its trigger, ended the try. */
  #end(instance: Instance, attempt: string, outcome: TryEnd): void {
    const { clock, journal, model } = this.#parts;
    const now = clock.now();
    const of = { ...keyOf(instance, attempt), at: now };
    journal.keep(instance, outcome);
    if (outcome.kind === "success") {
      model.apply({ type: "succeeded", skip: outcome.skip, ...of }, now);
    } else if (outcome.kind === "skipped") {
      model.apply({ type: "skipped", reason: outcome.reason, ...of }, now);
    } else {
      const { retry, error } = outcome;
      const retryAt = now + this.#retryDelay(instance, now);
      model.apply({ type: "failed", retry, retryAt, reason: error.message, ...of }, now);
    }
  }

  /** The attempt was asked to stop: its own outcome is ignored. */
  #gone(instance: Instance, attempt: string, reason: string): void {
    const { clock, model } = this.#parts;
    const at = clock.now();
    const event = { type: "lost", ...keyOf(instance, attempt), at, reason } as const;
    model.apply({ ...event, budget: null, retryAt: null }, at);
  }

  /** The delay of a streaming task depends on its failures in a row. */
  #retryDelay(instance: Instance, now: number): number {
    const { model, run } = this.#parts;
    const { node, mapIndex } = instance;
    const ranMs = now - (instance.attemptStartedAt ?? instance.startedAt ?? now);
    const tryNumber =
      model.drive && isStreaming(node.manifest)
        ? model.drive.countFailure(node.id, ranMs)
        : instance.tryNumber;
    const { dagId, runId } = run;
    return retryDelayMs(node.manifest, { dagId, runId, taskId: node.id, mapIndex, tryNumber });
  }
}

const SUCCESS = { kind: "success", output: undefined, skip: [] } as const;

function keyOf({ node, mapIndex }: Instance, attempt: string) {
  return { taskId: node.id, mapIndex, attempt };
}

/** Reads the state again: the model changes it, which the compiler cannot see. */
function stateOf(instance: Instance): string {
  return instance.state;
}
