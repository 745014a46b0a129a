/**
 * A worker: claims assignments, runs them with the same executor as a scheduler of this machine, and reports their ends. It
 * reaches the API only. What it runs is bound to its lease: while the API cannot be reached, running attempts continue until
 * the lease is no longer trusted; then they are stopped, because another worker may start them.
 *
 * If the worker dies, its guardian kills the processes, its lease expires, and its assignments are reported as lost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Json } from "@tradewind/sdk/manifest";
import type { OutputLimits } from "../../output/output-limits.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { Outage } from "../../service/outage.ts";
import type { Assignment, CancelTerms, ExecutorEvent, LeaseTerm } from "../contract.ts";
import type { LocalExecutor } from "../local/local-executor.ts";
import { rejectedEnd, unstartedEnd } from "./engine-ends.ts";
import type { ExecutionClient } from "./execution-client.ts";
import { ExecutionError } from "./execution-client.ts";
import { type Claim, type Claimed, revived, type WorkerCalls } from "./worker-calls.ts";

interface WorkerIdentity {
  readonly name: string;
  readonly hostname: string;
  readonly pid: number;
  readonly version: string;
  readonly slots: number;
  /** Left out by the worker of a pod. */
  readonly queues?: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

export interface WorkerOptions {
  readonly client: ExecutionClient;
  readonly calls: WorkerCalls;
  readonly executor: LocalExecutor;
  readonly identity: WorkerIdentity;
  readonly logger: Logger;
  /** What the server said when the worker registered. */
  readonly onRegistered?: (facts: { readonly outputLimits: OutputLimits }) => void;
  /** It is to start nothing more, or may start assignments again. */
  readonly onDraining?: (isDraining: boolean) => void;
  /** It was removed, its token was revoked, or it is too old: everything is started elsewhere, and the process has to stop. */
  readonly onRemoved?: () => void;
}

/** The protocol of the task execution API that this code speaks. */
const PROTOCOL = 1;
/** The part of the lease in which running attempts are stopped: the clocks of worker and database may drift. */
const MARGIN = 0.15;
/** The API holds a heartbeat for a fifth of the lease. One that takes longer than this part of it has no answer. */
const HEARTBEAT_TIMEOUT = 0.4;
const RETRY_MS = 500;
/** Time for the last reports, and for the end of the registration, while the API is away. */
const LAST_CALLS_MS = 3_000;
/** The start of a short attempt is reported with its end. */
const START_WAIT_MS = 25;

/** Answers to a heartbeat after which the worker does not register again. */
const LEAVE: Readonly<Record<string, string>> = {
  ASSIGNMENT_ENDED: "the assignment of this pod has ended",
  UNAUTHENTICATED: "the token of this worker was revoked or has expired",
  WORKER_REMOVED: "the worker was removed",
  WORKER_VERSION: "the server has been updated and does not serve this version of the worker any more",
};

interface Registered {
  readonly worker: number;
  readonly lease_ms: number;
  readonly output_limits: OutputLimits;
}

interface Orders {
  readonly cancels: readonly {
    readonly id: string;
    readonly cancel: CancelTerms & { readonly reason: string };
  }[];
  readonly superseded: readonly string[];
  readonly unknown: readonly string[];
  readonly is_draining: boolean;
}

interface Running {
  readonly claim: Claimed;
  readonly ended: () => void;
  isStopping: boolean;
  /** Set while the start is not reported. */
  start: { readonly pid: number; readonly at: number; readonly timer: NodeJS.Timeout } | null;
}

