/**
 * One owned run in memory: its facts, its DAG version and the model that decides what is next. The actor does no I/O;
 * the job that owns it feeds it reports and stores what it decided. Whenever a store fails, the actor is thrown away
 * and loaded again: the database is its journal.
 */
import { randomUUID } from "node:crypto";
import type { ErrorFacts, RunFacts } from "@tradewind/sdk/program";
import type { AttemptOutcome } from "../../execute/contract.ts";
import {
  deferralOf,
  failureReason,
  type Instance,
  isStreaming,
  type NoticeEvent,
  type Place,
  type RunEnding,
  type RunModel,
  resultOfFired,
  resultOfTimeout,
  retryDelayMs,
  type TriggerOutcome,
  type WaitResult,
  waitOf,
} from "../../model/index.ts";
import type { DeadLetterWrite } from "../../store/drive/run-drives.ts";
import { type OutputWrite, outputOf } from "../../store/output/run-outputs.ts";
import { limitKeyOf } from "../../store/pool/limit-key.ts";
import type { ClaimedRun } from "../../store/run/run-claim.ts";
import { runFacts } from "../../store/run/run-row.ts";
import type { SignalDraft } from "../../store/signal/signals.ts";
import { type AttemptWrite, attemptWrite } from "../../store/task/ended-attempts.ts";
import type { SignalWrite } from "../../store/task/run-batch.ts";
import { stateSignal } from "../../store/task/state-signals.ts";
import type { DeferralWrite, FiredDeferral, WaitEnd } from "../../store/trigger/deferrals.ts";
import type { RunSubscriptions } from "../drive/run-subscriptions.ts";
import { type EventTraces, successDrafts, traceTask } from "./event-traces.ts";
import type { DagVersion } from "./version-cache.ts";
import { deferralWrite, type WaitPlace } from "./waiting.ts";

/** What a report leaves behind besides state: rows for the batch. */
export interface Traces extends EventTraces {
  readonly attempts: AttemptWrite[];
  readonly outputs: OutputWrite[];
  readonly signals: SignalDraft[];
  /** States that the rows of the batch do not show: a task that ended has begun again. */
  readonly states: SignalWrite[];
  readonly deferrals: DeferralWrite[];
  readonly waitEnds: WaitEnd[];
  readonly deadLetters: DeadLetterWrite[];
}

export function noTraces(): Traces {
  return {
    attempts: [],
    outputs: [],
    callbacks: [],
    deliveries: [],
    signals: [],
    states: [],
    deferrals: [],
    waitEnds: [],
    deadLetters: [],
  };
}

/** With what an event of an actor is applied: when, and where it leaves its traces. */
interface Circumstances {
  readonly at: number;
  readonly traces: Traces;
}

export interface Ended {
  readonly taskId: string;
  readonly mapIndex: number;
  readonly attempt: string;
  readonly at: number;
  readonly outcome: AttemptOutcome;
  /** What the pool says about deferred tasks. */
  readonly keepsSlot: boolean;
}

export class RunActor {
  readonly run: ClaimedRun;
  readonly version: DagVersion;
  readonly model: RunModel;
  /** How it hears signals; null: nothing drives it but the order of its tasks. */
  readonly ears: RunSubscriptions | null;
  readonly facts: RunFacts;
  /** The earliest moment this run has a timer for. */
  notedAt = Number.POSITIVE_INFINITY;
  /** When the run times out, in milliseconds. */
  readonly deadline: number | null;
  isPaused: boolean;
  /** It was ended before its tasks had: nothing but teardowns runs any more. */
  ending: RunEnding | null;
  /** Maps whose lists are being measured: it is not over before they are answered. */
  unmeasured = 0;
  /** When the next try of the failed run begins, as it is stored. */
  retryAt: number | null;

  /** Nothing of it is under way: an earlier date may need its place (see store/run/run-places.ts). */
  get onlyWaitsForPast(): boolean {
    const { active, held } = this.model.counts;
    return this.version.isGated && active === 0 && held > 0;
  }

