/**
 * One owned run in memory: its facts, its DAG version and the model that decides what is next. The actor does no I/O;
 * the job that owns it feeds it reports and stores what it decided. Whenever a store fails, the actor is thrown away
 * and loaded again: the database is its journal.
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
import type { SignalDraft } from "../../store/signal/signals.ts";
import type { AttemptWrite, SignalWrite } from "../../store/task/run-batch.ts";
import type { DeferralWrite, FiredDeferral, WaitEnd } from "../../store/trigger/deferrals.ts";
import { attemptWrite, stateSignal } from "../batch/attempt-write.ts";
import type { RunSubscriptions } from "../drive/run-subscriptions.ts";
import { recordEnd } from "./attempt-record.ts";
import type { EventTraces } from "./event-traces.ts";
import { runFacts } from "./run-facts.ts";
import type { DagVersion } from "./version-cache.ts";
import { deferralWrite } from "./waiting.ts";

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

export interface EndCircumstances extends Circumstances, Omit<EndTerms, "run"> {}

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

  /** The current attempt of `instance` has ended. false: the model ignored it, nothing happened. */
  end(instance: Instance, outcome: AttemptOutcome, terms: EndCircumstances): boolean {
    const before = attemptWrite(this.id, instance, terms.at);
    const end = attemptEnd(this.model, instance, outcome, { ...terms, run: this.facts });
    if (!this.model.apply(end, terms.at)) return false;
    recordEnd(this, instance, { before, end, outcome }, terms.traces);
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
    const { attempt, dirty, endedAt } = instance;
    // It ends and begins again in the same batch, whose rows tell only of the begin.
    if (dirty) traces.states.push(stateSignal(this.run, instance));
    if (attempt === null) return;
    traces.attempts.push(attemptWrite(this.id, instance, endedAt ?? at));
  }

  /** A ready instance that begins by waiting: no worker has to see it before its trigger fires. */
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
    this.#endWait(instance, result, now);
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

  /** Slots are counted by what the row says, always: a newer version may name another pool than the one it is in. */
  placeOf(instance: Instance): Place {
    if (instance.place) return instance.place;
    const { manifest } = instance.node;
    const counters = limitKeyOf(this.version.manifest, manifest);
    instance.place = { pool: manifest.pool, slots: manifest.poolSlots, limitKey: counters };
    return instance.place;
  }
}
