/**
 * One owned run in memory: its facts, its DAG version and the model that decides what is next. The actor does no I/O;
 * the job that owns it feeds it reports and stores what it decided. Whenever a store fails, the actor is thrown away
 * and loaded again: the database is its journal.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { RunFacts } from "@tradewind/sdk/program";
import type { AttemptOutcome } from "../execute/contract.ts";
import { type Instance, type InstanceRow, isTaskState, RunModel, retryDelayMs } from "../model/index.ts";
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

  /** Ends the run as failed, and with it what is under way; what had not started is skipped. */
  timeOut(now: number): boolean {
    this.isTimedOut = true;
    return this.model.apply({ type: "halted", at: now, reason: "the run timed out", active: "failed" }, now);
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
        if (retried) traces.attempts.push({ ...before, state: "failed", reason });
        const wanted = retried
          ? instance.node.manifest.callbacks.retry
          : instance.node.manifest.callbacks.failure;
        if (outcome.callbackPending && wanted)
          traces.callbacks.push({
            runId: this.id,
            taskId: report.taskId,
            mapIndex: report.mapIndex,
            event: retried ? "retry" : "failure",
            tryNumber: before.tryNumber,
            error: { ...outcome.error },
          });
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
    const applied = this.model.apply(event, how.at);
    if (applied) how.traces.attempts.push({ ...before, state: "failed", reason });
    return applied;
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
    instance.pid = row.pid;
  }
  return new RunActor(run, version, model);
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
