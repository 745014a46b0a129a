/**
 * Runs triggers in a child process and keeps them running. If a process crashes and no trigger was observed as the cause,
 * its triggers are isolated from each other in several processes until the guilty trigger is found
 * (isolation/crash-suspects.ts). The others continue.
 *
 * It owns the assignment of triggers to processes, nothing else. If this process dies, the guardian ends the children,
 * and another triggerer starts the triggers again.
 */
import type { ErrorFacts, TriggerAbortKind } from "@tradewind/sdk/program";
import { childEntries } from "../../child/child-entry.ts";
import { Guardian } from "../../child/guardian.ts";
import type { RunnerReports, TriggerWork } from "../contract.ts";
import { CRASHES_ALONE, CrashSuspects, MAIN } from "../isolation/crash-suspects.ts";
import { type ProcessCrash, SupervisedProcess } from "../isolation/supervised-process.ts";
import { type Entry, newEntry } from "../triggerer/trigger-roster.ts";
import { RunnerAnswers } from "./runner-answers.ts";
import type { TriggerRunnerOptions } from "./trigger-runner-options.ts";

/** How long a process that has nothing left to run may take for its triggers' cleanups. */
const LEAVE_MS = 5_000;
const RECENT_MS = 600_000;
const MAX_CRASHES = 1_000;
/** The longest timer that Node supports. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class TriggerRunner {
  readonly #options: TriggerRunnerOptions;
  readonly #guardian: Guardian;
  readonly #answers: RunnerAnswers;
  readonly #suspects = new CrashSuspects();
  /** Every trigger that is to run, and its process. */
  readonly #entries = new Map<number, Entry>();
  readonly #processOf = new Map<Entry, SupervisedProcess>();
  /** By the group of suspects in it, or MAIN. */
  readonly #processes = new Map<number, SupervisedProcess>();
  /** Processes that have nothing left to run. */
  readonly #leaving = new Set<SupervisedProcess>();
  #reports: RunnerReports | null = null;
  #entry = "";
  #lastSerial = 0;
  /** Times of the latest process crashes. */
  #crashedAt: readonly number[] = [];
  #acquittal: NodeJS.Timeout | null = null;
  #isClosing = false;

  constructor(options: TriggerRunnerOptions) {
    this.#options = options;
    this.#guardian = new Guardian(options.logger);
    this.#answers = new RunnerAnswers(options.services, options.logger);
  }

  /** Process id of the child that runs the unsuspected triggers; if all triggers are suspects, of any child. */
  get pid(): number | undefined {
    const main = this.#processes.get(MAIN)?.pid;
    return main ?? [...this.#processes.values()].find(({ pid }) => pid !== undefined)?.pid;
  }

  async start(reports: RunnerReports): Promise<void> {
    this.#reports = reports;
    const { guardian, triggerRunner } = await childEntries();
    this.#entry = triggerRunner;
    this.#guardian.start(guardian);
    this.#arrange();
  }

  run(work: readonly TriggerWork[]): void {
    this.stop(
      work.map(({ id }) => id),
      "stopped",
    );
    const entries = work.map(newEntry);
    for (const entry of entries) this.#entries.set(entry.work.id, entry);
    this.#place(entries);
  }

  /** The last event of this trigger is stored: the trigger continues with its next. */
  ack(id: number): void {
    const entry = this.#entries.get(id);
    if (entry !== undefined) this.#processOf.get(entry)?.ack(entry);
  }

  /** Aborts triggers and runs their cleanup; they make no more reports. Unknown ids are ignored. */
  stop(ids: readonly number[], why: TriggerAbortKind): void {
    const stopped = ids.flatMap((id) => this.#entries.get(id) ?? []);
    for (const [process, entries] of Map.groupBy(stopped, (entry) => this.#processOf.get(entry)))
      process?.stop(entries, why);
    for (const entry of stopped) this.#forget(entry);
    this.#dismissIdle();
  }

  /** Starts every trigger again, in new processes: a package that the old processes have loaded has changed. */
  replaceProcesses(): void {
    const former = [...this.#processes.values()];
    this.#processes.clear();
    this.#place([...this.#entries.values()]);
    for (const process of former) this.#close(process);
  }

  crashes(): { readonly crashes: number; readonly suspects: number } {
    const since = performance.now() - RECENT_MS;
    this.#crashedAt = this.#crashedAt.filter((at) => at >= since);
    return { crashes: this.#crashedAt.length, suspects: this.#suspects.size };
  }

  isSuspect(id: number): boolean {
    return this.#suspects.groupOf(id) !== MAIN;
  }

  /** Progress of the main process; without one, the latest of the others, which are ended one by one anyway. */
  progressAt(): number {
    const main = this.#processes.get(MAIN);
    if (main !== undefined && main.size > 0) return main.progressAt;
    const busy = [...this.#processes.values()].filter(({ size }) => size > 0);
    return busy.length === 0 ? performance.now() : Math.max(...busy.map(({ progressAt }) => progressAt));
  }

  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    if (this.#acquittal !== null) clearTimeout(this.#acquittal);
    const processes = [...this.#processes.values(), ...this.#leaving];
    await Promise.all(processes.map((process) => process.close(graceMs)));
    this.#guardian.stop();
  }

  /** Moves every trigger to the process that it is assigned to now. */
  #arrange(): void {
    this.#nameMain();
    this.#place([...this.#entries.values()]);
    this.#dismissIdle();
    this.#awaitAcquittal();
  }

  #place(entries: readonly Entry[]): void {
    // Before the start, triggers are only recorded.
    if (this.#entry === "" || this.#isClosing) return;
    const moves = Map.groupBy(entries, ({ work }) => this.#suspects.groupOf(work.id));
    for (const [group, members] of moves) {
      const process = this.#processFor(group);
      const arrivals = members.filter((entry) => this.#processOf.get(entry) !== process);
      for (const [former, left] of Map.groupBy(arrivals, (entry) => this.#processOf.get(entry)))
        former?.stop(left, "stopped");
      for (const entry of arrivals) this.#processOf.set(entry, process);
      if (arrivals.length > 0) process.run(arrivals);
    }
  }

  /** If nothing runs in the main process, the largest acquitted group becomes the main process instead of moving. */
  #nameMain(): void {
    if ((this.#processes.get(MAIN)?.size ?? 0) > 0) return;
    const [largest] = [...this.#processes]
      .filter(([group, { size }]) => size > 0 && !this.#suspects.hasGroup(group))
      .sort(([, a], [, b]) => b.size - a.size);
    if (largest === undefined) return;
    const [group, process] = largest;
    this.#leave(MAIN);
    this.#processes.delete(group);
    this.#processes.set(MAIN, process);
  }

  #processFor(group: number): SupervisedProcess {
    const existing = this.#processes.get(group);
    if (existing !== undefined) return existing;
    const parts = {
      ...{ options: this.#options, entry: this.#entry, guardian: this.#guardian, answers: this.#answers },
      nextSerial: () => ++this.#lastSerial,
    };
    const process: SupervisedProcess = new SupervisedProcess(parts, {
      reports: this.#reports as RunnerReports,
      ended: (entry) => {
        this.#forget(entry);
        this.#dismissIdle();
      },
      crashed: (crash) => this.#crashed(process, crash),
    });
    this.#processes.set(group, process);
    return process;
  }

  /** The main process is kept for a while: new triggers arrive all the time. */
  #dismissIdle(): void {
    for (const [group, { size }] of this.#processes) if (group !== MAIN && size === 0) this.#leave(group);
  }

  #leave(group: number): void {
    const process = this.#processes.get(group);
    if (process === undefined) return;
    this.#processes.delete(group);
    this.#close(process);
  }

  #close(process: SupervisedProcess): void {
    this.#leaving.add(process);
    void process.close(LEAVE_MS).then(() => this.#leaving.delete(process));
  }

  #crashed(process: SupervisedProcess, { lifetimeMs, reason, running, seen }: ProcessCrash): void {
    const [group = MAIN] = [...this.#processes].find(([, each]) => each === process) ?? [];
    const suspects = running.map(({ id, bundlePath, kind }) => ({ id, kind: `${bundlePath} ${kind}` }));
    const at = performance.now();
    this.#crashedAt = [...this.#crashedAt, at].slice(-MAX_CRASHES);
    const guilty = this.#suspects.crashed({ group, suspects, at, lifetimeMs, seen });
    const entry = guilty === null ? undefined : this.#entries.get(guilty);
    if (entry !== undefined) {
      process.stop([entry], "stopped");
      this.#forget(entry);
      this.#reports?.outcome(entry.work.id, { kind: "failed", error: this.#answers.error(crashed(reason)) });
    }
    this.#arrange();
    this.#options.logger.warn("isolating triggers after a crash", {
      suspects: this.#suspects.size,
      processes: this.#processes.size,
      ...(entry !== undefined && { guilty: entry.work.id, kind: entry.work.kind }),
    });
  }

  #awaitAcquittal(): void {
    if (this.#acquittal !== null) clearTimeout(this.#acquittal);
    this.#acquittal = null;
    const at = this.#suspects.nextAcquittal();
    if (at === null) return;
    const delayMs = Math.min(MAX_TIMER_MS, Math.max(0, at - performance.now()));
    this.#acquittal = setTimeout(() => {
      this.#suspects.acquit(performance.now());
      this.#arrange();
    }, delayMs);
    this.#acquittal.unref();
  }

  #forget(entry: Entry): void {
    const { id } = entry.work;
    this.#processOf.delete(entry);
    if (this.#entries.get(id) !== entry) return;
    this.#entries.delete(id);
    this.#suspects.forget(id);
  }
}

/** The error of a trigger that repeatedly ends its process. */
function crashed(reason: string): ErrorFacts {
  const message = `The trigger crashed a process in which nothing else ran, ${CRASHES_ALONE} times: ${reason}`;
  return { name: "Error", message, stack: null, code: "TRIGGER_CRASHED" };
}
