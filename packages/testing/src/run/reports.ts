/**
 * Applies the reports of attempts and triggers to the model, like the scheduler (run/loaded/run-actor.ts of the
 * engine).
 */
import {
  type AttemptEnd,
  type AttemptOutcome,
  attemptEnd,
  type Instance,
  isFinished,
  type RunModel,
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
  record(durationMs?: number): void {
    const { journal, model } = this.#parts;
    journal.record(model.drainChanges(), durationMs);
  }

  async ended({ instance, attempt, outcome, durationMs }: EndedAttempt): Promise<void> {
    if (instance.attempt !== attempt || isFinished(instance.state)) return;
    const { journal, waits } = this.#parts;
    const end = this.#end(instance, outcome, durationMs);
    if (outcome.kind === "deferred" && end?.type === "deferred") waits.begin(instance, attempt, outcome);
    if (end?.type === "rescheduled") journal.recordDeferral(instance);
    this.record(end?.type === "restarted" ? undefined : durationMs);
    if (end?.type === "restarted") return;
    if (end?.type !== "stopped") await this.#runCallback(instance, outcome);
    else if (stateOf(instance) === "success") await this.#runCallback(instance, SUCCESS);
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
    this.#end(instance, result);
    this.record();
    await this.#runCallback(instance, result);
  }

  /** Runs the task's callback for the end of its try, if it has ended. */
  async #runCallback(instance: Instance, outcome: AttemptOutcome): Promise<void> {
    const { callbacks } = this.#parts;
    if (outcome.kind === "success") await callbacks.ofTask(instance, "success");
    if (outcome.kind !== "failed") return;
    const isRetried = ["up_for_retry", "scheduled"].includes(stateOf(instance));
    await callbacks.ofTask(instance, isRetried ? "retry" : "failure", outcome.error);
  }

  /** null: the model ignored the end. */
  #end(instance: Instance, outcome: AttemptOutcome, durationMs = 0): AttemptEnd | null {
    const { clock, journal, model, run } = this.#parts;
    const at = clock.now();
    const end = attemptEnd(model, instance, outcome, { at, run });
    if (end.type === "restarted") journal.restarted(instance, durationMs);
    else if (isTryEnd(outcome) && end.type !== "stopped") journal.keep(instance, outcome);
    // A test reads the message alone: its result has the whole error.
    const told =
      outcome.kind === "failed" && end.type === "failed" ? { ...end, reason: outcome.error.message } : end;
    return model.apply(told, at) ? end : null;
  }
}

const SUCCESS = { kind: "success", output: undefined, skip: [] } as const;

function keyOf({ node, mapIndex }: Instance, attempt: string) {
  return { taskId: node.id, mapIndex, attempt };
}

function isTryEnd(outcome: AttemptOutcome): outcome is TryEnd {
  return outcome.kind === "success" || outcome.kind === "failed" || outcome.kind === "skipped";
}

/** Reads the state again: the model changes it, which the compiler cannot see. */
function stateOf(instance: Instance): string {
  return instance.state;
}
