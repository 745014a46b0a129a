/**
 * Runs attempts in child processes of this machine. Owns the queue of submitted assignments, and guarantees exactly one
 * end for each. The process pool chooses the process; the supervisor of that process sees the end.
 *
 * If this process dies, nothing is reported: the guardian kills the children, and the scheduler that takes over starts the
 * attempts again.
 */

import { childEntries } from "../../child/child-entry.ts";
import { Guardian } from "../../child/guardian.ts";
import { INLINE_ONLY } from "../../output/output-limits.ts";
import { EngineError } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { userEnvironment } from "../../service/user-environment.ts";
import { type ChildEnd, endBeforeStart, endWithoutBundle } from "../attempt/child-end.ts";
import type { Interference } from "../attempt/interference.ts";
import { AttemptJob, type Job, type JobSettings, jobOf, streamGrace } from "../attempt/job.ts";
import type { Assignment, CancelTerms, Executor, ExecutorEvent, LeaseTerm } from "../contract.ts";
import { ExecutionLease, LEASE_ENDED } from "./execution-lease.ts";
import { type BundleSource, jobSettings, type LocalExecutorOptions } from "./local-executor-options.ts";
import { Prefetch } from "./prefetch.ts";
import { ProcessPool, type ProcessPoolListener } from "./process-pool.ts";
import { WaitingLine } from "./waiting-line.ts";

/** The result of `freeSlots` without a limit: more than a scheduler submits at once. */
const UNLIMITED = 1_000_000;
const MOST_HELD = 256;
/** The report of an end waits at most this long for the log to be written. */
const LOG_PATIENCE_MS = 2_000;
const STOPPING = "the executor is stopping";

export class LocalExecutor implements Executor, ProcessPoolListener {
  readonly name = "local";
  readonly #parallelism: number;
  readonly streamingSlots: number;
  readonly #logPatienceMs: number;
  readonly #settings: JobSettings;
  readonly #logger: Logger;
  readonly #guardian: Guardian;
  readonly #pool: ProcessPool;
  readonly #prefetch: Prefetch;
  readonly #bundles: BundleSource;
  /** All jobs whose end is not reported yet. */
  readonly #jobs = new Map<string, Job>();
  /** Callbacks and reactions go first: the event of a callback has happened, and a reaction decides what runs. */
  readonly #first = new WaitingLine<Job>();
  readonly #tasks = new WaitingLine<Job>();
  /** Streaming tasks have their own queue: tasks that wait for an ordinary slot do not delay them. */
  readonly #streamTasks = new WaitingLine<Job>();
  readonly #lease = new ExecutionLease((graceMs) => this.#onTrustEnded(graceMs));
  /** Jobs that have a process, or for which one is starting; and how many of them are streaming tasks. */
  #placed = 0;
  #placedStreams = 0;
  /** Jobs whose bundle is not on this machine yet. */
  #fetching = 0;
  /** Streaming tasks, waiting or placed. */
  #streams = 0;
  #report: (event: ExecutorEvent) => void = () => {};
  /** No further attempt is started. */
  #isDraining = false;
  #stopping: Promise<void> | null = null;
  #onIdle: (() => void) | null = null;
  #open = false;
  #placing = false;