  constructor(
    run: ClaimedRun,
    version: DagVersion,
    parts: { model: RunModel; ears: RunSubscriptions | null },
  ) {
    this.run = run;
    this.version = version;
    this.model = parts.model;
    this.ears = parts.ears;
    this.facts = runFacts(run);
    this.isPaused = run.is_paused;
    this.retryAt = run.retry_at?.getTime() ?? null;
    this.ending = run.ending && { state: run.ending, reason: run.end_reason };
    const { runTimeoutMs } = version.manifest;
    this.deadline = runTimeoutMs === null || !run.started_at ? null : run.started_at.getTime() + runTimeoutMs;
  }

  isLate(now: number): boolean {
    return this.ending === null && this.deadline !== null && this.deadline <= now;
  }

  /** When something is due in this run by itself: a retry, a tick, the end of a wait, its deadline. Infinity: nothing. */
  nextMoment(): number {
    const never = Number.POSITIVE_INFINITY;
    const deadline = this.ending ? never : (this.deadline ?? never);
    const { ears, model } = this;
    const question = ears?.nextQuestionAt() ?? never;
    const retry = Math.min(model.nextRetryAt() ?? never, this.retryAt ?? never);
    return Math.min(retry, model.nextDeadline() ?? never, question, deadline);
  }

  get id(): number {
    return this.run.id;
  }

  /** false: a late report of an attempt that is no longer current; nothing happened. */
  ended(report: Ended, traces: Traces): boolean {
    const instance = this.model.get(report.taskId, report.mapIndex);
    if (!instance || instance.attempt !== report.attempt) return false;
    const key = { taskId: report.taskId, mapIndex: report.mapIndex, attempt: report.attempt };
    const before = attemptWrite(this.id, instance, report.at);
    const { outcome } = report;
    const now = { at: report.at, traces };
    const isRestarting = instance.state === "restarting";
    if (this.model.stopping(instance) !== null && (isRestarting || outcome.kind !== "success"))
      return this.#stopped(instance, now);
    if (isRestarting) return this.#restarted(instance, now);
    switch (outcome.kind) {
      case "success":
        return this.#succeeded(instance, outcome, now);
      case "skipped":
        return this.model.apply(
          { type: "skipped", ...key, at: report.at, reason: outcome.reason },
          report.at,
        );
      case "failed":
        return this.#failed(instance, outcome, now);
      case "deferred": {
        const wait = waitOf(outcome, report.at, report.keepsSlot);
        if (!this.model.apply({ type: "deferred", ...key, at: report.at, wait }, report.at)) return false;
        traces.attempts.push({ ...before, state: "deferred" });
        traces.deferrals.push(deferralWrite(this.#waitPlace(instance, report), outcome));
        return true;
      }
      case "rescheduled": {
        const retryAt = report.at + outcome.afterMs;
        if (!this.model.apply({ type: "rescheduled", ...key, at: report.at, retryAt }, report.at))
          return false;
        traces.attempts.push({ ...before, state: "up_for_reschedule" });
        return true;
      }
      case "cancelled":
        return this.lost(instance, "cancelled", { traces, at: report.at, budget: null });
      case "lost":
        return this.lost(instance, outcome.reason, { traces, at: report.at, budget: null });
    }
  }

  /**
   * The attempt is gone: another attempt of the same try. Up to `budget` times, because a task may be what kills its
   * host; null when it is known that it was not.
   */
  lost(
    instance: Instance,
    reason: string,
    how: { readonly traces: Traces; readonly at: number; readonly budget: number | null },
  ): boolean {
    const attempt = instance.attempt;
    if (attempt === null) return false;
    if (this.model.stopping(instance) !== null) return this.#stopped(instance, how);
    if (instance.state === "restarting") return this.#restarted(instance, how);
    const before = attemptWrite(this.id, instance, how.at);
    const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt };
    // What never ends meets the end of its host sooner or later, and that is no failure of its own.
    const budget = isStreaming(instance.node.manifest) ? null : how.budget;
    const retryAt = budget === null ? null : how.at + this.#retryDelay(instance, how.at);
    const event = { type: "lost", ...key, at: how.at, reason, budget, retryAt } as const;
    if (!this.model.apply(event, how.at)) return false;
    if (instance.state === "failed") this.#trace("failure", instance, how.traces, lostError(reason));
    else how.traces.attempts.push({ ...before, state: "failed", reason });
    if (instance.state === "up_for_retry") this.#trace("retry", instance, how.traces, lostError(reason));
    return true;
  }

  /** Finished tasks that were asked to begin again do, if they may by now. true: some have. */
  beginAgain({ at, traces }: Circumstances): boolean {
    return this.model.beginAgain(at, (instance) => this.#archive(instance, { at, traces }));
  }

  /** The same for groups whose next try is due. */
  beginGroups({ at, traces }: Circumstances): boolean {
    const again = this.model.groups?.begin(at) ?? [];
    return this.model.repeat(again, at, (instance) => this.#archive(instance, { at, traces }));
  }

  #archive(instance: Instance, { at, traces }: Circumstances): void {
    const { attempt, dirty, endedAt, reason } = instance;
    // It ends and begins again in the same batch, whose rows tell only of the begin.
    if (dirty) traces.states.push(stateSignal(this.run, instance));
    if (attempt === null) return;
    const write = attemptWrite(this.id, instance, endedAt ?? at);
    traces.attempts.push({ ...write, reason });
  }

  /** An attempt that was asked to stop is gone. Whatever it made of that, it was stopped. */
  #stopped(instance: Instance, { at, traces }: Circumstances): boolean {
    const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt: instance.attempt ?? "" };
    if (!this.model.apply({ type: "lost", ...key, at, reason: "stopped", budget: null, retryAt: null }, at))
      return false;
    if (instance.state === "success") this.#trace("success", instance, traces, null);
    return true;
  }

