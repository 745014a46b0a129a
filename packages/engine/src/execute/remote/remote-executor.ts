/**
 * An executor whose attempts run on other machines and outlive the scheduler. It stores each assignment, then launches it.
 * Workers claim assignments and store their reports (store/execute); the run's owner reads these, so nothing is reported
 * here but the end of assignments that never ran.
 *
 * If this process dies before an assignment is stored, the next owner of the run finds a queued attempt without one, and
 * starts another. If it dies after that, the next owner adopts the attempt and launches it again.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { LogWriter } from "../../log/log-writer.ts";
import type { SecretBox } from "../../secret/secret-box.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import {
  abandonAssignments,
  cancelAssignments,
  insertAssignments,
  type NewAssignment,
} from "../../store/execute/assignments.ts";
import { dispatchFacts } from "../attempt/end-errors.ts";
import type {
  AdoptedAttempt,
  Assignment,
  CancelTerms,
  Executor,
  ExecutorEvent,
  RemoteAttempts,
} from "../contract.ts";
import type { Launcher, LaunchRequest } from "./launcher.ts";
import { launcherHost } from "./launcher-host.ts";
import { WriteQueue } from "./write-queue.ts";

export interface RemoteExecutorOptions {
  readonly name: string;
  readonly type: string;
  readonly database: Database;
  readonly launcher: Launcher;
  /** Maximum number of attempts in flight, running or waiting for a worker. */
  readonly parallelism: number;
  readonly logger: Logger;
  readonly logs: LogWriter;
  readonly secretBox: SecretBox;
  /** Cancels were stored: the API servers have to notify workers. */
  readonly onCancels: () => void;
}

const ABANDONED = { reason: "the run has ended or has another owner" } satisfies CancelOrder;

/** A stored cancel, as the worker receives it. */
export type CancelOrder = CancelTerms & { readonly reason: string };

export class RemoteExecutor implements Executor, RemoteAttempts {
  readonly name: string;
  readonly type: string;
  readonly #options: RemoteExecutorOptions;
  readonly #inFlight = new Set<string>();
  readonly #inserts: WriteQueue<Assignment>;
  readonly #cancels: WriteQueue<{ readonly assignment: string; readonly order: CancelOrder }>;
  /** Submitted and not stored yet. */
  readonly #unstored = new Map<string, Assignment>();
  #report: (event: ExecutorEvent) => void = () => {};