  constructor(options: LocalExecutorOptions) {
    const { parallelism } = options;
    if (!Number.isInteger(parallelism) || parallelism < 0) {
      throw new EngineError(
        "EXECUTOR_OPTIONS",
        `The local executor's parallelism is ${parallelism}; give 0 or a positive integer.`,
      );
    }
    this.#parallelism = parallelism;
    this.streamingSlots = parallelism === 0 ? 0 : (options.streamingSlots ?? 0);
    this.#logger = options.logger;
    this.#bundles = options.bundles;
    this.#logPatienceMs = options.logPatienceMs ?? LOG_PATIENCE_MS;
    this.#settings = jobSettings(options);
    this.#prefetch = new Prefetch(options.prefetch ?? MOST_HELD);
    this.#guardian = new Guardian(options.logger);
    this.#pool = new ProcessPool(
      {
        limit: parallelism + this.streamingSlots,
        recycleAfter: options.recycleAfter ?? 100_000,
        weighEvery: options.weighEvery ?? 250,
        maxIdleMb: options.maxIdleMb ?? 512,
        guardian: this.#guardian,
        lease: this.#lease,
        logger: options.logger,
        process: {
          environment: userEnvironment(process.env),
          cwd: options.cwd ?? process.cwd(),
          user: options.user ?? null,
          graceMs: options.graceMs ?? 5_000,
          // Read when a process starts: a worker receives them from the server.
          get limits() {
            return options.outputs?.limits ?? INLINE_ONLY;
          },
          logger: options.logger,
        },
      },
      this,
    );
  }

  async start(report: (event: ExecutorEvent) => void): Promise<void> {
    this.#report = report;
    const { guardian, taskRunner } = await childEntries();
    this.#guardian.start(guardian);
    this.#pool.open(taskRunner);
    this.#open = true;
    this.placeAll();
  }

  submit(assignments: readonly Assignment[]): void {
    for (const assignment of assignments) this.#accept(jobOf(assignment, this.#settings));
    this.placeAll();
  }

  cancel(attempt: string, reason: string, how: CancelTerms = {}): void {
    const job = this.#jobs.get(attempt);
    if (job === undefined) return;
    this.#interfere(job, { ...how, why: "cancel", reason });
  }

  extendLease(term: LeaseTerm): void {
    this.#guardian.extendLease(term.endsAt);
    this.#lease.extend(term);
    this.placeAll();
  }

  replaceUsed(): void {
    this.#pool.replaceUsed();
  }

  freeSlots(): number {
    if (this.#isDraining) return 0;
    const activeAttempts = this.#taken;
    if (this.#parallelism === 0) return Math.max(0, UNLIMITED - activeAttempts);
    // A process that runs a streaming task will not be free soon.
    const turning = Math.max(0, this.#pool.size - this.#streams);
    return Math.max(0, this.#parallelism + this.#prefetch.depth(turning) - activeAttempts);
  }

  slots(): { readonly slots: number | null; readonly free: number } {
    const free = Math.max(0, (this.#parallelism || UNLIMITED) - this.#taken);
    return { slots: this.#parallelism || null, free: this.#isDraining ? 0 : free };
  }

  drain(): void {
    this.#isDraining = true;
    const waiting = this.#jobs.values().filter(({ state }) => state === "waiting");
    for (const job of [...waiting])
      if (job instanceof AttemptJob) this.#interfere(job, { why: "stop", reason: STOPPING });
  }

  stop(graceMs: number): Promise<void> {
    this.#stopping ??= this.#stop(graceMs);
    return this.#stopping;
  }

  get #waiting(): number {
    return this.#first.length + this.#streamTasks.length + this.#tasks.length + this.#fetching;
  }

  /** The number of ordinary slots in use or waited for. */
  get #taken(): number {
    return this.#placed + this.#waiting - Math.min(this.#streams, this.streamingSlots);
  }

  #lineOf(job: Job): WaitingLine<Job> {
    if (streamGrace(job) !== null) return this.#streamTasks;
    return job instanceof AttemptJob ? this.#tasks : this.#first;
  }

  /** A streaming task uses a streaming slot first, then an ordinary one; other jobs use only ordinary ones. */
  #hasSlot(job: Job): boolean {
    if (this.streamingSlots === 0 || !(job instanceof AttemptJob)) return true;
    if (streamGrace(job) !== null && this.#placedStreams < this.streamingSlots) return true;
    return this.#placed - Math.min(this.#placedStreams, this.streamingSlots) < this.#parallelism;
  }

  #count(job: Job, by: 1 | -1): void {
    this.#placed += by;
    if (streamGrace(job) !== null) this.#placedStreams += by;
  }

  async #stop(graceMs: number): Promise<void> {
    this.drain();
    for (const job of [...this.#jobs.values()]) {
      const asked = Math.min(streamGrace(job) ?? graceMs, graceMs);
      if (job.state === "waiting") this.#interfere(job, { why: "stop", reason: STOPPING });
      else if (job instanceof AttemptJob)
        this.#interfere(job, { why: "cancel", reason: STOPPING, isLost: true, graceMs: asked });
    }
    await this.#idle(graceMs);
    for (const job of [...this.#jobs.values()]) this.#interfere(job, { why: "stop", reason: STOPPING });
    await this.#pool.close();
    await this.#idle(LOG_PATIENCE_MS);
    this.#lease.close();
    await this.#settings.outputs?.close();
    this.#guardian.stop();
  }

  started(job: Job, pid: number): void {
    if (job instanceof AttemptJob) this.#report({ type: "started", attempt: job.id, at: Date.now(), pid });
  }

  jobEnded(job: Job, end: ChildEnd): void {
    job.state = "ended";
    this.#count(job, -1);
    this.#prefetch.observe(performance.now() - job.placedAt);
    // The process is free: give it work before reporting.
    this.placeAll();
    this.#conclude(job, this.#lease.cut(job.placedAt, end));
  }

  /** Drops waiting jobs before it stops running ones: a slot that becomes free must not start another job. */
  #onTrustEnded(graceMs: number): void {
    const reason = LEASE_ENDED;
    const jobs = [...this.#jobs.values()];
    this.#logger.warn("lease no longer trusted: stopping attempts", { attempts: jobs.length });
    for (const job of jobs) if (job.state === "waiting") this.#interfere(job, { why: "stop", reason });
    for (const job of jobs) {
      if (job.state === "ended") continue;
      if (job instanceof AttemptJob) this.#interfere(job, { why: "cancel", reason, isLost: true, graceMs });
      else this.#interfere(job, { why: "stop", reason });
    }
  }

  bounced(job: Job): void {
    if (job.state !== "placed") return;
    job.state = "waiting";
    this.#count(job, -1);
    this.#lineOf(job).unshift(job);
    this.placeAll();
  }

  hopeless(reason: string): void {
    for (const job of [...this.#jobs.values()]) {
      if (job.state === "waiting")
        this.#interfere(job, { why: "stop", reason: `task processes do not start (${reason})` });
    }
  }

  #accept(job: Job): void {
    if (this.#jobs.has(job.id)) {
      this.#logger.warn("duplicate submission of an attempt ignored", {
        attempt: job.id,
      });
      return;
    }
    this.#jobs.set(job.id, job);
    if (streamGrace(job) !== null) this.#streams++;
    const path = this.#bundles.known(job.bundleHash);
    if (path === undefined) void this.#fetch(job);
    else this.#enqueue(job, path);
    const isLate = this.#stopping !== null || (this.#isDraining && job instanceof AttemptJob);
    if (isLate || !this.#lease.isTrusted())
      this.#interfere(job, { why: "stop", reason: isLate ? STOPPING : LEASE_ENDED });
  }

  #enqueue(job: Job, bundlePath: string): void {
    job.bundlePath = bundlePath;
    this.#lineOf(job).push(job);
  }

  /** A bundle that cannot be read fails its own jobs only. */
  async #fetch(job: Job): Promise<void> {
    this.#fetching++;
    try {
      const path = await this.#bundles.path(job.bundleHash);
      if (job.state === "waiting") this.#enqueue(job, path);
    } catch (error) {
      if (job.state === "waiting") this.#conclude(job, endWithoutBundle(job.assignment, error));
    } finally {
      this.#fetching--;
    }
    this.placeAll();
  }

  /** Places waiting jobs in the order of submission. A job that cannot be placed blocks the later ones of its queue. */
  placeAll(): void {
    // Reporting and placing call each other: the outermost call places all.
    if (this.#placing || !this.#open || this.#stopping !== null || !this.#lease.isTrusted()) return;
    this.#placing = true;
    try {
      for (const line of [this.#first, this.#streamTasks, this.#tasks]) {
        for (let job = line.peek(); job !== undefined && this.#hasSlot(job); job = line.peek()) {
          // Before placing: that reports, and the receiver may read the free slots.
          line.shift();
          job.state = "placed";
          job.placedAt = performance.now();
          this.#count(job, 1);
          if (this.#pool.place(job, line === this.#first)) continue;
          job.state = "waiting";
          this.#count(job, -1);
          line.unshift(job);
          break;
        }
      }
    } finally {
      this.#placing = false;
    }
    this.#pool.prepare(this.#parallelism === 0 ? 0 : this.#waiting);
  }

  #interfere(job: Job, interference: Interference): void {
    const process = this.#pool.processOf(job);
    if (process !== undefined) {
      process.interrupt(interference);
      return;
    }
    // Ended: only its log is being written.
    if (job.state === "ended") return;
    if (job.state === "placed") {
      this.#pool.withdraw(job);
      this.#count(job, -1);
    } else this.#lineOf(job).remove(job);
    this.#conclude(job, endBeforeStart(interference));
  }

  /** A large output is stored before the end is reported. */
  #conclude(job: Job, end: ChildEnd): void {
    job.state = "ended";
    if (job.hasLarge) void job.keepLarge(end).then(() => this.#reportEnd(job, end));
    else this.#reportEnd(job, end);
  }

  /** Reports the end when the log is on disk, so that a reader then finds the whole log. */
  #reportEnd(job: Job, end: ChildEnd): void {
    const dropped = end.report?.dropped ?? 0;
    const event = job.ended(end);
    if (job.log.silent && dropped === 0) {
      // Not within `cancel` or `submit`: their callers do not expect a report during the call.
      if (end.report !== null) this.#deliver(job, event);
      else queueMicrotask(() => this.#deliver(job, event));
      return;
    }
    const patience = setTimeout(() => this.#deliver(job, event), this.#logPatienceMs);
    void job.log.close(dropped).then(() => {
      clearTimeout(patience);
      this.#deliver(job, event);
    });
  }

  #deliver(job: Job, event: ExecutorEvent): void {
    if (!this.#jobs.delete(job.id)) return;
    if (streamGrace(job) !== null) this.#streams--;
    this.#report(event);
    if (event.type !== "ended") this.#report({ type: "capacity" });
    if (this.#jobs.size === 0) this.#onIdle?.();
  }

  #idle(withinMs: number): Promise<void> {
    if (this.#jobs.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, withinMs);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
