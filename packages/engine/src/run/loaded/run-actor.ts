/**
 * One owned run in memory: its facts, its DAG version and the model that decides what is next. The actor does no I/O: the
 * job that owns it applies reports and stores the decisions. If a store fails, the actor is dropped and loaded again.
 */
import { randomUUID } from "node:crypto";
import type { RunFacts } from "@tradewind/sdk/program";
import {
  type AttemptOutcome,
  attemptEnd,
  deferralOf,
  type EndTerms,
  type Instance,
  type Place,
  type RunEnding,
  type RunModel,
  resultOfFired,
  resultOfTimeout,
  type TriggerOutcome,
  type WaitResult,
  waitOf,
} from "../../model/index.ts";
import type { DeadLetterWrite } from "../../store/drive/run-drives.ts";
import type { OutputWrite } from "../../store/output/run-outputs.ts";
import { limitKeyOf } from "../../store/pool/limit-key.ts";
import type { ClaimedRun } from "../../store/run/run-claim.ts";
import { runFacts } from "../../store/run/run-row.ts";
import type { EffectWrite } from "../../store/signal/signal-effects.ts";
import type { SignalDraft } from "../../store/signal/signals.ts";
import { type AttemptWrite, attemptWrite } from "../../store/task/ended-attempts.ts";
import type { SignalWrite } from "../../store/task/run-batch.ts";
import { stateSignal } from "../../store/task/state-signals.ts";
import type { DeferralWrite, FiredDeferral, WaitEnd } from "../../store/trigger/deferrals.ts";
import type { RunSubscriptions } from "../drive/run-subscriptions.ts";
import { recordEnd } from "./attempt-record.ts";
import type { EventTraces } from "./event-traces.ts";
import { resumeWrites } from "./signal-causes.ts";
import type { DagVersion } from "./version-cache.ts";
import { deferralWrite } from "./waiting.ts";

/** The rows of a batch besides the states of instances. */
export interface Traces extends EventTraces {
  readonly attempts: AttemptWrite[];
  readonly outputs: OutputWrite[];
  readonly signals: SignalDraft[];
  /** Signals of states that no row of the batch has: a task ended and started again in the same batch. */
  readonly states: SignalWrite[];
  readonly deferrals: DeferralWrite[];
  readonly waitEnds: WaitEnd[];
  readonly deadLetters: DeadLetterWrite[];
  readonly effects: EffectWrite[];
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
    effects: [],
  };
}

/** The time of an event, and the rows that it adds to. */
interface Circumstances {
  readonly at: number;
  readonly traces: Traces;
}

export interface EndCircumstances extends Circumstances, Omit<EndTerms, "run"> {}

export class RunActor {
  readonly run: ClaimedRun;
  readonly version: DagVersion;
  readonly model: RunModel;
  /** null: the run is not signal-driven. */
  readonly subscriptions: RunSubscriptions | null;
  readonly facts: RunFacts;
  /** The earliest timer of this run. */
  timerAt = Number.POSITIVE_INFINITY;
  /** When the run times out, in milliseconds. */
  readonly deadline: number | null;
  isPaused: boolean;
  /** Set if the run was ended before its tasks: only teardowns still run. */
  ending: RunEnding | null;
  /** The number of maps whose lengths are being read: the run does not end before that. */
  unmeasured = 0;
  /** When the next try of the failed run starts, as stored. */
  retryAt: number | null;

  /** No task is running: an earlier date may need its slot (see store/run/run-slots.ts). */
  get onlyWaitsForPast(): boolean {
    const { active, held } = this.model.counts;
    return this.version.isGated && active === 0 && held > 0;
  }

