/** Sources that read a small table and compare it with their last reading, so that every way to change it is covered. */
import type { Topic as WakeUp } from "../../job/wake-up.ts";
import type { Signal } from "../../signal/signal.ts";
import type { Database } from "../../store/database/database.ts";
import { type ErrorCounts, errorCounts } from "../../store/ui/home.ts";
import {
  type LiveApprovalRow,
  type LiveDagRow,
  liveApprovals,
  liveBackfills,
  liveDags,
  liveImportErrors,
  liveJobs,
  livePools,
} from "../../store/ui/live-facts.ts";
import { WAIT_CHANGES } from "./live-invalidations.ts";
import { type LiveMessage, MOST_ENTRIES } from "./live-messages.ts";
import type { LiveSource, Reading } from "./live-source.ts";
import { dagTopic } from "./live-topics.ts";
import type { WatchedTopics } from "./watched-topics.ts";

interface Change<R> {
  /** New rows, and rows that are not as before. */
  readonly changed: readonly R[];
  readonly gone: readonly string[];
}

/** The rows of the last reading, by key. */
class Known<R> {
  #rows: ReadonlyMap<string, R> | null = null;

  keys(): string[] {
    return [...(this.#rows?.keys() ?? [])];
  }

  /** Nothing has changed at the first reading. */
  compare(rows: ReadonlyMap<string, R>): Change<R> {
    const known = this.#rows;
    this.#rows = rows;
    if (known === null) return { changed: [], gone: [] };
    const isNew = ([key, row]: [string, R]) => JSON.stringify(row) !== JSON.stringify(known.get(key));
    return {
      changed: [...rows].filter(isNew).map(([, row]) => row),
      gone: [...known.keys()].filter((key) => !rows.has(key)),
    };
  }

  keep(isKept: (row: R) => boolean): void {
    if (this.#rows !== null) this.#rows = new Map([...this.#rows].filter(([, row]) => isKept(row)));
  }

  forget(): void {
    this.#rows = null;
  }
}

function keyed<R, K extends keyof R>(rows: readonly R[], key: K): Map<string, R> {
  return new Map(rows.map((row) => [String(row[key]), row]));
}

export class LiveDags implements LiveSource {
  readonly gapMs = 100;
  readonly sweepMs = 10_000;
  readonly #dags = new Known<LiveDagRow>();
  readonly #errors = new Known<{ readonly file: string }>();

  isWanted(watched: WatchedTopics): boolean {
    return watched.has("dags") || watched.has("home") || watched.dags.size > 0;
  }

  onWakeUp(topic: WakeUp): boolean {
    return topic === "dags";
  }

  reset(): void {
    this.#dags.forget();
    this.#errors.forget();
  }

  async read(database: Database, watched: WatchedTopics): Promise<Reading> {
    const [rows, errorRows] = await Promise.all([liveDags(database), liveImportErrors(database)]);
    const dags = this.#dags.compare(keyed(rows, "dag_id"));
    const errors = this.#errors.compare(keyed(errorRows, "file"));
    const messages: LiveMessage[] = [];
    const lists = [dags.changed, dags.gone, errors.changed, errors.gone] as const;
    if (lists.some(({ length }) => length > 0))
      messages.push({
        topic: "dags",
        dags: dags.changed.slice(0, MOST_ENTRIES),
        deleted: dags.gone.slice(0, MOST_ENTRIES),
        import_errors: errors.changed.slice(0, MOST_ENTRIES).map(({ file }) => file),
        imported: errors.gone.slice(0, MOST_ENTRIES),
        more: lists.some(({ length }) => length > MOST_ENTRIES),
      });
    for (const dag of dags.changed)
      if (watched.dags.has(dag.dag_id))
        messages.push({ topic: dagTopic(dag.dag_id), dag, is_deleted: false, runs: [] });
    for (const dagId of dags.gone)
      if (watched.dags.has(dagId))
        messages.push({ topic: dagTopic(dagId), dag: null, is_deleted: true, runs: [] });
    return { messages };
  }
}

export class LiveBackfills implements LiveSource {
  readonly gapMs = 500;
  readonly sweepMs = 5_000;
  readonly #known = new Known<Awaited<ReturnType<typeof liveBackfills>>[number]>();

  isWanted(watched: WatchedTopics): boolean {
    return watched.has("backfills") || watched.has("home");
  }

  onSignal({ namespace }: Signal): boolean {
    return namespace === "run" && this.#known.keys().length > 0;
  }

  onWakeUp(topic: WakeUp): boolean {
    return topic === "backfills" || (topic === "ended" && this.#known.keys().length > 0);
  }

  reset(): void {
    this.#known.forget();
  }

  async read(database: Database): Promise<Reading> {
    const rows = await liveBackfills(database, this.#known.keys().map(Number));
    const { changed } = this.#known.compare(keyed(rows, "id"));
    // An ended one is read once more, to find its last state, and not again.
    this.#known.keep(({ state }) => state === "running" || state === "paused");
    return { messages: changed.length === 0 ? [] : [{ topic: "backfills", backfills: [...changed] }] };
  }
}

/** A process that dies sends nothing: its lease expires. So it also reads regularly. */
export class LiveJobs implements LiveSource {
  readonly gapMs = 500;
  readonly sweepMs = 2_000;
  readonly #known = new Known<Awaited<ReturnType<typeof liveJobs>>[number]>();

  isWanted(watched: WatchedTopics): boolean {
    return watched.has("jobs") || watched.has("home");
  }

  onWakeUp(topic: WakeUp): boolean {
    return topic === "jobs" || topic === "assignments";
  }

  reset(): void {
    this.#known.forget();
  }

  async read(database: Database): Promise<Reading> {
    const rows = await liveJobs(database, this.#known.keys().map(Number));
    const { changed } = this.#known.compare(keyed(rows, "id"));
    this.#known.keep(({ state }) => state === "running");
    return { messages: changed.length === 0 ? [] : [{ topic: "jobs", jobs: [...changed] }] };
  }
}

export class LivePools implements LiveSource {
  readonly gapMs = 500;
  readonly sweepMs = 2_000;
  readonly #known = new Known<Awaited<ReturnType<typeof livePools>>[number]>();

  isWanted(watched: WatchedTopics): boolean {
    return watched.has("settings") || watched.has("home");
  }

  onWakeUp(topic: WakeUp): boolean {
    return topic === "pools" || topic === "moves" || topic === "states";
  }

  reset(): void {
    this.#known.forget();
  }

  async read(database: Database): Promise<Reading> {
    const { changed, gone } = this.#known.compare(keyed(await livePools(database), "name"));
    if (changed.length + gone.length === 0) return { messages: [] };
    const named = { connections: [], variables: [] };
    return {
      messages: [{ topic: "settings", pools: [...changed], deleted_pools: [...gone], ...named }],
    };
  }
}

/** Open approvals: waits for a person. */
export class LiveApprovals implements LiveSource {
  readonly gapMs = 500;
  readonly sweepMs = 5_000;
  readonly #known = new Known<LiveApprovalRow>();

  isWanted(watched: WatchedTopics): boolean {
    return watched.has("approvals");
  }

  onWakeUp(topic: WakeUp): boolean {
    return WAIT_CHANGES.has(topic);
  }

  reset(): void {
    this.#known.forget();
  }

  async read(database: Database): Promise<Reading> {
    const rows = await liveApprovals(database);
    const { changed, gone } = this.#known.compare(keyed(rows, "id"));
    if (changed.length + gone.length === 0) return { messages: [] };
    const message = { open: rows.length, opened: [...changed], closed: gone.map(Number) };
    return { messages: [{ topic: "approvals", ...message }] };
  }
}

/** What a person has to repair. */
export class LiveErrors implements LiveSource {
  readonly gapMs = 500;
  readonly sweepMs = 5_000;
  readonly #known = new Known<ErrorCounts>();

  isWanted(watched: WatchedTopics): boolean {
    return watched.has("errors") || watched.has("home");
  }

  onWakeUp(topic: WakeUp): boolean {
    return topic === "dags" || topic === "signals" || topic === "notices";
  }

  reset(): void {
    this.#known.forget();
  }

  async read(database: Database): Promise<Reading> {
    const { changed } = this.#known.compare(new Map([["", await errorCounts(database)]]));
    return { messages: changed.map((counts) => ({ topic: "errors", ...counts })) };
  }
}
