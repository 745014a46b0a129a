/**
 * The task processes of one executor: their number, which one gets a job, and when one is replaced.
 *
 * With a limit, processes are warm: reused for any task that does not require a fresh one, and started when more jobs wait
 * than processes are idle, one ahead of demand. Without a limit (0), each job gets a process without earlier user code,
 * and one such process is kept ready. A fresh job always gets a process that was never used.
 */
import { availableParallelism } from "node:os";
import type { Guardian } from "../../child/guardian.ts";
import { residentBytes } from "../../child/resident-memory.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import type { ChildEnd } from "../attempt/child-end.ts";
import type { Job } from "../attempt/job.ts";
import { TaskProcess, type TaskProcessListener, type TaskProcessOptions } from "../attempt/task-process.ts";
import type { ExecutionLease } from "./execution-lease.ts";

export interface ProcessPoolOptions {
  /** 0: unlimited, every process used once. */
  readonly limit: number;
  readonly recycleAfter: number;
  /** The memory of a process is checked after every `weighEvery` jobs. */
  readonly weighEvery: number;
  /** A process that holds more memory is replaced. */
  readonly maxIdleMb: number;
  readonly process: Omit<TaskProcessOptions, "heapMb" | "entry">;
  readonly guardian: Guardian;
  readonly lease: ExecutionLease;
  readonly logger: Logger;
}

export interface ProcessPoolListener {
  started(job: Job, pid: number): void;
  jobEnded(job: Job, end: ChildEnd): void;
  /** Something changed that may let waiting jobs be placed. */
  placeAll(): void;
  /** The process that was started for the job failed to start: the job waits again. */
  bounced(job: Job): void;
  /** Processes have repeatedly failed to start. */
  hopeless(reason: string): void;
}

/** An imported bundle stays in memory: a process with this many is replaced. */
const MAX_BUNDLES = 500;
const MB = 1024 * 1024;
const IDLE_MS = 60_000;
const HOPELESS_AFTER = 5;
const MAX_BACKOFF_MS = 5_000;

export class ProcessPool implements TaskProcessListener {
  readonly #options: ProcessPoolOptions;
  readonly #listener: ProcessPoolListener;
  /** The processes that count against the limit: starting, idle or busy, not those that are exiting. */
  readonly #live = new Set<TaskProcess>();
  readonly #leaving = new Set<TaskProcess>();
  readonly #idle: TaskProcess[] = [];
  /** Starting processes, with the job they are started for, if any. */
  readonly #starting = new Map<TaskProcess, Job | null>();
  readonly #running = new Map<Job, TaskProcess>();
  /** Processes to be replaced after their current job: they hold too much memory, or outdated code. */
  readonly #outworn = new WeakSet<TaskProcess>();
  readonly #maxStarting = Math.max(2, availableParallelism());
  #entry = "";
  #failures = 0;
  #backoff: NodeJS.Timeout | null = null;
  #sweep: NodeJS.Timeout | null = null;
  #closing: (() => void) | null = null;

  constructor(options: ProcessPoolOptions, listener: ProcessPoolListener) {
    this.#options = options;
    this.#listener = listener;
  }

  /** @param entry The task-runner's program. */
  open(entry: string): void {
    this.#entry = entry;
    this.prepare(0);
    this.#sweep = setInterval(() => this.#retireIdle(), IDLE_MS / 2);
    this.#sweep.unref();
  }

  get size(): number {
    return this.#live.size;
  }

