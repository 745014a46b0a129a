/**
 * Manual edits of runs: create, clear, mark, cancel, delete. The API decides *which* rows an edit means (it resolves
 * names, graph closures and date ranges) and builds the response; the implementation changes them, under the run's lock,
 * in the caller's transaction. The same transaction stores the audit row and the idempotency key, so that edit, record
 * and response are stored together or not at all.
 *
 * Every method reads states only after it has locked the runs, and raises the generation of each run it changes, so that
 * the owner reloads. With `dryRun` it changes nothing and returns what it would have changed.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import type { ParentPlace } from "../run/child-runs.ts";

export interface RunEdits {
  createRun(tx: Connection, input: CreateRunInput): Promise<CreateRunResult>;
  clearTasks(tx: Connection, edit: ClearEdit): Promise<ClearResult>;
  markTasks(tx: Connection, edit: MarkEdit): Promise<MarkResult>;
  /**
   * "success" and "failed" end the run and its unfinished instances; if teardowns still have to run, the run ends after
   * them, or when the call is repeated. "queued" makes the scheduler continue the run; of its tasks, only those restart
   * whose implied end no longer holds. `found` false: no such run.
   */
  markRun(tx: Connection, dagRunId: number, state: "queued" | "success" | "failed"): Promise<RunEditResult>;
  /** Ends a queued or running run as failed, with the reason, as `markRun` does; `changed` false when it had already ended. */
  cancelRun(tx: Connection, dagRunId: number, reason: string): Promise<RunEditResult>;
  /** Rejects ("active") a running run: it must be cancelled first. */
  deleteRun(tx: Connection, dagRunId: number): Promise<"deleted" | "active" | "not_found">;
}

export interface CreateRunInput {
  readonly dagId: string;
  /** null: generated, e.g. `manual__<run_after, ISO>`, with a random suffix without a logical date. */
  readonly runId: string | null;
  readonly logicalDate: Date | null;
  /** Both or neither; without it, derived from the DAG's schedule if there is a logical date. */
  readonly interval: { readonly start: Date; readonly end: Date } | null;
  /** null: now. */
  readonly runAfter: Date | null;
  /** Already checked against the current version's `paramsSchema`. */
  readonly conf: { readonly [key: string]: Json };
  readonly note: string | null;
  /** "operator": a task of another run. */
  readonly triggeredBy: "rest_api" | "cli" | "ui" | "operator";
  readonly triggeringUser: string | null;
  /** The task that creates the run. */
  readonly parent?: ParentPlace;
}

export type CreateRunResult =
  | { readonly kind: "created"; readonly dagRunId: number }
  /** Another run has this run id or logical date. Must not abort the transaction (ON CONFLICT DO NOTHING). */
  | { readonly kind: "conflict"; readonly on: "run_id" | "logical_date"; readonly existingRunId: string }
  /** No such DAG, or its file is deleted (`dag.is_stale`), or it never had a valid version. */
  | { readonly kind: "unknown_dag" | "stale_dag" };

/** One instance, or with `mapIndex` null all instances of a task. */
export interface TaskSelection {
  readonly taskId: string;
  readonly mapIndex: number | null;
}

/** Instances of one run; `tasks` null: all. Graph closures are already applied. */
export interface RunSelection {
  readonly dagRunId: number;
  readonly tasks: readonly TaskSelection[] | null;
}

export interface InstanceKey {
  readonly dagRunId: number;
  readonly taskId: string;
  readonly mapIndex: number;
}

/** Instances that must restart with the chosen ones are also cleared: see model/run/implied-ends.ts. */
export interface ClearEdit {
  readonly runs: readonly RunSelection[];
  /** "failed": failed and upstream_failed; "running": running, queued, deferred...; "new": tasks the run has no rows for. */
  readonly only: "any" | "failed" | "running" | "new";
  /** Ended runs return to `queued` and continue; false: the run's state does not change. */
  readonly resetRuns: boolean;
  /** Move the runs to the DAG's current version. */
  readonly latestVersion: boolean;
  /** Do nothing if one of the chosen instances is running. */
  readonly refuseRunning: boolean;
  /** Set on every cleared instance; undefined: notes stay. */
  readonly note?: string | null;
  readonly dryRun: boolean;
}

export type ClearResult =
  | { readonly kind: "cleared"; readonly affected: readonly InstanceKey[] }
  | { readonly kind: "running"; readonly instance: InstanceKey };

export interface MarkEdit {
  readonly runs: readonly RunSelection[];
  readonly state: "success" | "failed" | "skipped";
  readonly dryRun: boolean;
}

/** The instances that changed (or would change) their state: the marked ones, and those that restart. */
export interface MarkResult {
  readonly affected: readonly InstanceKey[];
}

export interface RunEditResult {
  readonly found: boolean;
  readonly changed: boolean;
}
