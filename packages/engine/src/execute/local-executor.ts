/**
 * Runs attempts in child processes of this machine. Owns the line of submitted workloads and the promise that each of
 * them gets exactly one `ended`; which process runs them is the pool's business, how one ends its supervisor's.
 *
 * If this process dies, nothing is reported: the guardian kills what runs, and the scheduler that takes over asks
 * `adopt`, whose answer in a new process is "none".
 */

import type { LargeOutputs } from "../output/large-outputs.ts";
import { EngineError } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import { childEntries } from "./child-entry.ts";
import type {
  CallbackWorkload,
  CancelTerms,
  Executor,
  ExecutorEvent,
  ReactionWorkload,
  TaskServices,
  Workload,
} from "./contract.ts";
import type { Ending, Interference } from "./ending.ts";
import { taskEnvironment } from "./environment.ts";
import { Guardian } from "./guardian.ts";
import { Heirs } from "./heirs.ts";
import { AttemptJob, CallbackJob, type Job, type JobSettings, ReactionJob } from "./job.ts";
import { Prefetch } from "./prefetch.ts";
import { ProcessPool, type ProcessPoolListener } from "./process-pool.ts";
import { INLINE_ONLY } from "./protocol.ts";
import { WaitingLine } from "./waiting-line.ts";

export interface LocalExecutorOptions {
  /** Attempts at a time. 0: no limit, and a fresh process for each. */
  readonly parallelism: number;
  readonly services: TaskServices;
  readonly logger: Logger;
  /** Names of environment variables that user code gets besides the usual; a trailing `*` matches any ending. */
  readonly envAllow?: readonly string[];
  /** From asking a task to stop to killing it, for who names no time himself. */
  readonly graceMs?: number;
  /** Tasks per process, at most. */
  readonly recycleAfter?: number;
  /** A process is replaced when it holds more than this; looked at after every `weighEvery` tasks. */
  readonly maxIdleMb?: number;
  readonly weighEvery?: number;
  /** Most workloads held beyond `parallelism`; how many it is depends on how short tasks are. */
  readonly prefetch?: number;
  /** How many may stand behind each that has slots; unless told, that depends on how short tasks are. */
  readonly ahead?: number;
  /** Per attempt. */
  readonly maxLogBytes?: number;
  /** For tasks that name no limit themselves; null for none. */
  readonly memoryMb?: number | null;
  /** For callbacks and for reactions. */
  readonly callbackTimeoutMs?: number;
  /** Where large outputs go, and come from. It is closed with this. Without it outputs are small. */
  readonly outputs?: LargeOutputs;
  /** Where user code runs; the current folder unless told. */
  readonly cwd?: string;
  /** The user that user code runs as; needs root. */
  readonly user?: { readonly uid: number; readonly gid: number };
}

/** What `freeSlots` answers without a limit: more than anyone submits at once. */
const UNLIMITED = 1_000_000;
const MOST_HELD = 256;
/** A log that cannot be written for so long does not hold back the report. */
const LOG_PATIENCE_MS = 2_000;