  /**
   * Gives the job to a process, or starts one for it; false: the job has to wait. `mayExceed`: if all processes are busy,
   * one is started beyond the limit, because streaming tasks may use them all. At most one, for this job only.
   */
  place(job: Job, mayExceed = false): boolean {
    if (job.fresh || this.#options.limit === 0) return this.#placeFresh(job);
    return this.#placeWarm(job) || (mayExceed && this.#placeBeyond(job));
  }

  /** Starts processes for waiting jobs, and one ahead of demand. */
  prepare(waiting: number): void {
    let coming = 0;
    for (const job of this.#starting.values()) if (job === null) coming++;
    const wanted = Math.max(waiting, this.#idle.length === 0 ? 1 : 0);
    while (coming < wanted && this.#mayStart()) {
      if (!this.#start(null, null)) return;
      coming++;
    }
  }

  processOf(job: Job): TaskProcess | undefined {
    return this.#running.get(job);
  }

  /** Replaces all processes that have loaded user code: a package that they may have loaded has changed. */
  replaceUsed(): void {
    for (const process of [...this.#live]) {
      if (process.busy) this.#outworn.add(process);
      else if (process.jobs > 0) this.#retire(process);
    }
  }

  /** The job was cancelled before it started. */
  withdraw(job: Job): void {
    for (const [process, reserved] of this.#starting) if (reserved === job) this.#starting.set(process, null);
  }

  /** Ends all processes, also busy ones, and waits for their exit. */
  async close(): Promise<void> {
    if (this.#sweep !== null) clearInterval(this.#sweep);
    if (this.#backoff !== null) clearTimeout(this.#backoff);
    const gone = new Promise<void>((resolve) => {
      this.#closing = resolve;
    });
    for (const process of [...this.#live]) this.#retire(process);
    if (this.#leaving.size > 0) await gone;
  }

  ready(process: TaskProcess): void {
    const reserved = this.#starting.get(process) ?? null;
    this.#starting.delete(process);
    if (!this.#live.has(process)) return;
    this.#failures = 0;
    if (reserved !== null && this.#options.lease.isTrusted()) this.#run(process, reserved);
    else if (process.heapMb !== null) this.#retire(process);
    else this.#rest(process);
    if (reserved !== null && !this.#running.has(reserved)) this.#listener.bounced(reserved);
    else this.#listener.placeAll();
  }

  jobEnded(process: TaskProcess, job: Job, end: ChildEnd): void {
    this.#running.delete(job);
    if (this.#worn(process, job)) this.#retire(process);
    else this.#rest(process);
    if (process.jobs % this.#options.weighEvery === 0) void this.#weigh(process);
    this.#listener.jobEnded(job, end);
  }

  gone(process: TaskProcess, reason: string): void {
    this.#options.guardian.release(process.pid);
    const reserved = this.#starting.get(process);
    const failedToStart = this.#starting.delete(process);
    this.#live.delete(process);
    this.#leaving.delete(process);
    const at = this.#idle.indexOf(process);
    if (at >= 0) this.#idle.splice(at, 1);
    if (this.#closing !== null) {
      if (this.#leaving.size === 0 && this.#live.size === 0) this.#closing();
      return;
    }
    if (failedToStart && !this.#options.lease.isCut(process.startedAt)) this.#startFailed(reason);
    if (reserved) this.#listener.bounced(reserved);
    else this.#listener.placeAll();
  }

  #placeWarm(job: Job): boolean {
    for (let at = this.#idle.length - 1; at >= 0; at--) {
      if (this.#idle[at]!.bundles.has(job.bundleHash)) return this.#assign(at, job);
    }
    return this.#idle.length > 0 && this.#assign(this.#idle.length - 1, job);
  }

  #placeBeyond(job: Job): boolean {
    const isFull = this.#live.size === this.#options.limit && this.#running.size === this.#live.size;
    return isFull && this.#canStart() && this.#start(null, job);
  }

  #placeFresh(job: Job): boolean {
    const heapMb = job.memoryMb;
    if (heapMb === null) {
      const unused = this.#idle.findIndex((process) => process.jobs === 0);
      if (unused >= 0) return this.#assign(unused, job);
    }
    if (!this.#mayStart()) {
      // At the limit, an idle process is replaced.
      if (this.#starting.size >= this.#maxStarting || this.#backoff !== null || this.#idle.length === 0)
        return false;
      this.#retire(this.#idle[0]!);
    }
    return this.#start(heapMb, job);
  }

  #assign(at: number, job: Job): true {
    const [process] = this.#idle.splice(at, 1);
    this.#run(process!, job);
    return true;
  }

  #run(process: TaskProcess, job: Job): void {
    this.#running.set(job, process);
    process.run(job);
    this.#listener.started(job, process.pid);
  }

  #rest(process: TaskProcess): void {
    process.idleSince = Date.now();
    this.#idle.push(process);
  }

  #worn(process: TaskProcess, job: Job): boolean {
    if (process.unfit !== null || job.fresh || this.#options.limit === 0) return true;
    if (this.#live.size > this.#options.limit) return true;
    if (this.#outworn.has(process)) return true;
    return process.jobs >= this.#options.recycleAfter || process.bundles.size >= MAX_BUNDLES;
  }

  /** Tasks may leak memory. Starting a process is expensive, so processes are replaced by memory, not by count alone. */
  async #weigh(process: TaskProcess): Promise<void> {
    const usedMb = Math.round((await residentBytes(process.pid)) / MB);
    if (usedMb <= this.#options.maxIdleMb || !this.#live.has(process)) return;
    this.#outworn.add(process);
    this.#options.logger.info("replacing a task process that holds too much memory", {
      pid: process.pid,
      usedMb,
      jobs: process.jobs,
    });
    if (process.busy) return;
    this.#retire(process);
    this.#listener.placeAll();
  }

  #mayStart(): boolean {
    return this.#canStart() && (this.#options.limit === 0 || this.#live.size < this.#options.limit);
  }

  #canStart(): boolean {
    return this.#backoff === null && this.#closing === null && this.#starting.size < this.#maxStarting;
  }

  #start(heapMb: number | null, job: Job | null): boolean {
    try {
      const process = new TaskProcess({ ...this.#options.process, entry: this.#entry, heapMb }, this);
      this.#live.add(process);
      this.#starting.set(process, job);
      // The guardian watches the process before it gets a job.
      if (process.pid > 0) this.#options.guardian.watch(process.pid);
      return true;
    } catch (error) {
      this.#startFailed(messageOf(error));
      return false;
    }
  }

  #startFailed(reason: string): void {
    this.#failures++;
    this.#options.logger.error("a task process did not start", { reason, failures: this.#failures });
    const delay = Math.min(MAX_BACKOFF_MS, 100 * 2 ** this.#failures);
    this.#backoff ??= setTimeout(() => {
      this.#backoff = null;
      this.#listener.placeAll();
    }, delay);
    if (this.#failures >= HOPELESS_AFTER) this.#listener.hopeless(reason);
  }

  #retire(process: TaskProcess): void {
    const at = this.#idle.indexOf(process);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#live.delete(process);
    this.#leaving.add(process);
    process.retire();
  }

  /** Retires processes that have been idle for long, except one. */
  #retireIdle(): void {
    const before = Date.now() - IDLE_MS;
    for (const process of [...this.#idle]) {
      if (this.#idle.length > 1 && process.idleSince < before) this.#retire(process);
    }
  }
}
