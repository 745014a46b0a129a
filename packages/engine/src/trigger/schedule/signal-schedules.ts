/**
 * Creates the runs of DAGs that are scheduled on signals. The names of new signals are read once for all DAGs; a DAG that
 * they may concern is then evaluated from its own position on. Every write is a compare-and-set against the state it was
 * computed from (store/signal/signal-schedules.ts), so any number of triggerers may do this at once.
 *
 * The state in this process only saves reads, and never decides: a new process reads every schedule from its stored
 * position on.
 */
import type { SignalCondition } from "@tradewind/sdk/manifest";
import { ASSETS, compileCondition, hasWildcard, namesMatch } from "../../model/index.ts";
import { isReserved, likePattern } from "../../model/signal/signal-names.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import {
  CommitUnknownError,
  type Database,
  isContended,
  isTransient,
} from "../../store/database/database.ts";
import {
  listSchedules,
  moveSchedule,
  passSchedules,
  readSchedules,
  type ScheduleRow,
  type SentName,
  scanLog,
} from "../../store/signal/signal-schedules.ts";
import { signalLeaves } from "../../store/signal/signal-schedules-publish.ts";
import {
  comparePositions,
  type LogPosition,
  laterPosition,
  startNow,
} from "../../store/signal/signals-position.ts";
import { type LogFilter, readMatching } from "../../store/signal/signals-read.ts";
import { gathered } from "./asset-schedules-runs.ts";
import { type CompiledSchedule, firings } from "./signal-schedules-runs.ts";

/** Names per read, and signals with their values per read. */
const NAMES_AT_ONCE = 5_000;
const SIGNALS_AT_ONCE = 200;
/** If another triggerer processes the same DAG, it is polled again after this long. */
const BUSY_MS = 100;
const FAILED_MS = 5_000;
const PASS_MS = 30_000;

type SignalLeaf = Extract<SignalCondition, { kind: "signal" }>;

/** A schedule and its state in this process. */
interface Entry extends CompiledSchedule {
  readonly name: string;
  readonly revision: string;
  readonly leaves: readonly SignalLeaf[];
  readonly filter: Omit<LogFilter, "afterVersion">;
  isAwake: boolean;
  /** From the stored position up to here there is nothing for this schedule. */
  clearTo: LogPosition;
  /** There may be a signal for it after `clearTo`; then no poll skips it. */
  isDue: boolean;
  /** By `performance.now()`. */
  notBefore: number;
}

export interface SchedulesOptions {
  readonly database: Database;
  readonly logger: Logger;
  /** Called after runs were created, or may have been. */
  readonly onRuns: () => void;
  /** How often the positions of DAGs without matching signals are stored. Default: 30 s. */
  readonly passMs?: number;
}

export interface ScheduleRead {
  /** False if the time ran out before everything was read. */
  readonly isComplete: boolean;
  /** A signal is stored but not readable yet, because an older transaction is still open. */
  readonly isHeld: boolean;
  /** When to poll again without a wake-up; null: only after a wake-up. */
  readonly againMs: number | null;
}

export class SignalSchedules {
  readonly #options: SchedulesOptions;
  readonly #database: Database;
  #entries = new Map<string, Entry>();
  #exact = new Map<string, Entry[]>();
  #patterns: Entry[] = [];
  #namespaces: readonly string[] | null = [];
  #wantsStates = false;
  /** Everything up to here was read, for all schedules loaded at that time. */
  #scanned: LogPosition | null = null;
  #isChanged = true;
  #passedAt = performance.now();

