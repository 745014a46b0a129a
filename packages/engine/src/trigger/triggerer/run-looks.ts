/**
 * How the runs stand that are waited for. Few are asked for one by one, at every look. Of many, only those that are new are:
 * of the others it is enough to know which runs have ended since the last look, however many are waited for.
 *
 * A run's end is dated when its transaction begins, and seen when it is committed: a look goes back a little further than
 * the last one. What took longer than that, was deleted, or was found by a look that failed in the end, shows when all are
 * asked for, now and then.
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
  /** Up to so many are asked for one by one. */
  readonly few?: number;
  /** Between two looks that ask for all. */
  readonly fullMs?: number;
}

const FEW = 200;
const FULL_MS = 5_000;
const OVERLAP_MS = 1_000;

export class RunLooks {
  readonly #database: Database;
  readonly #few: number;
  readonly #fullMs: number;
  /** Those that were asked for. */
  #known = new Set<number>();
  /** By the database's clock. */
  #lookedAt: Date | null = null;
  #fullAt = Number.NEGATIVE_INFINITY;

  constructor(database: Database, { few = FEW, fullMs = FULL_MS }: RunLooksOptions = {}) {
    this.#database = database;
    this.#few = few;
    this.#fullMs = fullMs;
  }

  /** By wait; null: there is no such run. Of what is not in it, nothing has become known. */
  async find(waits: readonly Wait<DagRunArgs>[]): Promise<Map<number, FoundRun | null>> {
    const isFull = this.#lookedAt === null || performance.now() - this.#fullAt >= this.#fullMs;
    if (waits.length <= this.#few || isFull) return this.#askAll(waits);
    const isOld = ({ args, id }: Wait<DagRunArgs>) =>
      this.#known.has(id) && args.runId !== null && isForEnd(args);
    const found = await this.#ask(waits.filter((wait) => !isOld(wait)));
    const { at, runs } = await findEndedRuns(this.#database, this.#lookedAt as Date, OVERLAP_MS);
    this.#lookedAt = at;
    const ended = new Map(runs.map((run) => [nameOf(run.dag_id, run.run_id), run]));
    if (ended.size === 0) return found;
    for (const { args, id } of waits.filter(isOld)) {
      const run = ended.get(nameOf(args.dagId, args.runId));
      if (run) found.set(id, { ...run, id });
    }
    return found;
  }

  async #askAll(waits: readonly Wait<DagRunArgs>[]): Promise<Map<number, FoundRun | null>> {
    const isWorthIt = waits.length > this.#few;
    // Before it looks: what ends meanwhile is seen by the next look at the latest.
    this.#lookedAt = isWorthIt ? await momentAgo(this.#database, 0) : null;
    this.#known.clear();
    const found = await this.#ask(waits);
    this.#fullAt = performance.now();
    return found;
  }

  async #ask(waits: readonly Wait<DagRunArgs>[]): Promise<Map<number, FoundRun | null>> {
    const found = await findRuns(this.#database, waits);
    for (const { id } of waits) this.#known.add(id);
    return new Map(waits.map(({ id }) => [id, found.get(id) ?? null]));
  }
}

/** Only the end of the run is waited for. */
export function isForEnd({ states }: DagRunArgs): boolean {
  return states.every((state) => state === "success" || state === "failed");
}

/** No id of a DAG has a line break. */
function nameOf(dagId: string, runId: string | null): string {
  return `${dagId}\n${runId}`;
}
