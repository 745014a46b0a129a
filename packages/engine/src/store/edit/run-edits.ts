/**
 * What people do to runs by hand: create, clear, mark, cancel, delete. The API decides *which* rows an edit means
 * (it resolves names, graph closures and date ranges) and what the caller is told; an implementation changes them,
 * under the run's lock, in the transaction it is given. The same transaction carries the audit row and the
 * idempotency key: an edit is either done, recorded and answerable again, or it never happened.
 *
 * Every method judges states only after it has locked the runs, and bumps the generation of each run it changes, so
 * that the owner reloads. With `dryRun` it changes nothing and answers what it would have changed.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import type { ParentPlace } from "../run/child-runs.ts";

export interface RunEdits {
  createRun(tx: Connection, input: CreateRunInput): Promise<CreateRunResult>;
  clearTasks(tx: Connection, edit: ClearEdit): Promise<ClearResult>;
  markTasks(tx: Connection, edit: MarkEdit): Promise<MarkResult>;
  /**
   * "success" and "failed" end the run and what is unfinished in it; if teardowns are left to run, it ends when those have, or
   * when it is asked for again. "queued" lets the scheduler take it up again; of its tasks, only those begin again whose ends
   * do not follow any more. `found` false: no such run.
   */
  markRun(tx: Connection, dagRunId: number, state: "queued" | "success" | "failed"): Promise<RunEditResult>;
  /** Ends a queued or running run as failed, with the reason, as `markRun` does; `changed` false when it had already ended. */
  cancelRun(tx: Connection, dagRunId: number, reason: string): Promise<RunEditResult>;
  /** Refuses ("active") a run that is running: it must be cancelled first. */
  deleteRun(tx: Connection, dagRunId: number): Promise<"deleted" | "active" | "not_found">;
}

export interface CreateRunInput {
  readonly dagId: string;
  /** null: the implementation names it, e.g. `manual__<run_after, ISO>` and something random when there is no logical date. */
  readonly runId: string | null;
  readonly logicalDate: Date | null;
  /** Both or neither; neither with a logical date: derived from the DAG's schedule. */
  readonly interval: { readonly start: Date; readonly end: Date } | null;
  /** null: now. */
  readonly runAfter: Date | null;
  /** Already checked against the current version's `paramsSchema`. */
  readonly conf: { readonly [key: string]: Json };
  readonly note: string | null;
  /** "operator": by a task of another run. */
  readonly triggeredBy: "rest_api" | "cli" | "ui" | "operator";
  readonly triggeringUser: string | null;
  /** The task that asks for it. */
  readonly parent?: ParentPlace;
}

export type CreateRunResult =
  | { readonly kind: "created"; readonly dagRunId: number }
  /** Another run has this run id, or this logical date. Must not abort the transaction (ON CONFLICT DO NOTHING). */
  | { readonly kind: "conflict"; readonly on: "run_id" | "logical_date"; readonly existingRunId: string }
  /** No such DAG, or its file is gone (`dag.is_stale`), or it never had a good version. */
  | { readonly kind: "unknown_dag" | "stale_dag" };

/** One instance, or with `mapIndex` null all instances of a task. */
export interface TaskSelection {
  readonly taskId: string;
  readonly mapIndex: number | null;
}

/** Instances of one run; `tasks` null means all of them. Graph closures are already applied. */
export interface RunSelection {
  readonly dagRunId: number;
  readonly tasks: readonly TaskSelection[] | null;
}

export interface InstanceKey {
  readonly dagRunId: number;
  readonly taskId: string;
  readonly mapIndex: number;
}

/** What has to begin again with the chosen instances does so, too: see model/run/implied-ends.ts. */
export interface ClearEdit {
  readonly runs: readonly RunSelection[];
  /** "failed": failed and upstream_failed; "running": running, queued, deferred...; "new": tasks the run has no rows for. */
  readonly only: "any" | "failed" | "running" | "new";
  /** Ended runs go back to `queued` and are taken up again; false leaves the run's own state alone. */
  readonly resetRuns: boolean;
  /** Move the runs to the DAG's current version. */
  readonly latestVersion: boolean;
  /** Do nothing at all when one of the chosen instances is running. */
  readonly refuseRunning: boolean;
  /** Set on every cleared instance; undefined leaves notes alone. */
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

/** The instances that changed (or would change) their state: those that were marked, and those that begin again. */
export interface MarkResult {
  readonly affected: readonly InstanceKey[];
}

export interface RunEditResult {
  readonly found: boolean;
  readonly changed: boolean;
}
