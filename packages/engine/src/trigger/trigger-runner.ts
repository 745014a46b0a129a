/**
 * Runs triggers in a child process and keeps them running: when the child dies, hangs, or is held up by one of them,
 * it is replaced, and everything except the guilty one is started again from its arguments. So it is when it has loaded
 * many bundles that nothing uses any more: what Node has loaded it cannot unload.
 *
 * It owns which triggers are to run and which events await their acknowledgement, nothing else. If this process dies,
 * the guardian ends the child; another triggerer starts the triggers anew. An event that was reported and not yet
 * acknowledged may come once more after a restart, so whoever stores events tells them apart.
 */
import type { ErrorFacts } from "@tradewind/sdk/program";
import { childEntries } from "../execute/child-entry.ts";
import { taskEnvironment } from "../execute/environment.ts";
import { Guardian } from "../execute/guardian.ts";
import { messageOf } from "../service/errors.ts";
import type { Runner, RunnerReports, TriggerOutcome, TriggerWork } from "./contract.ts";
import { RunnerAnswers } from "./runner-answers.ts";
import type { FromRunner, LogRecord } from "./runner-protocol.ts";
import { crashed, RunnerRestart } from "./runner-restart.ts";
import { StallJudge } from "./stall-judge.ts";
import type { Stall } from "./stall-watch.ts";
import { TriggerChild } from "./trigger-child.ts";
import { type Entry, TriggerRoster } from "./trigger-roster.ts";
import type { TriggerRunnerOptions } from "./trigger-runner-options.ts";

/** Triggers per message: what is made in one piece must not keep this process from its heartbeat. */
const CHUNK = 500;
/** With more bundles that nothing uses a child is replaced, when it suits; with twice as many at once. */
const MAX_DEAD_BUNDLES = 50;
/** So long a trigger may take to pass on that its event is stored. */
const FAREWELL_MS = 1_000;
/** How long a child that is replaced may take for its triggers' cleanups. */
const RENEWAL_MS = 5_000;

export class TriggerRunner implements Runner {
  readonly #options: TriggerRunnerOptions;
  readonly #guardian: Guardian;
  readonly #restart = new RunnerRestart();
  readonly #answers: RunnerAnswers;
  readonly #stalls: StallJudge;
  readonly #roster = new TriggerRoster();
  readonly #maxDeadBundles: number;
  #reports: RunnerReports | null = null;
  #child: TriggerChild | null = null;
  #entry = "";
  #isReady = false;
  /** Runs while there is nothing to run. */
  #idle: NodeJS.Timeout | null = null;
  /** The child was told to end: for want of work, or because it has loaded too much. */
  #isRetiring = false;
  #late: NodeJS.Timeout | null = null;
  /** Runs while the child has loaded too much. */
  #renewal: NodeJS.Timeout | null = null;
  #acknowledgedAt = 0;
  #outbox: Entry[] = [];
  #waves: (readonly number[])[] = [];
  /** Those of the wave that was sent last and are not proven yet. */
  #wave = new Set<Entry>();
  #again: NodeJS.Timeout | null = null;
  /** The child is being ended because of a trigger that has paid for it. */
  #isBlamed = false;
  #progressAt = performance.now();
  #isClosing = false;
  #closed = Promise.withResolvers<void>();