  constructor(options: SchedulesOptions) {
    this.#options = options;
    this.#database = options.database;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** True if a schedule is on the engine's own signals. */
  get wantsStates(): boolean {
    return this.#wantsStates;
  }

  /** DAGs may have been published, paused or unpaused. */
  changed(): void {
    this.#isChanged = true;
  }

  async read(deadline: number): Promise<ScheduleRead> {
    if (this.#isChanged) await this.#load();
    if (this.#entries.size === 0) {
      this.#scanned = null;
      return { isComplete: true, isHeld: false, againMs: null };
    }
    const { head, isComplete, isHeld } = await this.#scan(deadline);
    const isDone = await this.#run(head, deadline);
    if (!isComplete || !isDone) return { isComplete: false, isHeld, againMs: null };
    await this.#pass();
    const againMs = this.#due().reduce<number | null>(
      (first, { notBefore }) => Math.min(first ?? FAILED_MS, Math.max(0, notBefore - performance.now())),
      null,
    );
    return { isComplete, isHeld, againMs };
  }

  async #load(): Promise<void> {
    this.#isChanged = false;
    const rows = await listSchedules(this.#database).catch((error) => {
      this.#isChanged = true;
      throw error;
    });
    const entries = rows.flatMap((row) => this.#entryOf(row) ?? []);
    this.#entries = new Map(entries.map((entry) => [entry.name, entry]));
    this.#index();
  }

  #entryOf(row: ScheduleRow): Entry | null {
    const known = this.#entries.get(row.name);
    if (known === undefined || known.revision !== row.revision) return this.#newEntry(row);
    if (known.isAwake && !known.isDue && this.#scanned)
      known.clearTo = laterPosition(known.clearTo, this.#scanned);
    // Its signals were skipped while it was asleep.
    if (row.isAwake && !known.isAwake) known.isDue = true;
    known.isAwake = row.isAwake;
    return known;
  }

  /** Null if the schedule is invalid, which must not affect other schedules. */
  #newEntry({ dagId, isAwake, name, position, revision, terms }: ScheduleRow): Entry | null {
    try {
      const condition = compileCondition(terms.when, { keepValues: terms.gather === undefined });
      const leaves = signalLeaves(terms.when);
      return {
        ...{ name, revision, terms, condition, leaves, filter: filterOf(leaves), isAwake },
        ...{ clearTo: position, isDue: isAwake, notBefore: 0 },
      };
    } catch (error) {
      this.#options.logger.error("a DAG's schedule cannot be read", { dagId, error: messageOf(error) });
      return null;
    }
  }

