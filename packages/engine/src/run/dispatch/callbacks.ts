/**
 * Callbacks of tasks, groups and runs. Each is a row, written in the transaction of its event: it runs after the event is
 * stored, and if the job dies before, the next owner runs it.
 *
 * A callback is active from its submission until its row is deleted. Rows that are not active (the submission failed, the
 * executor stopped, the answer of the commit was lost) are found by `adopt` at a heartbeat and submitted again. A callback
 * that has run and could not be deleted stays active, and is deleted at the next heartbeat.
 */
import type { DeadlineCall, ErrorFacts } from "@tradewind/sdk/program";
import type { CallbackAssignment, Executor, ExecutorConfig } from "../../execute/contract.ts";
import { DEFAULT_QUEUE } from "../../model/index.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import { deleteAssignments } from "../../store/execute/assignments.ts";
import type { ServedDags } from "../../store/job/served-dags.ts";
import {
  ADOPT_LIMIT,
  adoptCallbacks,
  deletedCallbacks,
  loadCallbacks,
  loseCallback,
  type StoredCallback,
} from "../../store/notify/callbacks.ts";
import { endCallbacks } from "../../store/notify/deliveries.ts";
import { runFacts } from "../../store/run/run-row.ts";
import type { ExecutorRoom } from "../admit/executor-room.ts";
import type { VersionCache } from "../loaded/version-cache.ts";

export interface CallbacksOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly versions: Pick<VersionCache, "get">;
  readonly executors: Pick<ExecutorRoom, "of">;
  /** Only callbacks of these DAGs are adopted. Left out: all. */
  readonly dags?: ServedDags | undefined;
}

/** The delay before a callback that could not be run is tried again; doubled each time. */
const REST_MS = 5_000;
const LONGEST_REST_MS = 60_000;
const MAX_DEATHS = 3;

export class Callbacks {
  readonly #options: CallbacksOptions;
  /** Active callbacks with their executor; null: not submitted to it yet. */
  readonly #running = new Map<string, Executor | null>();
  /** Callbacks that have run and whose row is not deleted, with the error if they threw. */
  readonly #ran = new Map<string, string | null>();
  readonly #resting = new Map<string, { readonly restMs: number; readonly until: number }>();

  /** By active `onCancel`: how many of its processes died. */
  readonly #deaths = new Map<string, number>();

  constructor(options: CallbacksOptions) {
    this.#options = options;
  }

  /** The number of active callbacks that end with this process. */
  get localSize(): number {
    return this.#running
      .values()
      .filter((executor) => !executor?.remote)
      .toArray().length;
  }