  constructor(options: RemoteExecutorOptions) {
    const { logger, name, type } = options;
    this.name = name;
    this.type = type;
    this.#options = options;
    this.#inserts = new WriteQueue({
      write: (batch) => this.#insert(batch),
      failed: (assignment, error, isTransient) => this.#notStored(assignment, error, isTransient),
      logger,
      what: "store assignments",
    });
    this.#cancels = new WriteQueue({
      write: (batch) => this.#cancel(batch),
      // The workers of superseded attempts find out with their next heartbeat.
      failed: () => {},
      logger,
      what: "cancel assignments",
    });
  }

  get remote(): RemoteAttempts {
    return this;
  }

  async start(report: (event: ExecutorEvent) => void): Promise<void> {
    this.#report = report;
    await this.#options.launcher.start(launcherHost(this.#options));
  }

  submit(assignments: readonly Assignment[]): void {
    for (const assignment of assignments) {
      if (assignment.kind === "attempt") this.#inFlight.add(assignment.id);
      this.#unstored.set(assignment.id, assignment);
      this.#inserts.add(assignment);
    }
  }

  cancel(attempt: string, reason: string, how: CancelTerms = {}): void {
    const unstored = this.#unstored.get(attempt);
    if (unstored === undefined) this.#cancels.add({ assignment: attempt, order: { ...how, reason } });
    else {
      this.#unstored.delete(attempt);
      queueMicrotask(() => this.#neverRan(attempt, { ...how, reason }));
    }
  }

  isStored(attempt: string): boolean {
    return this.#inFlight.has(attempt) && !this.#unstored.has(attempt);
  }

  adopt(attempts: readonly AdoptedAttempt[]): void {
    for (const { id } of attempts) this.#inFlight.add(id);
    // The former owner may have died before it launched these.
    const unclaimed = attempts.filter(({ isClaimed }) => !isClaimed);
    if (unclaimed.length > 0) this.#options.launcher.launch(unclaimed);
  }

  abandon(attempts: readonly string[]): void {
    for (const attempt of attempts) this.#inFlight.delete(attempt);
    const { database, logger, onCancels } = this.#options;
    void abandonAssignments(database, attempts, ABANDONED)
      .then(onCancels)
      // Their workers find out with their next heartbeat.
      .catch((error) => logger.warn("cannot stop abandoned attempts", { error: messageOf(error) }));
  }

  forget(attempts: readonly string[]): void {
    for (const attempt of attempts) this.#inFlight.delete(attempt);
  }

  freeSlots(): number {
    return Math.max(0, this.#options.parallelism - this.#inFlight.size);
  }

  slots(): { readonly slots: number | null; readonly free: number } {
    return { slots: this.#options.parallelism, free: this.freeSlots() };
  }

  problem(): string | null {
    return this.#options.launcher.problem?.() ?? null;
  }

  /** Attempts continue. */
  async stop(): Promise<void> {
    await Promise.all([this.#inserts.close(), this.#cancels.close()]);
    await this.#options.launcher.stop();
  }

  async #insert(batch: readonly Assignment[]): Promise<void> {
    const wanted = batch.filter(({ id }) => this.#unstored.has(id));
    if (wanted.length === 0) return;
    await insertAssignments(
      this.#options.database,
      wanted.map((assignment) => rowOf(assignment, this.name)),
    );
    const requests: LaunchRequest[] = [];
    for (const assignment of wanted) {
      // Cancelled meanwhile: the row is there, so the cancel is stored, too.
      if (this.#unstored.delete(assignment.id)) requests.push(requestOf(assignment));
      else this.#cancels.add({ assignment: assignment.id, order: ABANDONED });
    }
    this.#options.launcher.launch(requests);
  }

  async #cancel(
    batch: readonly { readonly assignment: string; readonly order: CancelOrder }[],
  ): Promise<void> {
    const { database, launcher, onCancels } = this.#options;
    const orders = new Map(batch.map(({ assignment, order }) => [assignment, order]));
    const unheld = await cancelAssignments(database, orders as unknown as Map<string, Json>);
    if (unheld.length > 0) launcher.withdraw?.(unheld);
    for (const id of unheld) this.#neverRan(id, orders.get(id) ?? ABANDONED);
    if (unheld.length < orders.size) onCancels();
  }

  /** If the database was away until the executor was stopped, the assignment is started again by the next owner. */
  #notStored({ id, kind }: Assignment, error: unknown, isTransient: boolean): void {
    this.#unstored.delete(id);
    const facts = dispatchFacts(error);
    if (kind === "callback") this.#report({ type: "callbackEnded", callbackId: id, error: facts });
    else if (kind === "reaction")
      this.#report({ type: "reactionEnded", reactionId: id, action: null, error: facts });
    else {
      const lost = { kind: "lost", reason: facts.message } as const;
      const outcome = isTransient ? lost : ({ kind: "failed", error: facts, retry: true } as const);
      this.#report({ type: "ended", attempt: id, at: Date.now(), outcome });
    }
  }

  #neverRan(attempt: string, { isLost, reason }: CancelOrder): void {
    if (!this.#inFlight.has(attempt)) return;
    const outcome = isLost ? ({ kind: "lost", reason } as const) : ({ kind: "cancelled" } as const);
    this.#report({ type: "ended", attempt, at: Date.now(), outcome });
  }
}

/** The config is for the executor, not for the worker. */
function rowOf({ config, ...assignment }: Assignment, executor: string): NewAssignment {
  const { id, kind, queue, taskId } = assignment;
  return {
    id,
    kind,
    // The run of a cancelled wait may be deleted.
    dagRunId: assignment.kind === "callback" && assignment.event === "cancel" ? null : assignment.dagRunId,
    taskId,
    mapIndex: "mapIndex" in assignment ? (assignment.mapIndex ?? null) : null,
    executor,
    queue,
    priority: priorityOf(assignment),
    config: config ?? null,
    content: assignment as unknown as Json,
  };
}

function requestOf(assignment: Assignment): LaunchRequest {
  const { config = null, id, queue } = assignment;
  return { id, queue, priority: priorityOf(assignment), config };
}

/** Callbacks and reactions go first: they delay what has happened, or what is to run. */
function priorityOf(assignment: Assignment): number {
  return assignment.kind === "attempt" ? assignment.priority : HIGHEST_PRIORITY;
}

const HIGHEST_PRIORITY = 2_000_000_000;