export class LocalExecutor implements Executor, ProcessPoolListener {
  readonly name = "local";
  readonly #parallelism: number;
  readonly #settings: JobSettings;
  readonly #logger: Logger;
  readonly #guardian: Guardian;
  readonly #pool: ProcessPool;
  readonly #prefetch: Prefetch;
  readonly #ahead: number | undefined;
  /** Everything that has no reported end yet. */
  readonly #jobs = new Map<string, Job>();
  /** Callbacks go first: what they announce has already happened. Reactions, too: they say what is to run at all. */
  readonly #first = new WaitingLine<Job>();
  readonly #tasks = new WaitingLine<Job>();
  readonly #heirs = new Heirs();
  /** Jobs that have a process, or one starting for them. */
  #placed = 0;
  /** Jobs in hand that do not end by themselves. */
  #streams = 0;
  #report: (event: ExecutorEvent) => void = () => {};
  #stopping: string | null = null;
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
    this.#logger = options.logger;
    this.#settings = {
      services: options.services,
      logger: options.logger,
      maxLogBytes: options.maxLogBytes ?? 50 * 1024 * 1024,
      memoryMb: options.memoryMb ?? null,
      callbackTimeoutMs: options.callbackTimeoutMs ?? 60_000,
      outputs: options.outputs ?? null,
    };
    this.#prefetch = new Prefetch(options.prefetch ?? MOST_HELD);
    this.#ahead = options.ahead;
    this.#guardian = new Guardian(options.logger);
    this.#pool = new ProcessPool(
      {
        limit: parallelism,
        recycleAfter: options.recycleAfter ?? 100_000,
        weighEvery: options.weighEvery ?? 250,
        maxIdleMb: options.maxIdleMb ?? 512,
        guardian: this.#guardian,
        logger: options.logger,
        process: {
          environment: taskEnvironment(process.env, options.envAllow),
          cwd: options.cwd ?? process.cwd(),
          user: options.user ?? null,
          graceMs: options.graceMs ?? 5_000,
          limits: options.outputs?.limits ?? INLINE_ONLY,
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
    this.#placeAll();
  }

  submit(workloads: readonly Workload[]): void {
    for (const workload of workloads) this.#accept(new AttemptJob(workload, this.#settings), this.#tasks);
    this.#placeAll();
  }

  release(attempts: readonly string[]): void {
    for (const attempt of attempts) {
      const job = this.#jobs.get(attempt);
      if (job instanceof AttemptJob && this.#heirs.remove(job)) this.#enter(job);
    }
    this.#placeAll();
  }

  ahead(): number {
    return this.#ahead ?? (this.#parallelism === 0 ? 0 : this.#prefetch.ahead());
  }

  submitCallback(workload: CallbackWorkload): void {
    this.#accept(new CallbackJob(workload, this.#settings), this.#first);
    this.#placeAll();
  }

  submitReaction(workload: ReactionWorkload): void {
    this.#accept(new ReactionJob(workload, this.#settings), this.#first);
    this.#placeAll();
  }

  async adopt(attempts: readonly string[]): Promise<ReadonlySet<string>> {
    return new Set(attempts.filter((attempt) => this.#jobs.has(attempt)));
  }

  cancel(attempt: string, reason: string, how: CancelTerms = {}): void {
    const job = this.#jobs.get(attempt);
    if (job === undefined) return;
    if (how.hasNoSlots && job instanceof AttemptJob) job.hasSlots = false;
    this.#interfere(job, { ...how, why: "cancel", reason });
  }

  freeSlots(): number {
    if (this.#stopping !== null) return 0;
    const inHand = this.#placed + this.#tasks.length + this.#first.length + this.#heirs.size;
    if (this.#parallelism === 0) return Math.max(0, UNLIMITED - inHand);
    // What runs a stream will not be free soon.
    const turning = Math.max(0, this.#pool.size - this.#streams);
    return Math.max(0, this.#parallelism + this.#prefetch.depth(turning) - inHand);
  }

  async stop(graceMs: number): Promise<void> {
    if (this.#stopping !== null) return;
    this.#stopping = "the executor is stopping";
    const reason = this.#stopping;
    for (const job of [...this.#jobs.values()]) {
      const streamGraceMs = streamGrace(job);
      if (job.state === "waiting") this.#interfere(job, { why: "stop", reason });
      else if (streamGraceMs !== null)
        this.#interfere(job, {
          why: "cancel",
          reason,
          isLost: true,
          graceMs: Math.min(streamGraceMs, graceMs),
        });
    }
    await this.#idle(graceMs);
    for (const job of [...this.#jobs.values()]) this.#interfere(job, { why: "stop", reason: this.#stopping });
    await this.#pool.close();
    await this.#idle(LOG_PATIENCE_MS);
    await this.#settings.outputs?.close();
    this.#guardian.stop();
  }

  started(job: Job, pid: number): void {
    if (job instanceof AttemptJob) this.#report({ type: "started", attempt: job.id, at: Date.now(), pid });
  }

  over(job: Job, ending: Ending): void {
    job.state = "over";
    this.#placed--;
    this.#prefetch.observe(performance.now() - job.placedAt);
    // The process is free: give it work first, then tell what happened.
    this.#placeAll();
    this.#conclude(job, ending);
  }

  room(): void {
    this.#placeAll();
  }

  bounced(job: Job): void {
    if (job.state !== "placed") return;
    job.state = "waiting";
    this.#placed--;
    (job instanceof AttemptJob ? this.#tasks : this.#first).unshift(job);
    this.#placeAll();
  }

  hopeless(reason: string): void {
    for (const job of [...this.#jobs.values()]) {
      if (job.state === "waiting")
        this.#interfere(job, { why: "stop", reason: `task processes do not start (${reason})` });
    }
  }

  #accept(job: Job, line: WaitingLine<Job>): void {
    if (this.#jobs.has(job.id)) {
      this.#logger.warn("this attempt is in hand already; the second submission is ignored", {
        attempt: job.id,
      });
      return;
    }
    this.#jobs.set(job.id, job);
    if (streamGrace(job) !== null) this.#streams++;
    if (job instanceof AttemptJob && !job.hasSlots) this.#heirs.add(job);
    else line.push(job);
    if (this.#stopping !== null) this.#interfere(job, { why: "stop", reason: this.#stopping });
  }

  /** In the order of submission; a job that cannot be placed holds up those behind it, as its priority demands. */
  #placeAll(): void {
    // Reporting and placing call each other: the outermost call does it all.
    if (this.#placing || !this.#open || this.#stopping !== null) return;
    this.#placing = true;
    try {
      for (const line of [this.#first, this.#tasks]) {
        for (let job = line.peek(); job !== undefined; job = line.peek()) {
          // Before it is placed: placing reports, and whoever hears it may look.
          line.shift();
          job.state = "placed";
          job.placedAt = performance.now();
          this.#placed++;
          if (this.#pool.place(job, line === this.#first)) continue;
          job.state = "waiting";
          this.#placed--;
          line.unshift(job);
          break;
        }
      }
    } finally {
      this.#placing = false;
    }
    this.#pool.prepare(this.#parallelism === 0 ? 0 : this.#tasks.length + this.#first.length);
  }

  #interfere(job: Job, interference: Interference): void {
    const process = this.#pool.processOf(job);
    if (process !== undefined) {
      process.interrupt(interference);
      return;
    }
    // Over, and only its log is being written.
    if (job.state === "over") return;
    if (job.state === "placed") {
      this.#pool.withdraw(job);
      this.#placed--;
    } else if (!(job instanceof AttemptJob)) this.#first.remove(job);
    else if (!this.#heirs.remove(job)) this.#tasks.remove(job);
    this.#conclude(job, { interference, report: null, exit: null, errorTail: [] });
  }

  /** A large output is stored before anybody hears of the end that it belongs to. */
  #conclude(job: Job, ending: Ending): void {
    job.state = "over";
    if (job.hasLarge) void job.keepLarge(ending).then(() => this.#tell(job, ending));
    else this.#tell(job, ending);
  }

  /** Reports the end once the log is on disk, so that who reads it then reads all of it. */
  #tell(job: Job, ending: Ending): void {
    const dropped = ending.report?.dropped ?? 0;
    const event = job.ended(ending);
    if (job.log.silent && dropped === 0) {
      // Not from within `cancel` or `submit`: their callers do not expect to be called back.
      if (ending.report !== null) this.#deliver(job, event);
      else queueMicrotask(() => this.#deliver(job, event));
      return;
    }
    const patience = setTimeout(() => this.#deliver(job, event), LOG_PATIENCE_MS);
    void job.log.close(dropped).then(() => {
      clearTimeout(patience);
      this.#deliver(job, event);
    });
  }

  #deliver(job: Job, event: ExecutorEvent): void {
    if (!this.#jobs.delete(job.id)) return;
    if (streamGrace(job) !== null) this.#streams--;
    const holder = job instanceof AttemptJob && job.hasSlots ? job : null;
    const heir = holder ? this.#heirs.next(holder) : undefined;
    const vacates = heir ? undefined : holder?.workload.lane;
    this.#report(event.type === "ended" ? { ...event, heir: heir?.id, vacates } : event);
    if (event.type !== "ended") this.#report({ type: "capacity" });
    if (heir) {
      // Not before it is told: whoever counts slots must never see two where there is one.
      this.#enter(heir);
      this.#placeAll();
    }
    if (this.#jobs.size === 0) this.#onIdle?.();
  }

  /** It has slots now. */
  #enter(job: AttemptJob): void {
    job.hasSlots = true;
    this.#tasks.push(job);
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

/** How long a stream may take to end when it is asked to; null: it is none. */
function streamGrace(job: Job): number | null {
  return job instanceof AttemptJob ? (job.workload.streamGraceMs ?? null) : null;
}