  constructor(options: TriggerRunnerOptions) {
    this.#options = options;
    this.#maxDeadBundles = options.maxDeadBundles ?? MAX_DEAD_BUNDLES;
    this.#guardian = new Guardian(options.logger);
    this.#answers = new RunnerAnswers(options.services, options.logger);
    this.#stalls = new StallJudge(this.#roster, options.blockLimitMs ?? 2_000, {
      told: (stall) => this.#reports?.blocked(stall),
      condemned: (guilty, error) => this.#condemned(guilty, error),
    });
  }

  /** Of the child that is alive now. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async start(reports: RunnerReports): Promise<void> {
    this.#reports = reports;
    const { guardian, triggerRunner } = await childEntries();
    this.#entry = triggerRunner;
    this.#guardian.start(guardian);
    this.#attend();
  }

  run(work: readonly TriggerWork[]): void {
    for (const each of work) {
      this.stop([each.id]);
      this.#post(this.#roster.add(each));
    }
    this.#attend();
  }

  ack(id: number): void {
    const entry = this.#roster.get(id);
    if (entry === undefined || entry.unacknowledged === null) return;
    const { unacknowledged, serial, held } = entry;
    entry.unacknowledged = null;
    this.#acknowledgedAt = performance.now();
    // An event of a child that is gone has nobody to go on; its successor's word has waited for this.
    if (unacknowledged === serial) this.#child?.send({ k: "ack", serial });
    else if (held !== null) {
      entry.held = null;
      this.#outcome(entry, held);
    }
  }

  stop(ids: readonly number[]): void {
    const serials: number[] = [];
    for (const id of ids) {
      const serial = this.#forget(this.#roster.get(id));
      if (serial !== null) serials.push(serial);
    }
    if (serials.length > 0) this.#child?.send({ k: "stop", serials });
  }

  /** Without a trigger there is nothing that could fail to make progress. */
  progressAt(): number {
    if (this.#child === null && this.#roster.size === 0) return performance.now();
    return this.#child?.answeredAt ?? this.#progressAt;
  }

  /** A child, watched and pinged, costs a little all the time: there is one only while there is something to run. */
  #attend(): void {
    if (this.#isClosing || this.#entry === "") return;
    if (this.#roster.size > 0) {
      if (this.#idle !== null) clearTimeout(this.#idle);
      this.#idle = null;
      if (this.#child !== null || this.#again !== null) return;
      this.#progressAt = performance.now();
      this.#spawn();
    } else if (this.#child !== null) {
      this.#idle ??= setTimeout(() => this.#retire(), this.#options.idleMs ?? 60_000).unref();
    }
  }

  #retire(): void {
    this.#idle = null;
    if (this.#roster.size > 0 || this.#child === null) return;
    this.#dismiss(this.#child);
  }

  /**
   * An event that awaits its acknowledgement, or whose trigger is just passing that on, would come again from the next
   * child: the change waits for a moment without one, but not for ever. What the child says from then on is not heard;
   * none of it is acknowledged, so it comes again.
   */
  #renew(): void {
    this.#renewal = null;
    const { deadBundles, size } = this.#roster;
    const limit = this.#maxDeadBundles;
    // One without work goes by itself.
    if (deadBundles <= limit || this.#child === null || !this.#isReady || size === 0) return;
    const isCalm = this.#roster.isCalm && performance.now() - this.#acknowledgedAt >= FAREWELL_MS;
    // One that is still being started carefully has other worries.
    if (this.#wave.size > 0 || (deadBundles <= 2 * limit && !isCalm)) {
      this.#renewLater();
      return;
    }
    const why = "the trigger process has loaded many bundles that are not used; starting another";
    this.#options.logger.info(why, { bundles: deadBundles, triggers: size });
    this.#takeBack();
    this.#dismiss(this.#child);
  }

  #renewLater(): void {
    this.#renewal ??= setTimeout(() => this.#renew(), FAREWELL_MS).unref();
  }

  /** Its successor, if there is anything to run, starts when it has gone. */
  #dismiss(child: TriggerChild): void {
    this.#isRetiring = true;
    this.#isReady = false;
    child.send({ k: "close" });
    this.#late = setTimeout(() => child.kill("it did not end in time"), RENEWAL_MS);
  }

  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    this.#roster.clear();
    this.#stalls.end();
    if (this.#again !== null) clearTimeout(this.#again);
    if (this.#idle !== null) clearTimeout(this.#idle);
    if (this.#renewal !== null) clearTimeout(this.#renewal);
    const child = this.#child;
    if (child !== null) {
      child.send({ k: "close" });
      const late = setTimeout(() => child.kill("it did not end in time"), graceMs);
      await this.#closed.promise;
      clearTimeout(late);
    }
    this.#guardian.stop();
  }

  #spawn(): void {
    const { cwd, envAllow, heapMb, silenceMs, logger } = this.#options;
    try {
      const child: TriggerChild = new TriggerChild(
        {
          entry: this.#entry,
          environment: taskEnvironment(process.env, envAllow),
          cwd: cwd ?? process.cwd(),
          heapMb: heapMb ?? 1024,
          silenceMs: silenceMs ?? 5_000,
          logger,
        },
        {
          message: (message) => this.#message(child, message),
          stall: (report) => this.#stalls.note(report),
          gone: (reason) => this.#gone(child, reason),
        },
      );
      this.#child = child;
      if (child.pid > 0) this.#guardian.watch(child.pid);
    } catch (error) {
      this.#startAgain(messageOf(error), null);
    }
  }

  #message(child: TriggerChild, message: Exclude<FromRunner, { k: "pong" }>): void {
    if (message.k === "ready") {
      if (!this.#isRetiring) this.#ready();
    } else if (message.k === "logs") for (const record of message.records) this.#log(record);
    else if (message.k === "signs") this.#signs(message);
    else {
      const entry = this.#roster.bySerial(message.serial);
      if (message.k === "request") {
        const { n, ask } = message;
        // Also when it was stopped just now: the child would wait for ever.
        void this.#answers.answer(ask).then((answer) => child.send({ k: "reply", n, ...answer }));
      } else if (entry === undefined) return;
      else if (message.k === "done") this.#forget(entry);
      else if (message.k === "ceased") this.#ceased(entry);
      else if (entry.unacknowledged === null) this.#outcome(entry, message.outcome);
      else entry.held = message.outcome;
    }
  }

  #ready(): void {
    this.#isReady = true;
    this.#waves = [...this.#restart.waves(this.#roster.ids)];
    this.#outbox = [];
    this.#nextWave();
  }

  #nextWave(): void {
    const wave = this.#waves.shift();
    if (wave === undefined) return;
    for (const id of wave) {
      const entry = this.#roster.get(id);
      // One that was asked for meanwhile runs already.
      if (entry === undefined || entry.serial !== null) continue;
      if (this.#waves.length > 0) this.#wave.add(entry);
      this.#post(entry);
    }
    if (this.#wave.size === 0) this.#nextWave();
  }

  /** Before there is a child nothing is sent: it begins with everything that is to run by then. */
  #post(entry: Entry): void {
    if (!this.#isReady) return;
    if (this.#outbox.length === 0) setImmediate(() => this.#sendSome());
    this.#outbox.push(entry);
  }

  #sendSome(): void {
    // Lost with the child: its successor begins with everything anyway.
    if (!this.#isReady) this.#outbox = [];
    const entries = this.#outbox.splice(0, CHUNK).filter((entry) => this.#roster.isWaiting(entry));
    const work = entries.map((entry) => this.#roster.assign(entry));
    if (work.length > 0) this.#child?.send({ k: "run", work });
    if (this.#outbox.length > 0) setImmediate(() => this.#sendSome());
  }

  #outcome(entry: Entry, outcome: TriggerOutcome): void {
    if (outcome.kind === "event") {
      entry.hasFired = true;
      if (entry.work.bundlePath === null) entry.lastEvent = outcome.payload;
      entry.unacknowledged = entry.serial;
      this.#reports?.outcome(entry.work.id, outcome);
      return;
    }
    this.#forget(entry);
    const words =
      outcome.kind === "failed" ? { ...outcome, error: this.#answers.error(outcome.error) } : outcome;
    this.#reports?.outcome(entry.work.id, words);
  }

  #ceased(entry: Entry): void {
    entry.lastEvent = undefined;
    this.#reports?.ceased(entry.work.id);
  }

  #log(raw: LogRecord): void {
    const entry = this.#roster.bySerial(raw.serial);
    if (entry === undefined) return;
    const { level, message, fields } = this.#answers.record(raw);
    this.#reports?.log(entry.work.id, level, message, fields);
  }

  #signs({ polled, steady }: Extract<FromRunner, { k: "signs" }>): void {
    for (const serial of polled) {
      const entry = this.#roster.bySerial(serial);
      if (entry !== undefined) this.#reports?.polled(entry.work.id);
    }
    for (const serial of steady) {
      const entry = this.#roster.bySerial(serial);
      if (entry === undefined) continue;
      entry.isProven = true;
      this.#proved(entry);
    }
  }

  #proved(entry: Entry): void {
    if (this.#wave.delete(entry) && this.#wave.size === 0) this.#nextWave();
  }

  #condemned(guilty: readonly Entry[], error: ErrorFacts): void {
    for (const entry of guilty) this.#outcome(entry, { kind: "failed", error });
    const name = guilty[0] === undefined ? "a trigger that was stopped" : `trigger "${guilty[0].work.kind}"`;
    this.#child?.kill(`${name} held up all others`);
    this.#isBlamed = true;
  }

  #gone(child: TriggerChild, reason: string): void {
    if (this.#child !== child) return;
    this.#guardian.release(child.pid);
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
      this.#restart.left(performance.now());
      this.#takeBack();
      this.#attend();
      return;
    }
    this.#startAgain(reason, this.#stalls.current);
  }

  #startAgain(reason: string, stall: Stall | null): void {
    const isBlamed = this.#isBlamed;
    const casualties = this.#roster.casualties();
    // Seen once is enough to be noted: it takes two deaths to be blamed for it.
    const seen = typeof stall?.who === "number" ? this.#roster.bySerial(stall.who) : undefined;
    this.#isBlamed = false;
    this.#takeBack();
    let delayMs = 0;
    if (!isBlamed) {
      const verdict = this.#restart.died(performance.now(), casualties, seen?.work.id ?? null);
      delayMs = verdict.delayMs;
      const guilty = verdict.guilty === null ? undefined : this.#roster.get(verdict.guilty);
      if (guilty !== undefined) this.#outcome(guilty, { kind: "failed", error: crashed(reason) });
    }
    this.#options.logger.warn("the trigger process has ended; starting another", {
      reason,
      delayMs,
      triggers: this.#roster.size,
    });
    this.#again = setTimeout(() => {
      this.#again = null;
      this.#attend();
    }, delayMs);
  }

  /** There is no child that runs any of them. */
  #takeBack(): void {
    this.#isReady = false;
    this.#stalls.end();
    this.#wave.clear();
    this.#roster.takeBack();
  }

  /** Answers the serial it had in the present child. */
  #forget(entry: Entry | undefined): number | null {
    if (entry === undefined) return null;
    this.#roster.forget(entry);
    if (this.#roster.deadBundles > this.#maxDeadBundles) this.#renewLater();
    if (this.#roster.size === 0) this.#attend();
    this.#proved(entry);
    return entry.serial;
  }
}
