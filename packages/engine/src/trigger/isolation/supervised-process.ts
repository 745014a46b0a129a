/**
 * One trigger process, replaced whenever it ends: because it crashed, hung, was blocked by one of its triggers, or has
 * loaded many unused bundles (Node cannot unload a module). Every trigger is started again from its arguments.
 *
 * It owns the set of triggers to run in the process and the events that await acknowledgement. An event that was reported
 * and is not yet acknowledged may come again after a restart, so its receiver deduplicates.
 */
import type { ErrorFacts, TriggerAbortKind } from "@tradewind/sdk/program";
import type { Guardian } from "../../child/guardian.ts";
import type { TriggerOutcome } from "../../model/index.ts";
import { messageOf } from "../../service/errors.ts";
import { userEnvironment } from "../../service/user-environment.ts";
import type { RunnerReports, TriggerWork } from "../contract.ts";
import type { RunnerAnswers } from "../process/runner-answers.ts";
import type { FromRunner, LogRecord } from "../process/runner-protocol.ts";
import { StallJudge } from "../process/stall-judge.ts";
import { TriggerChild } from "../process/trigger-child.ts";
import type { TriggerRunnerOptions } from "../process/trigger-runner-options.ts";
import { type Entry, TriggerRoster } from "../triggerer/trigger-roster.ts";

/** Triggers per message: building one large message must not delay this process's heartbeat. */
const CHUNK = 500;
/** A child with more unused bundles than this is replaced at a quiet moment; with twice as many, at once. */
const MAX_DEAD_BUNDLES = 50;
/** How long a trigger may take to pass on that its event is stored. */
const FAREWELL_MS = 1_000;
/** How long a replaced child may take for its triggers' cleanups. */
const RENEWAL_MS = 5_000;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
/** Crashes further apart than this are not consecutive. */
const IN_A_ROW_MS = 60_000;

export interface ProcessParts {
  readonly options: TriggerRunnerOptions;
  /** The child's program. */
  readonly entry: string;
  readonly guardian: Guardian;
  readonly answers: RunnerAnswers;
  readonly nextSerial: () => number;
}

export interface ProcessCrash {
  readonly reason: string;
  /** The triggers that ran in the process; empty if it could not be started. */
  readonly running: readonly TriggerWork[];
  readonly lifetimeMs: number;
  /** The trigger whose code blocked the process at the end. */
  readonly seen: number | null;
}

export interface ProcessListener {
  readonly reports: RunnerReports;
  /** The trigger has ended: it reported its last outcome, or has failed. */
  ended(entry: Entry): void;
  /** Called before the next child is started, to decide which triggers run in it. */
  crashed(crash: ProcessCrash): void;
}

export class SupervisedProcess {
  readonly #parts: ProcessParts;
  readonly #listener: ProcessListener;
  readonly #stalls: StallJudge;
  readonly #roster: TriggerRoster;
  readonly #maxDeadBundles: number;
  #child: TriggerChild | null = null;
  #startedAt = 0;
  #isReady = false;
  /** Armed while there is nothing to run. */
  #idle: NodeJS.Timeout | null = null;
  /** The child was ordered to end: it has no work, or has loaded too many bundles. */
  #isRetiring = false;
  #late: NodeJS.Timeout | null = null;
  /** Armed while the child has loaded too many bundles. */
  #renewal: NodeJS.Timeout | null = null;
  #acknowledgedAt = 0;
  #outbox: Entry[] = [];
  #again: NodeJS.Timeout | null = null;
  /** The child is being ended because of a trigger that has failed for it. */
  #isBlamed = false;
  /** Consecutive crashes. */
  #crashes = 0;
  #progressAt = performance.now();
  #isClosing = false;
  #closed = Promise.withResolvers<void>();