  /** Never rejects: a callback that could not be submitted is adopted at a later heartbeat. */
  async submit(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    for (const id of ids) this.#running.set(id, null);
    const missing = new Set(ids);
    try {
      for (const row of await loadCallbacks(this.#options.database, ids)) {
        const config = await this.#configOf(row);
        missing.delete(row.id);
        this.#hand(row, config);
      }
      // Deleted with their runs.
      for (const id of missing) this.#forget(id);
    } catch (error) {
      for (const id of missing) this.#drop(id, error);
    }
  }

  /** Whether a submitted callback has not ended. */
  get areUnderWay(): boolean {
    return this.#running.size > 0;
  }

  /** At every sweep: adopts the callbacks of jobs that have ended, and those that this job dropped. Returns their number. */
  async adopt(jobId: number): Promise<number> {
    const { dags, database } = this.#options;
    if (this.#ran.size > 0) await this.#delete(new Map(this.#ran));
    // Deleted with their runs: no worker reports their end.
    if (this.#running.size > 0)
      for (const id of await deletedCallbacks(database, [...this.#running.keys()])) this.#forget(id);
    const now = performance.now();
    const resting = [...this.#resting].filter(([, { until }]) => until > now).map(([id]) => id);
    let sum = 0;
    for (let adopted = ADOPT_LIMIT; adopted === ADOPT_LIMIT; sum += adopted) {
      const ids = await adoptCallbacks(database, jobId, [...this.#running.keys(), ...resting], dags);
      await this.submit(ids);
      adopted = ids.length;
    }
    // Due and not adopted: deleted with its run, or adopted by another job.
    for (const [id, { until }] of this.#resting) if (until <= now && !this.#running.has(id)) this.#forget(id);
    return sum;
  }

  /** As `ended`, of a callback that a worker has run: its assignment is deleted first, so that another one can follow. */
  async endedRemotely(id: string, error: ErrorFacts | null): Promise<void> {
    try {
      if (error !== null) await deleteAssignments(this.#options.database, [id]);
      await this.ended(id, error);
    } catch (cause) {
      this.#drop(id, cause);
    }
  }

  /** The worker that ran it has died: another one runs it again, like an attempt. */
  async lost(id: string, reason: string): Promise<void> {
    try {
      if (await loseCallback(this.#options.database, id)) await this.submit([id]);
      else this.#forget(id);
    } catch (cause) {
      this.#drop(id, `${reason}; ${messageOf(cause)}`);
    }
  }

  /**
   * A callback that threw is not repeated: its error is in its log. A callback that was stopped or not started is repeated. So is
   * a failed deadline callback, after a delay, because deadlines are reported at least once.
   */
  async ended(id: string, error: ErrorFacts | null): Promise<void> {
    const { logger } = this.#options;
    if (error?.code === "EXECUTOR_STOPPED" || error?.name === "DispatchError")
      return this.#drop(id, error.message);
    if (error?.code === "TASK_PROCESS_DIED" && this.#mayRunAgain(id)) return this.#drop(id, error.message);
    if (error) logger.warn("callback failed", { callback: id, error: error.message });
    const ran = new Map([[id, error === null ? null : error.message]]);
    this.#ran.set(id, error === null ? null : error.message);
    await this.#delete(ran).catch((cause) =>
      logger.warn("cannot delete a callback that has run, retrying at the next heartbeat", {
        callback: id,
        error: String(cause),
      }),
    );
  }

  /** An `onCancel` whose process was killed is repeated; one that keeps killing its process is given up. */
  #mayRunAgain(id: string): boolean {
    const deaths = this.#deaths.get(id);
    if (deaths === undefined || deaths >= MAX_DEATHS) return false;
    this.#deaths.set(id, deaths + 1);
    return true;
  }

  async #configOf({ task_id: taskId, version_id: id }: StoredCallback): Promise<ExecutorConfig | undefined> {
    if (taskId === null || id === null) return undefined;
    const { database, versions } = this.#options;
    return (await versions.get(database, id)).graph.byId.get(taskId)?.manifest.executorConfig;
  }

  #hand(row: StoredCallback, config: ExecutorConfig | undefined): void {
    if (row.event === "cancel" && !this.#deaths.has(row.id)) this.#deaths.set(row.id, 0);
    const callback: CallbackAssignment = {
      kind: "callback",
      id: row.id,
      bundleHash: row.bundle_hash,
      queue: row.queue ?? DEFAULT_QUEUE,
      ...(config && { config }),
      taskId: row.task_id,
      groupId: row.group_id,
      ...(row.group_id !== null && row.map_index !== null && { mapIndex: row.map_index }),
      event: row.event,
      deadline: deadlineCall(row),
      wait: row.wait,
      tryNumber: row.try_number,
      error: row.error as ErrorFacts | null,
      run: runFacts(row),
      dagRunId: row.dag_run_id,
      conf: row.conf,
      logKey: logKey(row),
    };
    const executor = this.#options.executors.of(row.executor);
    this.#running.set(row.id, executor);
    executor.submit([callback]);
  }

  async #delete(ran: ReadonlyMap<string, string | null>): Promise<void> {
    await endCallbacks(this.#options.database, ran);
    for (const id of ran.keys()) this.#forget(id);
  }

  #drop(id: string, error: unknown): void {
    const before = this.#resting.get(id)?.restMs ?? REST_MS / 2;
    const restMs = Math.min(before * 2, LONGEST_REST_MS);
    this.#resting.set(id, { restMs, until: performance.now() + restMs });
    this.#running.delete(id);
    this.#options.logger.warn("callback could not be submitted, retrying", {
      callback: id,
      restMs,
      error: String(error),
    });
  }

  #forget(id: string): void {
    this.#deaths.delete(id);
    this.#running.delete(id);
    this.#ran.delete(id);
    this.#resting.delete(id);
  }
}

function deadlineCall(row: StoredCallback): DeadlineCall | null {
  const { deadline_due_at: dueAt, deadline_ordinal: ordinal, deadline_place: action } = row;
  if (dueAt === null || ordinal === null || action === null) return null;
  return { ordinal, action, dueAt: dueAt.toISOString() };
}

/** The log of a task's callback is in the folder of its try. */
function logKey(row: StoredCallback): string {
  const { dag_id: dagId, dag_run_id: runId, group_id: group, id, map_index: mapIndex, task_id: task } = row;
  const folder = `${dagId}/${runId}`;
  if (task !== null && mapIndex !== null && row.event !== "deadline")
    return `${folder}/${task}/${mapIndex}/${row.try_number}-${id}.log`;
  const item = task === null && mapIndex !== null ? `-${mapIndex}` : "";
  return `${folder}/callbacks/${task ?? group ?? "run"}${item}-${id}.log`;
}
