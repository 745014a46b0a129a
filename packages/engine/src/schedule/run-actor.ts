/**
 * One owned run in memory: its facts, its DAG version and the model that decides what is next. The actor does no I/O;
 * the job that owns it feeds it reports and stores what it decided. Whenever a store fails, the actor is thrown away
 * and loaded again: the database is its journal.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { ErrorFacts, RunFacts } from "@tradewind/sdk/program";
import type { AttemptOutcome } from "../execute/contract.ts";
import {
  type Instance,
  type InstanceRow,
  isTaskState,
  OCCUPYING,
  type Place,
  RunModel,
  retryDelayMs,
} from "../model/index.ts";
import { limitKey } from "../store/limit-key.ts";
import type { AttemptWrite, CallbackWrite, OutputWrite } from "../store/run-batch.ts";
import type { ClaimedRun } from "../store/run-claim.ts";
import type { LoadedInstance } from "../store/run-load.ts";
import { runFacts } from "./run-facts.ts";
import type { DagVersion } from "./version-cache.ts";

/** What a report leaves behind besides state: rows for the batch. */
export interface Traces {
  readonly attempts: AttemptWrite[];
  readonly outputs: OutputWrite[];
  readonly callbacks: Omit<CallbackWrite, "id">[];
}

export function noTraces(): Traces {
  return { attempts: [], outputs: [], callbacks: [] };
}

export interface Ended {
  readonly taskId: string;
  readonly mapIndex: number;
  readonly attempt: string;
  readonly at: number;
  readonly outcome: AttemptOutcome;
}

export class RunActor {
  readonly run: ClaimedRun;
  readonly version: DagVersion;
  readonly model: RunModel;
  readonly facts: RunFacts;
  /** The earliest moment this run has a timer for. */
  notedAt = Number.POSITIVE_INFINITY;
  /** When the run times out, in milliseconds. */
  readonly deadline: number | null;
  isPaused: boolean;
  isTimedOut = false;

  constructor(run: ClaimedRun, version: DagVersion, model: RunModel) {
    this.run = run;
    this.version = version;
    this.model = model;
    this.facts = runFacts(run);
    this.isPaused = run.is_paused;
    const { runTimeoutMs } = version.manifest;
    this.deadline = runTimeoutMs === null || !run.started_at ? null : run.started_at.getTime() + runTimeoutMs;
  }

  isLate(now: number): boolean {
    return !this.isTimedOut && this.deadline !== null && this.deadline <= now;
  }

  /** Ends the run as failed, and with it what is under way; what had not started is skipped. Answers who left slots. */
  timeOut(now: number): Instance[] {
    this.isTimedOut = true;
    const occupying = [...this.model.instances()].filter((instance) => OCCUPYING.has(instance.state));
    this.model.apply({ type: "halted", at: now, reason: "the run timed out", active: "failed" }, now);
    return occupying.filter((instance) => !OCCUPYING.has(instance.state));
  }