  constructor(parts: ProcessParts, listener: ProcessListener) {
    this.#parts = parts;
    this.#listener = listener;
    this.#roster = new TriggerRoster(parts.nextSerial);
    this.#maxDeadBundles = parts.options.maxDeadBundles ?? MAX_DEAD_BUNDLES;
    this.#stalls = new StallJudge(this.#roster, parts.options.blockLimitMs ?? 2_000, {
      reported: (stall) => listener.reports.blocked(stall),
      condemned: (guilty, error) => this.#condemned(guilty, error),
    });
  }

  /** Process id of the live child. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get size(): number {
    return this.#roster.size;
  }

  /** When its loop last proved to be turning. Without a trigger, no progress is expected. */
  get progressAt(): number {
    if (this.#child === null && this.#roster.size === 0) return performance.now();
    return this.#child?.answeredAt ?? this.#progressAt;
  }

  run(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.#roster.add(entry);
      this.#post(entry);
    }
    this.#attend();
  }

  /** The event is stored. A child that has ended needs no acknowledgement; an outcome of its successor was held until now. */
  ack(entry: Entry): void {
    const { unacknowledged, serial, held } = entry;
    if (unacknowledged === null) return;
    entry.unacknowledged = null;
    this.#acknowledgedAt = performance.now();
    if (unacknowledged === serial) this.#child?.send({ k: "ack", serial });
    else if (held !== null) {
      entry.held = null;
      this.#outcome(entry, held);
    }
  }

  /** Aborts the triggers and runs their cleanups; they report nothing more. */
  stop(entries: readonly Entry[], why: TriggerAbortKind): void {
    const serials: number[] = [];
    for (const entry of entries) {
      const serial = this.#forget(entry);
      if (serial !== null) serials.push(serial);
    }
    if (serials.length > 0) this.#child?.send({ k: "stop", serials, why });
  }

  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    this.#roster.clear();
    this.#stalls.end();
    for (const timer of [this.#again, this.#idle, this.#renewal]) if (timer !== null) clearTimeout(timer);
    const child = this.#child;
    if (child === null) return;
    child.send({ k: "close" });
    const late = setTimeout(() => child.kill("it did not end in time"), graceMs);
    await this.#closed.promise;
    clearTimeout(late);
  }

  /** A child that is monitored and pinged has a constant cost: it exists only while there is something to run. */
  #attend(): void {
    if (this.#isClosing) return;
    if (this.#roster.size > 0) {
      if (this.#idle !== null) clearTimeout(this.#idle);
      this.#idle = null;
      if (this.#child !== null || this.#again !== null) return;
      this.#progressAt = performance.now();
      this.#spawn();
    } else if (this.#child !== null) {
      this.#idle ??= setTimeout(() => this.#retire(), this.#parts.options.idleMs ?? 60_000).unref();
    }
  }

  #retire(): void {
    this.#idle = null;
    if (this.#roster.size > 0 || this.#child === null) return;
    this.#dismiss(this.#child);
  }

  /**
   * An event that awaits its acknowledgement, or that its trigger is just acknowledging to its source, would come again
   * from the next child: the replacement waits for a moment without such events, up to a limit. Later reports of the old
   * child are ignored; they are not acknowledged, so they come again.
   */
  #renew(): void {
    this.#renewal = null;
    const { deadBundles, size } = this.#roster;
    const limit = this.#maxDeadBundles;
    // A child without work ends on its own.
    if (deadBundles <= limit || this.#child === null || !this.#isReady || size === 0) return;
    const isCalm = this.#roster.isCalm && performance.now() - this.#acknowledgedAt >= FAREWELL_MS;
    if (deadBundles <= 2 * limit && !isCalm) {
      this.#renewLater();
      return;
    }
    const why = "the trigger process has loaded many bundles that are not used; starting another";
    this.#parts.options.logger.info(why, { bundles: deadBundles, triggers: size });
    this.#reclaim();
    this.#dismiss(this.#child);
  }

  #renewLater(): void {
    this.#renewal ??= setTimeout(() => this.#renew(), FAREWELL_MS).unref();
  }

  /** Its successor, if there is anything to run, starts after it has ended. */
  #dismiss(child: TriggerChild): void {
    this.#isRetiring = true;
    this.#isReady = false;
    child.send({ k: "close" });
    this.#late = setTimeout(() => child.kill("it did not end in time"), RENEWAL_MS);
  }

  #spawn(): void {
    const { entry, guardian, options } = this.#parts;
    this.#startedAt = performance.now();
    try {
      const child: TriggerChild = new TriggerChild(
        {
          entry,
          environment: userEnvironment(process.env),
          cwd: options.cwd ?? process.cwd(),
          user: options.user ?? null,
          memoryMb: options.memoryMb ?? 2_048,
          silenceMs: options.silenceMs ?? 5_000,
          logger: options.logger,
        },
        {
          message: (message) => this.#message(child, message),
          stall: (report) => this.#stalls.record(report),
          gone: (reason) => this.#gone(child, reason),
        },
      );
      this.#child = child;
      if (child.pid > 0) guardian.watch(child.pid);
    } catch (error) {
      this.#crashed(messageOf(error));
    }
  }

  #message(child: TriggerChild, message: Exclude<FromRunner, { k: "pong" }>): void {
    if (message.k === "ready") {
      if (!this.#isRetiring) this.#ready();
    } else if (message.k === "logs") for (const record of message.records) this.#log(record);
    else if (message.k === "signs") this.#signs(message);
    else if (message.k === "ignoredAbort") this.#ignoredAbort(message);
    else {
      const entry = this.#roster.bySerial(message.serial);
      if (message.k === "request") {
        const { n, ask } = message;
        // Also if it was stopped just now: otherwise the child would wait forever.
        void this.#parts.answers.answer(ask).then((answer) => child.send({ k: "reply", n, ...answer }));
      } else if (entry === undefined) return;
      else if (message.k === "done") this.#end(entry);
      else if (message.k === "ceased") this.#ceased(entry);
      else if (message.k === "members") this.#listener.reports.members(entry.work.id, message.fired);
      else if (entry.unacknowledged === null) this.#outcome(entry, message.outcome);
      else entry.held = message.outcome;
    }
  }

  #ready(): void {
    this.#isReady = true;
    this.#outbox = [];
    for (const entry of this.#roster.entries) this.#post(entry);
  }

  /** Before there is a child nothing is sent: the child starts with everything that is to run by then. */
  #post(entry: Entry): void {
    if (!this.#isReady) return;
    if (this.#outbox.length === 0) setImmediate(() => this.#sendSome());
    this.#outbox.push(entry);
  }

  #sendSome(): void {
    // Lost with the child: its successor starts with everything anyway.
    if (!this.#isReady) this.#outbox = [];
    const entries = this.#outbox.splice(0, CHUNK).filter((entry) => this.#roster.isWaiting(entry));
    const work = entries.map((entry) => this.#roster.assign(entry));
    if (work.length > 0) this.#child?.send({ k: "run", work });
    if (this.#outbox.length > 0) setImmediate(() => this.#sendSome());
  }

  #outcome(entry: Entry, outcome: TriggerOutcome): void {
    const { answers } = this.#parts;
    const { reports } = this.#listener;
    if (outcome.kind === "event") {
      entry.hasFired = true;
      if (entry.work.bundlePath === null) entry.lastEvent = outcome.payload;
      entry.unacknowledged = entry.serial;
      reports.outcome(entry.work.id, outcome);
      return;
    }
    this.#end(entry);
    const words = outcome.kind === "failed" ? { ...outcome, error: answers.error(outcome.error) } : outcome;
    reports.outcome(entry.work.id, words);
  }

  #ceased(entry: Entry): void {
    entry.lastEvent = undefined;
    this.#listener.reports.ceased(entry.work.id);
  }

  #log(raw: LogRecord): void {
    const entry = this.#roster.bySerial(raw.serial);
    if (entry === undefined) return;
    const { level, message, fields } = this.#parts.answers.record(raw);
    this.#listener.reports.log(entry.work.id, level, message, fields);
  }

  #signs({ polled }: Extract<FromRunner, { k: "signs" }>): void {
    for (const serial of polled) {
      const entry = this.#roster.bySerial(serial);
      if (entry !== undefined) this.#listener.reports.polled(entry.work.id);
    }
  }

  #ignoredAbort({ id, kind, args, ms }: Extract<FromRunner, { k: "ignoredAbort" }>): void {
    this.#listener.reports.ignoredAbort({ id, kind, ms, args: this.#parts.answers.text(args) });
  }

  #condemned(guilty: readonly Entry[], error: ErrorFacts): void {
    for (const entry of guilty) this.#outcome(entry, { kind: "failed", error });
    const name = guilty[0] === undefined ? "a trigger that was stopped" : `trigger "${guilty[0].work.kind}"`;
    this.#child?.kill(`${name} blocked all others`);
    this.#isBlamed = true;
  }

  #gone(child: TriggerChild, reason: string): void {
    if (this.#child !== child) return;
    this.#parts.guardian.release(child.pid);
    this.#progressAt = child.answeredAt;
    this.#child = null;
    if (this.#late !== null) clearTimeout(this.#late);
    if (this.#isClosing) {
      this.#closed.resolve();
      return;
    }
    if (this.#isRetiring) {
      this.#isRetiring = false;
      this.#isBlamed = false;
      this.#reclaim();
      this.#attend();
      return;
    }
    this.#crashed(reason);
  }

  #crashed(reason: string): void {
    const isBlamed = this.#isBlamed;
    const who = this.#stalls.current?.who;
    const seen = typeof who === "number" ? (this.#roster.bySerial(who)?.work.id ?? null) : null;
    const running = this.#roster.running();
    this.#isBlamed = false;
    this.#reclaim();
    const lifetimeMs = performance.now() - this.#startedAt;
    if (lifetimeMs > IN_A_ROW_MS) this.#crashes = 0;
    const delayMs = isBlamed ? 0 : Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#crashes++);
    this.#parts.options.logger.warn("the trigger process has ended; starting another", {
      reason,
      delayMs,
      lifetimeMs: Math.round(lifetimeMs),
      triggers: this.#roster.size,
    });
    if (!isBlamed) this.#listener.crashed({ reason, running, lifetimeMs, seen });
    if (this.#isClosing) return;
    this.#again = setTimeout(() => {
      this.#again = null;
      this.#attend();
    }, delayMs);
  }

  /** No child runs any of them. */
  #reclaim(): void {
    this.#isReady = false;
    this.#stalls.end();
    this.#roster.reclaim();
  }

  #end(entry: Entry): void {
    this.#forget(entry);
    this.#listener.ended(entry);
  }

  /** Returns the serial that it had in the current child. */
  #forget(entry: Entry): number | null {
    this.#roster.forget(entry);
    if (this.#roster.deadBundles > this.#maxDeadBundles) this.#renewLater();
    if (this.#roster.size === 0) this.#attend();
    return entry.serial;
  }
}