  #index(): void {
    this.#exact = new Map();
    this.#patterns = [];
    const namespaces = new Set<string>();
    for (const entry of this.#entries.values()) {
      for (const { namespace } of entry.leaves) namespaces.add(namespace);
      if (entry.leaves.some(hasWildcard)) this.#patterns.push(entry);
      else
        for (const name of new Set(entry.leaves.map(nameOf))) {
          const entries = this.#exact.get(name);
          if (entries) entries.push(entry);
          else this.#exact.set(name, [entry]);
        }
    }
    this.#namespaces = [...namespaces].some((name) => name.includes("*")) ? null : [...namespaces];
    // Asset events are published like signals of tasks, not like the engine's own.
    this.#wantsStates = [...namespaces].some((name) => name !== ASSETS && isReserved(name));
  }

  /** Determines which schedules may have something to do. */
  async #scan(deadline: number): Promise<{ head: LogPosition; isComplete: boolean; isHeld: boolean }> {
    // All schedules loaded now are due: each reads from its own position.
    this.#scanned ??= (await startNow(this.#database)).position;
    for (;;) {
      const after = this.#scanned;
      const { head, isHeld, names, position } = await scanLog(
        this.#database,
        after,
        this.#namespaces,
        NAMES_AT_ONCE,
      );
      for (const name of names) for (const entry of this.#matching(name)) markDue(entry, name, after);
      this.#scanned = position;
      const isComplete = names.length < NAMES_AT_ONCE;
      if (isComplete || performance.now() > deadline) return { head, isComplete, isHeld };
    }
  }

  #matching(name: SentName): Entry[] {
    const exact = this.#exact.get(nameOf(name)) ?? [];
    if (this.#patterns.length === 0) return exact;
    return [
      ...exact,
      ...this.#patterns.filter(({ leaves }) => leaves.some((leaf) => namesMatch(leaf, name))),
    ];
  }

  /** One page per schedule in turn, so that a schedule that is far behind does not delay others. True if all are done. */
  async #run(head: LogPosition, deadline: number): Promise<boolean> {
    for (;;) {
      const now = performance.now();
      const due = this.#due().filter(({ notBefore }) => notBefore <= now);
      if (due.length === 0) return true;
      const rows = await readSchedules(
        this.#database,
        due.map(({ name }) => name),
      );
      const byName = new Map(rows.map((row) => [row.name, row]));
      for (const entry of due) {
        await this.#runOne(entry, byName.get(entry.name), head);
        if (performance.now() > deadline) return false;
      }
    }
  }

  async #runOne(entry: Entry, row: ScheduleRow | undefined, head: LogPosition): Promise<void> {
    if (row === undefined || row.revision !== entry.revision || !row.isAwake) {
      // Published again, deleted or paused: the reload finds out.
      this.#isChanged = true;
      entry.notBefore = performance.now() + BUSY_MS;
      return;
    }
    try {
      await this.#advance(entry, row, head);
    } catch (error) {
      const isDoubtful = error instanceof CommitUnknownError;
      if (isDoubtful) this.#options.onRuns();
      if (isDoubtful || isTransient(error)) throw error;
      const isBusy = isContended(error);
      entry.notBefore = performance.now() + (isBusy ? BUSY_MS : FAILED_MS);
      if (isBusy) return;
      const facts = { dagId: row.dagId, error: messageOf(error), againInMs: FAILED_MS };
      this.#options.logger.warn("could not create the runs of a DAG", facts);
    }
  }

  async #advance(entry: Entry, row: ScheduleRow, head: LogPosition): Promise<void> {
    const after = laterPosition(row.position, entry.clearTo);
    if (comparePositions(after, head) >= 0) return isClear(entry, after, head);
    const { position, rows } = await readMatching(this.#database, {
      after,
      upTo: head,
      filter: { ...entry.filter, afterVersion: row.afterVersion },
      limit: SIGNALS_AT_ONCE,
    });
    const isEnd = comparePositions(position, head) >= 0;
    const found =
      entry.terms.gather === undefined
        ? firings(entry, row.state, rows)
        : await gathered(this.#database, entry, row.state, { signals: rows, isEnd });
    // No signal for this schedule: not worth a transaction.
    if (found === null) return isClear(entry, position, head);
    const moved = await moveSchedule(this.#database, row, { ...found, to: position });
    if (moved === null) {
      entry.notBefore = performance.now() + BUSY_MS;
      return;
    }
    if (moved.added > 0) this.#options.onRuns();
    if (moved.dropped.length > 0)
      this.#options.logger.info("signals created no run: a run with this id already exists", {
        dagId: row.dagId,
        runIds: [...new Set(moved.dropped)].slice(0, 20),
        signals: moved.dropped.length,
      });
    isClear(entry, position, head);
  }

  #due(): Entry[] {
    return [...this.#entries.values()].filter(({ isAwake, isDue }) => isAwake && isDue);
  }

  async #pass(): Promise<void> {
    const { passMs = PASS_MS } = this.#options;
    if (performance.now() - this.#passedAt < passMs || this.#scanned === null) return;
    this.#passedAt = performance.now();
    const idle = [...this.#entries.values()].filter(({ isAwake, isDue }) => isAwake && !isDue);
    await passSchedules(this.#database, idle, this.#scanned, passMs / 2);
  }
}

function markDue(entry: Entry, name: SentName, after: LogPosition): void {
  if (!entry.isAwake || entry.isDue || comparePositions(name, entry.clearTo) <= 0) return;
  entry.isDue = true;
  entry.clearTo = laterPosition(entry.clearTo, after);
}

function isClear(entry: Entry, to: LogPosition, head: LogPosition): void {
  entry.clearTo = to;
  entry.isDue = comparePositions(to, head) < 0;
}

/** Wider than the condition if it spans namespaces: the condition itself decides. */
function filterOf(leaves: readonly SignalLeaf[]): Omit<LogFilter, "afterVersion"> {
  const namespaces = new Set(leaves.map(({ namespace }) => namespace));
  return {
    namespace: likePattern(namespaces.size === 1 ? [...namespaces][0]! : "*"),
    keys: [...new Set(leaves.map(({ key }) => likePattern(key)))],
    sender: null,
    since: null,
  };
}

function nameOf({ key, namespace }: { readonly namespace: string; readonly key: string }): string {
  return `${namespace}\n${key}`;
}