  constructor(
    run: ClaimedRun,
    version: DagVersion,
    parts: { model: RunModel; subscriptions: RunSubscriptions | null },
  ) {
    this.run = run;
    this.version = version;
    this.model = parts.model;
    this.subscriptions = parts.subscriptions;
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

  /** When the next timer of this run is due: a retry, a tick, the timeout of a wait or of the run. Infinity: none. */
  nextMoment(): number {
    const never = Number.POSITIVE_INFINITY;
    const deadline = this.ending ? never : (this.deadline ?? never);
    const { subscriptions, model } = this;
    const question = subscriptions?.nextQuestionAt() ?? never;
    const retry = Math.min(model.nextRetryAt() ?? never, this.retryAt ?? never);
    return Math.min(retry, model.nextDeadline() ?? never, question, deadline);
  }

  get id(): number {
    return this.run.id;
  }

  /** The current attempt of `instance` has ended. false: the model ignored it, nothing happened. */
  end(instance: Instance, outcome: AttemptOutcome, terms: EndCircumstances): boolean {
    const before = attemptWrite(this.id, instance, terms.at);
    const end = attemptEnd(this.model, instance, outcome, { ...terms, run: this.facts });
    if (!this.model.apply(end, terms.at)) return false;
    recordEnd(this, instance, { before, end, outcome }, terms.traces);
    return true;
  }

  /** Restarts finished tasks that were asked to start again, if they may by now. true: some have. */
  beginAgain({ at, traces }: Circumstances): boolean {
    return this.model.beginAgain(at, (instance) => this.#archive(instance, { at, traces }));
  }

  /** The same for groups whose next try is due. */
  beginGroups({ at, traces }: Circumstances): boolean {
    const again = this.model.groups?.begin(at) ?? [];
    return this.model.repeat(again, at, (instance) => this.#archive(instance, { at, traces }));
  }

  #archive(instance: Instance, { at, traces }: Circumstances): void {
    const { attempt, dirty, endedAt } = instance;
    // The instance ends and starts again in the same batch, whose row has only the start.
    if (dirty) traces.states.push(stateSignal(this.run, instance));
    if (attempt === null) return;
    traces.attempts.push(attemptWrite(this.id, instance, endedAt ?? at));
  }

  /** A ready instance that starts by waiting: it needs no worker before its trigger fires. */
  startWaiting(instance: Instance, now: Circumstances & { readonly keepsSlot: boolean }): boolean {
    const start = instance.node.manifest.startTrigger;
    if (!start) return false;
    const deferral = deferralOf(start);
    const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt: randomUUID() };
    const wait = waitOf(deferral, now.at, now.keepsSlot);
    if (!this.model.apply({ type: "startedWaiting", ...key, at: now.at, wait }, now.at)) return false;
    now.traces.deferrals.push(deferralWrite(this, instance, { at: now.at, ...key }, deferral));
    return true;
  }

  /** The trigger fired. null: the wait has ended already, and its row is only marked as ended. */
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
    now.traces.effects.push(...resumeWrites(fired, instance.tryNumber));
    this.#endWait(instance, result, now);
    return instance;
  }

  /** A wait has timed out. */
  overdue(instance: Instance, now: Circumstances): void {
    const { attempt, wait, startedAt, node } = instance;
    if (attempt === null || wait === null) return;
    const result = resultOfTimeout(wait, node.manifest, { at: now.at, startedAt });
    // A function that resumes handles the timeout itself, so its onCancel does not run.
    const isCancelled = result.kind !== "resume";
    now.traces.waitEnds.push({ attempt, kind: "timeout", mustBeUnfired: true, isCancelled });
    this.#endWait(instance, result, now);
  }

  #endWait(instance: Instance, result: WaitResult, now: Circumstances): void {
    if (result.kind !== "resume") {
      this.end(instance, result, now);
      return;
    }
    const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt: instance.attempt ?? "" };
    this.model.apply({ type: "resumed", ...key }, now.at);
  }

  /** Slots are counted by the pool of the row: a newer version may name another pool. */
  placeOf(instance: Instance): Place {
    if (instance.place) return instance.place;
    const { manifest } = instance.node;
    const counters = limitKeyOf(this.version.manifest, manifest);
    instance.place = { pool: manifest.pool, slots: manifest.poolSlots, limitKey: counters };
    return instance.place;
  }
}
