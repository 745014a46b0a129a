/**
 * The states of runs that have waits. A few waits are queried one by one, at every poll. Of many waits, only new ones
 * are: for the others, one query finds the runs that have ended since the last poll, for any number of waits.
 *
 * The end of a run is dated when its transaction begins, and visible when it commits: a poll looks back a little further
 * than the last one. A periodic query of all waits finds slower commits, deleted runs, and findings of a poll that failed
 * in the end.
 */
import type { DagRunArgs } from "@tradewind/sdk/builtin-triggers";
import type { Database } from "../../store/database/database.ts";
import {
  type FoundRun,
  findEndedRuns,
  findRuns,
  momentAgo,
  type Wait,
} from "../../store/trigger/engine-conditions.ts";

export interface RunLooksOptions {
  /** Up to this many waits are queried one by one. */
  readonly few?: number;
  /** Interval of polls that query all waits. */
  readonly fullMs?: number;
}

const FEW = 200;
const FULL_MS = 5_000;
const OVERLAP_MS = 1_000;

export class RunStateReads {
  readonly #database: Database;
  readonly #few: number;
  readonly #fullMs: number;
  /** The waits that were queried. */
  #known = new Set<number>();
  /** By the database's clock. */
  #readAt: Date | null = null;
  #fullAt = Number.NEGATIVE_INFINITY;

  constructor(database: Database, { few = FEW, fullMs = FULL_MS }: RunLooksOptions = {}) {
    this.#database = database;
    this.#few = few;
    this.#fullMs = fullMs;
  }

  /** By wait; null if the run does not exist. A wait that is absent from the map has no news. */
  async find(waits: readonly Wait<DagRunArgs>[]): Promise<Map<number, FoundRun | null>> {
    const isFull = this.#readAt === null || performance.now() - this.#fullAt >= this.#fullMs;
    if (waits.length <= this.#few || isFull) return this.#readAll(waits);
    const isOld = ({ args, id }: Wait<DagRunArgs>) =>
      this.#known.has(id) && args.runId !== null && isForEnd(args);
    const found = await this.#read(waits.filter((wait) => !isOld(wait)));
    const { at, runs } = await findEndedRuns(this.#database, this.#readAt as Date, OVERLAP_MS);
    this.#readAt = at;
    const ended = new Map(runs.map((run) => [nameOf(run.dag_id, run.run_id), run]));
    if (ended.size === 0) return found;
    for (const { args, id } of waits.filter(isOld)) {
      const run = ended.get(nameOf(args.dagId, args.runId));
      if (run) found.set(id, { ...run, id });
    }
    return found;
  }

  async #readAll(waits: readonly Wait<DagRunArgs>[]): Promise<Map<number, FoundRun | null>> {
    const isWorthIt = waits.length > this.#few;
    // Read before the query: the next poll finds runs that end meanwhile.
    this.#readAt = isWorthIt ? await momentAgo(this.#database, 0) : null;
    this.#known.clear();
    const found = await this.#read(waits);
    this.#fullAt = performance.now();
    return found;
  }

  async #read(waits: readonly Wait<DagRunArgs>[]): Promise<Map<number, FoundRun | null>> {
    const found = await findRuns(this.#database, waits);
    for (const { id } of waits) this.#known.add(id);
    return new Map(waits.map(({ id }) => [id, found.get(id) ?? null]));
  }
}

/** True if the wait is only for the end of the run. */
export function isForEnd({ states }: DagRunArgs): boolean {
  return states.every((state) => state === "success" || state === "failed");
}

/** DAG ids contain no line break. */
function nameOf(dagId: string, runId: string | null): string {
  return `${dagId}\n${runId}`;
}