  /** The old attempt is gone, and another try follows. It was no failure: nobody is told that it was. */
  #restarted(instance: Instance, { at, traces }: Circumstances): boolean {
    const before = attemptWrite(this.id, instance, at);
    const state = isStreaming(instance.node.manifest) ? "success" : "skipped";
    const reason = instance.reason ?? "restarted";
    const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt: instance.attempt ?? "" };
    if (!this.model.apply({ type: "lost", ...key, at, reason, budget: null, retryAt: null }, at))
      return false;
    traces.attempts.push({ ...before, state, reason });
    return true;
  }

  /** A ready instance that begins by waiting: no worker has to see it before its trigger fires. */
  startWaiting(instance: Instance, now: Circumstances & { readonly keepsSlot: boolean }): boolean {
    const start = instance.node.manifest.startTrigger;
    if (!start) return false;
    const deferral = deferralOf(start);
    const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt: randomUUID() };
    const wait = waitOf(deferral, now.at, now.keepsSlot);
    if (!this.model.apply({ type: "startedWaiting", ...key, at: now.at, wait }, now.at)) return false;
    now.traces.deferrals.push(
      deferralWrite(this.#waitPlace(instance, { at: now.at, attempt: key.attempt }), deferral),
    );
    return true;
  }

  /** The trigger fired. false: its wait is over already, and the news only has to be put away. */
  fired(fired: FiredDeferral, now: Circumstances): Instance | null {
    const instance = this.model.get(fired.task_id, fired.map_index);
    const { attempt } = fired;
    if (instance?.state !== "deferred" || instance.attempt !== attempt) {
      now.traces.waitEnds.push({ attempt, kind: "cancelled", mustBeUnfired: false, isCancelled: true });
      return null;
    }
    const { method, name, on_failure: onFailure } = fired;
    const result = resultOfFired({ method, name, onFailure }, fired.outcome as unknown as TriggerOutcome);
    const kind = result.kind === "resume" ? "resumed" : "finished";
    now.traces.waitEnds.push({ attempt, kind, mustBeUnfired: false, isCancelled: false });
    this.#follow(instance, result, now);
    return instance;
  }

  /** A wait is out of time. */
  overdue(instance: Instance, now: Circumstances): void {
    const { attempt, wait, startedAt, node } = instance;
    if (attempt === null || wait === null) return;
    const result = resultOfTimeout(wait, node.manifest, { at: now.at, startedAt });
    // A function that goes on decides by itself what becomes of what it waited for.
    const isCancelled = result.kind !== "resume";
    now.traces.waitEnds.push({ attempt, kind: "timeout", mustBeUnfired: true, isCancelled });
    this.#follow(instance, result, now);
  }

  #follow(instance: Instance, result: WaitResult, now: Circumstances): void {
    const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt: instance.attempt ?? "" };
    switch (result.kind) {
      case "resume":
        this.model.apply({ type: "resumed", ...key }, now.at);
        return;
      case "success":
        this.#succeeded(instance, { output: result.output, skip: [] }, now);
        return;
      case "skipped":
        this.model.apply({ type: "skipped", ...key, at: now.at, reason: result.reason }, now.at);
        return;
      case "failed":
        this.#failed(instance, result, now);
    }
  }

  #succeeded(
    instance: Instance,
    outcome: Omit<Extract<AttemptOutcome, { kind: "success" }>, "kind">,
    { at, traces }: Circumstances,
  ): boolean {
    const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt: instance.attempt ?? "" };
    if (!this.model.apply({ type: "succeeded", ...key, at, skip: outcome.skip }, at)) return false;
    const output = outputOf(outcome);
    if (output !== undefined) traces.outputs.push(this.#output(key, "return_value", output));
    if (outcome.skip.length > 0) traces.outputs.push(this.#output(key, "tradewind.skip", outcome.skip));
    traces.signals.push(...successDrafts(this.facts, instance, outcome.signals));
    this.#trace("success", instance, traces, null);
    return true;
  }

  #failed(
    instance: Instance,
    outcome: { readonly error: ErrorFacts; readonly retry: boolean },
    { at, traces }: Circumstances,
  ): boolean {
    const { error, retry } = outcome;
    const before = attemptWrite(this.id, instance, at);
    const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt: instance.attempt ?? "" };
    const reason = failureReason(error);
    const retryAt = at + this.#retryDelay(instance, at);
    if (!this.model.apply({ type: "failed", ...key, at, retry, retryAt, reason }, at)) return false;
    const retried = instance.state === "up_for_retry" || instance.state === "scheduled";
    if (retried) traces.attempts.push({ ...before, state: "failed", reason });
    this.#trace(retried ? "retry" : "failure", instance, traces, error);
    return true;
  }

  #waitPlace(instance: Instance, wait: { readonly at: number; readonly attempt: string }): WaitPlace {
    const { startedAt } = this.facts;
    return {
      runId: this.id,
      bundleHash: this.version.bundleHash,
      instance,
      runStartedAt: startedAt,
      ...wait,
    };
  }

  /** Slots are counted by what the row says, always: a newer version may name another pool than the one it is in. */
  placeOf(instance: Instance): Place {
    if (instance.place) return instance.place;
    const { manifest } = instance.node;
    const counters = limitKeyOf(this.version.manifest, manifest);
    instance.place = { pool: manifest.pool, slots: manifest.poolSlots, limitKey: counters };
    return instance.place;
  }

  /** Stored with what it is about, and run or sent afterwards: nothing that it does can undo that. */
  #trace(event: NoticeEvent, instance: Instance, traces: Traces, error: ErrorFacts | null): void {
    traceTask(this, event, instance, { ...traces, error });
  }

  #output(of: InstanceKey, key: OutputWrite["key"], value: OutputWrite["value"]): OutputWrite {
    return { runId: this.id, taskId: of.taskId, mapIndex: of.mapIndex, key, value };
  }

  /** Of a streaming task by its failures in a row: its tries are many, and most may have gone well for days. */
  #retryDelay(instance: Instance, at: number): number {
    const { dag_id: dagId, run_id: runId } = this.run;
    const { node, mapIndex } = instance;
    const ranMs = at - (instance.attemptStartedAt ?? instance.startedAt ?? at);
    const { drive } = this.model;
    const tryNumber =
      drive && isStreaming(node.manifest) ? drive.countFailure(node.id, ranMs) : instance.tryNumber;
    return retryDelayMs(node.manifest, { dagId, runId, taskId: node.id, mapIndex, tryNumber });
  }
}

type InstanceKey = Pick<OutputWrite, "taskId" | "mapIndex">;

function lostError(reason: string): ErrorFacts {
  return { name: "AttemptLost", message: reason, stack: null, code: "TASK_ATTEMPT_LOST" };
}