export class Worker {
  readonly #options: WorkerOptions;
  readonly #running = new Map<string, Running>();
  /** Their ids by log. */
  readonly #byLog = new Map<string, string>();
  /** Ids whose claim is under way: the API may know them before their answer has arrived. */
  readonly #claiming = new Set<string>();
  readonly #outage: Outage;
  #id = 0;
  #leaseMs = 0;
  #trustedUntil = 0;
  #isDraining = false;
  /** It drains because its process stops. */
  #isStopping = false;
  #state: "new" | "running" | "stopping" | "stopped" = "new";
  #onEmpty: (() => void) | null = null;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#outage = new Outage(options.logger, "reach the API");
  }

  /** The id under which it is registered. */
  get id(): number {
    return this.#id;
  }

  get isWanted(): boolean {
    return this.#state !== "stopped";
  }

  /** Whether its lease is held. */
  isReady(): boolean {
    return performance.now() < this.#trustedUntil;
  }

  /** How many more assignments it accepts now. */
  get room(): number {
    return this.#options.executor.freeSlots() - this.#claiming.size;
  }

  /** The number of assignments that it has. */
  get size(): number {
    return this.#running.size;
  }

  /** Waits until the API is reachable. @throws ExecutionError if the API rejects the worker. */
  async start(signal?: AbortSignal): Promise<void> {
    await this.#register(signal);
    this.#state = "running";
    await this.#options.executor.start((event) => this.#onEvent(event));
    void this.#beat();
  }

  /** Claims and runs an assignment. Resolves when it has ended here. False: it is not to be run by this worker. */
  async run(id: string): Promise<boolean> {
    if (this.#running.has(id) || this.#claiming.has(id)) return true;
    this.#claiming.add(id);
    try {
      const claimed = await this.#options.calls.claim(id);
      if (claimed === null) return false;
      const { promise, resolve: ended } = Promise.withResolvers<void>();
      this.#running.set(id, { claim: claimed, ended, isStopping: claimed.isVoid, start: null });
      this.#byLog.set(claimed.assignment.logKey, id);
      if (claimed.isVoid) this.#end(id, unstartedEnd(claimed.assignment));
      else this.#options.executor.submit([readable(claimed.assignment)]);
      this.#claiming.delete(id);
      await promise;
      return true;
    } finally {
      this.#claiming.delete(id);
    }
  }

  /** The claim of an assignment that runs here. */
  claimOf(assignment: string): Claim {
    return this.#running.get(assignment)?.claim ?? { token: "", worker: 0 };
  }

  /** The claim of the assignment with this log. */
  claimOfLog(key: string): Claim {
    return this.claimOf(this.#byLog.get(key) ?? "");
  }

  /** Starts nothing more. Resolves when everything has ended, or after `ms`. */
  async drain(ms: number): Promise<void> {
    this.#isStopping = true;
    this.#options.executor.drain();
    if (this.#running.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onEmpty = resolve;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }

  /** Stops what still runs: it is handed back, which uses up no try. */
  async stop(graceMs: number): Promise<void> {
    if (this.#state !== "running") return;
    await this.#options.executor.stop(graceMs);
    this.#state = "stopping";
    await within(this.#options.calls.idle(), LAST_CALLS_MS);
    this.#state = "stopped";
    const signOff = this.#options.client.delete(`workers/${this.#id}`).catch((error) =>
      // Its lease expires.
      this.#options.logger.warn("cannot sign off", { error: messageOf(error) }),
    );
    // The API may hold a heartbeat for seconds: it ends with the connection.
    await within(signOff, LAST_CALLS_MS);
  }

  async #register(signal?: AbortSignal): Promise<void> {
    const { client, executor, identity, logger } = this.#options;
    while (this.isWanted) {
      const started = performance.now();
      try {
        const body = { ...identity, protocol: PROTOCOL };
        const { lease_ms, output_limits, worker } = await client.post<Registered>("workers", body);
        this.#outage.passed();
        this.#id = worker;
        this.#leaseMs = lease_ms;
        this.#options.onRegistered?.({ outputLimits: output_limits });
        executor.extendLease(this.#term(started));
        logger.info("registered", { worker, name: identity.name });
        return;
      } catch (error) {
        if (!(error instanceof ExecutionError) || !error.isTransient) throw error;
        this.#outage.failed(error);
        signal?.throwIfAborted();
        await sleep(RETRY_MS);
      }
    }
  }

  #term(started: number): LeaseTerm {
    const endsAt = started + this.#leaseMs;
    this.#trustedUntil = endsAt - MARGIN * this.#leaseMs;
    return { trustedUntil: this.#trustedUntil, endsAt };
  }

  /** One heartbeat after the other: the API holds each until there is something to say, or for a few seconds. */
  async #beat(): Promise<void> {
    const { client, executor, logger } = this.#options;
    while (this.isWanted) {
      const started = performance.now();
      try {
        const ids = [...this.#running.keys()];
        const state = {
          assignments: ids,
          stopping: ids.filter((id) => this.#running.get(id)?.isStopping),
          free_slots: executor.slots().free,
          is_draining: this.#isDraining,
          is_stopping: this.#isStopping,
        };
        const timeoutMs = HEARTBEAT_TIMEOUT * this.#leaseMs;
        const orders = await client.post<Orders>(`workers/${this.#id}/heartbeat`, state, timeoutMs);
        executor.extendLease(this.#term(started));
        this.#outage.passed();
        this.#follow(orders);
      } catch (error) {
        if (!this.isWanted) return;
        const reason = error instanceof ExecutionError ? LEAVE[error.code] : undefined;
        if (reason !== undefined) return this.#leave(reason);
        if (error instanceof ExecutionError && error.code === "WORKER_EXPIRED") await this.#startOver();
        else {
          this.#outage.failed(error);
          if (!(error instanceof ExecutionError && error.isTransient))
            logger.error("heartbeat rejected", { error: messageOf(error) });
          await sleep(RETRY_MS);
        }
      }
    }
  }

  #follow({ cancels, is_draining: isDraining, superseded, unknown }: Orders): void {
    for (const { cancel, id } of cancels) this.#cancel(id, cancel.reason, cancel);
    for (const id of superseded) this.#cancel(id, "superseded");
    for (const id of unknown) {
      // Claimed, and the answer was lost.
      if (this.#claiming.has(id) || this.#running.has(id)) continue;
      void this.run(id).catch(() => {});
    }
    if (isDraining === this.#isDraining) return;
    this.#isDraining = isDraining;
    this.#options.logger.info(isDraining ? "draining" : "no longer draining", { running: this.size });
    this.#options.onDraining?.(isDraining);
  }

  #cancel(id: string, reason: string, terms?: CancelTerms): void {
    const running = this.#running.get(id);
    if (running === undefined) return;
    running.isStopping = true;
    this.#options.executor.cancel(id, reason, terms);
  }

  /** Declared dead: all assignments are started elsewhere, so they are stopped here, and their ends mean nothing. */
  async #startOver(): Promise<void> {
    this.#options.logger.warn("declared dead: stopping all attempts and registering again", {
      attempts: this.size,
    });
    for (const id of this.#running.keys()) this.#cancel(id, "the worker was declared dead", { graceMs: 0 });
    await this.#register();
  }

  #leave(reason: string): void {
    this.#options.logger.warn(`${reason}: stopping all attempts`, { attempts: this.size });
    for (const id of this.#running.keys()) this.#cancel(id, reason, { graceMs: 0 });
    this.#options.onRemoved?.();
  }

  #onEvent(event: ExecutorEvent): void {
    const now = performance.now();
    if (event.type === "started") {
      const running = this.#running.get(event.attempt);
      if (running === undefined) return;
      const timer = setTimeout(() => this.#reportStart(event.attempt), START_WAIT_MS);
      running.start = { pid: event.pid, at: now, timer };
    } else if (event.type === "ended") {
      this.#end(event.attempt, { outcome: event.outcome as unknown as Json });
    } else if (event.type === "callbackEnded") {
      this.#end(event.callbackId, { error: event.error as unknown as Json });
    } else if (event.type === "reactionEnded") {
      const { action, error, reactionId } = event;
      this.#end(reactionId, { action, error: error as unknown as Json });
    }
  }

  #reportStart(id: string): void {
    const running = this.#running.get(id);
    if (!running?.start) return;
    const { at, pid } = running.start;
    running.start = null;
    void this.#report(id, running, { type: "started", content: { pid }, at });
  }

  #end(id: string, content: Readonly<Record<string, Json>>): void {
    const running = this.#running.get(id);
    if (running === undefined) return;
    const at = performance.now();
    const { start } = running;
    if (start) clearTimeout(start.timer);
    running.start = null;
    const started = start && { pid: start.pid, beforeMs: Math.round(at - start.at) };
    // Its slot is free: the next assignment is claimed while this end is being reported.
    running.ended();
    void this.#reportEnd(id, running, { ...content, started }).then(() => {
      this.#running.delete(id);
      this.#byLog.delete(running.claim.assignment.logKey);
      if (this.#running.size === 0) this.#onEmpty?.();
    });
  }

  /** Without a stored end, the assignment would be started again: an end that the API rejects becomes a failure. */
  async #reportEnd(id: string, running: Running, content: Json): Promise<void> {
    const report = { type: "ended", at: performance.now() } as const;
    const rejection = await this.#report(id, running, { ...report, content });
    if (rejection === null) return;
    await this.#report(id, running, { ...report, content: rejectedEnd(running.claim.assignment, rejection) });
  }

  /** Returns the error if the API rejects the content. */
  async #report(
    id: string,
    { claim: { token, worker } }: Running,
    report: { readonly type: "started" | "ended"; readonly content: Json; readonly at: number },
  ): Promise<ExecutionError | null> {
    const { calls, logger } = this.#options;
    try {
      const counts = await calls.report({ id, worker, token, ...report });
      if (!counts) logger.debug("report of a superseded attempt", { attempt: id, type: report.type });
    } catch (error) {
      logger.warn("report rejected", { attempt: id, type: report.type, error: messageOf(error) });
      if (error instanceof ExecutionError && error.isOfContent) return error;
    }
    return null;
  }
}

/** Resolves after `ms` at the latest. */
async function within(work: Promise<unknown>, ms: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, ms);
  await Promise.race([work, late.promise]);
  clearTimeout(timer);
}

/** Large inputs arrive as plain JSON. */
function readable(assignment: Assignment): Assignment {
  if (assignment.kind !== "attempt" || assignment.large === undefined) return assignment;
  return { ...assignment, large: assignment.large.map(revived) };
}