  /** When something is due in this run by itself: a retry, its deadline. Infinity: nothing. */
  nextMoment(): number {
    const never = Number.POSITIVE_INFINITY;
    return Math.min(this.model.nextRetryAt() ?? never, this.isTimedOut ? never : (this.deadline ?? never));
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
    if (instance.state === "restarting")
      return this.lost(instance, "restarted by hand", { traces, at: report.at, budget: null });
    switch (outcome.kind) {
      case "success": {
        const event = { type: "succeeded", ...key, at: report.at, skip: outcome.skip } as const;
        if (!this.model.apply(event, report.at)) return false;
        if (outcome.output !== undefined)
          traces.outputs.push(this.#output(key, "return_value", outcome.output));
        if (outcome.skip.length > 0) traces.outputs.push(this.#output(key, "tradewind.skip", outcome.skip));
        return true;
      }
      case "skipped":
        return this.model.apply(
          { type: "skipped", ...key, at: report.at, reason: outcome.reason },
          report.at,
        );
      case "failed": {
        const reason = outcome.error.code
          ? `${outcome.error.code}: ${outcome.error.message}`
          : `${outcome.error.name}: ${outcome.error.message}`;
        const retryAt = report.at + this.#retryDelay(instance);
        const event = {
          type: "failed",
          ...key,
          at: report.at,
          retry: outcome.retry,
          retryAt,
          reason,
        } as const;
        if (!this.model.apply(event, report.at)) return false;
        const retried = instance.state === "up_for_retry" || instance.state === "scheduled";
        if (retried) traces.attempts.push({ ...before, state: "failed", reason: tidy(reason) });
        if (outcome.callbackPending)
          this.#callback(retried ? "retry" : "failure", instance, traces, outcome.error);
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
    const before = attemptWrite(this.id, instance, how.at);
    const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt };
    const retryAt = how.at + this.#retryDelay(instance);
    const event = { type: "lost", ...key, at: how.at, reason, budget: how.budget, retryAt } as const;
    if (!this.model.apply(event, how.at)) return false;
    if (instance.state === "failed") this.#callback("failure", instance, how.traces, lostError(reason));
    else how.traces.attempts.push({ ...before, state: "failed", reason: tidy(reason) });
    if (instance.state === "up_for_retry") this.#callback("retry", instance, how.traces, lostError(reason));
    return true;
  }

  /** Slots are counted by what the row says, always: a newer version may name another pool than the one it is in. */
  placeOf(instance: Instance): Place {
    if (instance.place) return instance.place;
    const { pool, poolSlots, maxActivePerDag, taskId } = instance.node.manifest;
    const counter = maxActivePerDag === null ? null : limitKey(this.run.dag_id, taskId);
    instance.place = { pool, slots: poolSlots, limitKey: counter };
    return instance.place;
  }

  /** A callback that the attempt's own process could not run. */
  #callback(event: "failure" | "retry", instance: Instance, traces: Traces, error: ErrorFacts): void {
    const { node, mapIndex, tryNumber } = instance;
    if (!node.manifest.callbacks[event]) return;
    traces.callbacks.push({
      runId: this.id,
      taskId: node.id,
      mapIndex,
      event,
      tryNumber,
      error: { ...error },
    });
  }

  #output(key: { taskId: string; mapIndex: number }, name: OutputWrite["key"], value: Json): OutputWrite {
    return { runId: this.id, taskId: key.taskId, mapIndex: key.mapIndex, key: name, value };
  }

  #retryDelay(instance: Instance): number {
    const { dag_id: dagId, run_id: runId } = this.run;
    const { node, mapIndex, tryNumber } = instance;
    return retryDelayMs(node.manifest, { dagId, runId, taskId: node.id, mapIndex, tryNumber });
  }
}

export function newActor(run: ClaimedRun, version: DagVersion): RunActor {
  const rows = version.graph.nodes.map(
    (node): InstanceRow => ({
      taskId: node.id,
      mapIndex: -1,
      state: "none",
      tryNumber: 0,
      maxTries: node.manifest.retries,
      attempt: null,
      retryAt: null,
      infraLosses: 0,
    }),
  );
  return new RunActor(run, version, RunModel.load(version.graph, rows, new Map()));
}

export interface Journal {
  readonly instances: readonly LoadedInstance[];
  readonly skips: ReadonlyMap<string, readonly string[]>;
}

export function loadedActor(run: ClaimedRun, version: DagVersion, journal: Journal): RunActor {
  const rows = journal.instances.map(
    (row): InstanceRow => ({
      taskId: row.task_id,
      mapIndex: row.map_index,
      state: isTaskState(row.state) ? row.state : "none",
      tryNumber: row.try_number,
      maxTries: row.max_tries,
      attempt: row.attempt,
      retryAt: row.retry_at?.getTime() ?? null,
      infraLosses: row.infra_losses,
    }),
  );
  const model = RunModel.load(version.graph, rows, journal.skips);
  for (const row of journal.instances) {
    const instance = model.get(row.task_id, row.map_index);
    if (!instance) continue;
    instance.scheduledAt = row.scheduled_at?.getTime() ?? null;
    instance.queuedAt = row.queued_at?.getTime() ?? null;
    instance.startedAt = row.started_at?.getTime() ?? null;
    instance.endedAt = row.ended_at?.getTime() ?? null;
    instance.place = { pool: row.pool, slots: row.pool_slots, limitKey: row.limit_key };
    instance.pid = row.pid;
  }
  return new RunActor(run, version, model);
}

function lostError(reason: string): ErrorFacts {
  return { name: "AttemptLost", message: reason, stack: null, code: "TASK_ATTEMPT_LOST" };
}

/** PostgreSQL takes no NUL in text. */
function tidy(reason: string): string {
  return reason.replaceAll("\u0000", "");
}

function attemptWrite(runId: number, instance: Instance, endedAt: number): AttemptWrite {
  return {
    attempt: instance.attempt ?? "",
    runId,
    taskId: instance.node.id,
    mapIndex: instance.mapIndex,
    tryNumber: instance.tryNumber,
    state: instance.state,
    scheduledAt: instance.scheduledAt,
    queuedAt: instance.queuedAt,
    startedAt: instance.startedAt,
    endedAt,
    pid: instance.pid,
    reason: null,
  };
}
