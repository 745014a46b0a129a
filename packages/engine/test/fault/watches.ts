/** Checks of the database during faults, each every 100 ms until the test ends. */
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc, CommitUnknownError, isTransient } from "../../src/store/database/database.ts";
import type { ComponentProcess } from "./component-process.ts";
import type { FaultInstallation } from "./installation.ts";

const EVERY_MS = 100;

/** Compares the stored pools with the task states, in one snapshot. */
const AUDIT = adhoc(`
  SELECT p.name, p.slots, p.occupied, coalesce(sum(taken.slots), 0)::int AS derived FROM pool p
  LEFT JOIN (
    SELECT pool AS name, pool_slots AS slots FROM task_instance
    WHERE state IN ('queued', 'running', 'restarting') OR state = 'deferred' AND keeps_slot
    UNION ALL
    SELECT unnest(string_to_array(limit_key, E'\\n')), 1 FROM task_instance
    WHERE limit_key IS NOT NULL
      AND (state IN ('queued', 'running', 'restarting') OR state = 'deferred' AND keeps_slot)
  ) AS taken ON taken.name = p.name
  GROUP BY p.name`);

interface PoolAudit {
  readonly name: string;
  readonly slots: number;
  readonly occupied: number;
  readonly derived: number;
}

export abstract class Watch {
  protected readonly installation: FaultInstallation;
  #isOver = false;
  readonly #loop: Promise<void>;

  constructor(installation: FaultInstallation) {
    this.installation = installation;
    this.#loop = this.#run();
    this.#loop.catch(() => {});
  }

  /** Also throws the error of a failed check. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#loop;
  }

  protected abstract check(): Promise<void>;

  async #run(): Promise<void> {
    // The fields of the derived class are initialised first.
    await sleep(0);
    while (!this.#isOver) {
      await this.check().catch((error) => {
        if (!isTransient(error) && !(error instanceof CommitUnknownError)) throw error;
      });
      await sleep(EVERY_MS);
    }
  }
}

export class PoolWatch extends Watch {
  checks = 0;
  /** Checks that found a pool full: without those, none could have been oversubscribed. */
  full = 0;
  readonly violations: string[] = [];

  protected override async check(): Promise<void> {
    const begin = adhoc("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const pools = await this.installation.db.transaction(async (tx) => {
      await tx.rows(begin);
      return tx.rows<PoolAudit>(AUDIT);
    });
    this.checks++;
    for (const pool of pools) {
      if (pool.slots > 0 && pool.derived === pool.slots) this.full++;
      if (pool.slots >= 0 && pool.derived > pool.slots)
        this.violations.push(`oversubscribed ${JSON.stringify(pool)}`);
      if (pool.occupied !== pool.derived) this.violations.push(`miscounted ${JSON.stringify(pool)}`);
    }
  }
}

interface Bereft {
  readonly id: number;
  /** null: a new owner is not enough, the row has to be deleted. */
  readonly job: number | null;
  readonly since: number;
  readonly how: string;
}

/** Objects with an owner, which another process takes over when the owner is gone. */
interface Owned {
  /** The objects that this job owns. */
  readonly mine: string;
  /** The current owners of these objects; objects missing in the result need no owner any more. */
  readonly owners: string;
}

const RUNS: Owned = {
  mine: "SELECT id FROM dag_run WHERE state = 'running' AND owner_job = $1",
  owners: "SELECT id, owner_job FROM dag_run WHERE id = ANY($1) AND state = 'running'",
};

export const TRIGGERS: Owned = {
  mine: "SELECT id FROM trigger WHERE owner_job = $1",
  owners: "SELECT id, owner_job FROM trigger WHERE id = ANY($1)",
};

export const BACKFILLS: Owned = {
  mine: "SELECT id FROM backfill WHERE state IN ('running', 'paused') AND owner_job = $1",
  owners: "SELECT id, owner_job FROM backfill WHERE id = ANY($1) AND state IN ('running', 'paused')",
};

/** How long objects stay without an owner after theirs failed. Time without a database does not count. */
export class TakeoverWatch extends Watch {
  readonly taken: { readonly how: string; readonly ms: number }[] = [];
  readonly #owned: Owned;
  #open: Bereft[] = [];
  #outages: { from: number; to: number }[] = [];

  constructor(installation: FaultInstallation, owned: Owned = RUNS) {
    super(installation);
    this.#owned = owned;
  }

  /** Call right after the owner was killed or stopped. */
  async ownerFell(owner: ComponentProcess, how: string): Promise<number> {
    const since = performance.now();
    const job = await this.installation.jobOf(owner);
    const mine = await this.installation.sql<{ id: number }>(this.#owned.mine, [job]);
    this.#open.push(...mine.map(({ id }) => ({ id, job, since, how })));
    return mine.length;
  }

  /** These objects have to be deleted from now on, with any owner. */
  mustGo(ids: readonly number[], how: string): void {
    const since = performance.now();
    this.#open.push(...ids.map((id) => ({ id, job: null, since, how })));
  }

  get isWaiting(): boolean {
    return this.#open.length > 0;
  }

  isWaitingAfter(how: string): boolean {
    return this.#open.some((each) => each.how === how);
  }

  /** Objects still without an owner, and for how long; for the message of a failed test. */
  waiting(): { readonly id: number; readonly how: string; readonly ms: number }[] {
    const now = performance.now();
    return this.#open.map(({ id, how, since }) => ({ id, how, ms: now - since - this.#without(since, now) }));
  }

  async outage(work: () => Promise<void>): Promise<void> {
    const outage = { from: performance.now(), to: Number.POSITIVE_INFINITY };
    this.#outages.push(outage);
    await work();
    outage.to = performance.now();
  }

  longest(): number {
    return Math.max(0, ...this.taken.map(({ ms }) => ms));
  }

  protected override async check(): Promise<void> {
    if (this.#open.length === 0) return;
    const ids = this.#open.map(({ id }) => id);
    const rows = await this.installation.db.rows<{ id: number; owner_job: number | null }>(
      adhoc(this.#owned.owners),
      [ids],
    );
    const owners = new Map(rows.map((row) => [row.id, row.owner_job]));
    const now = performance.now();
    this.#open = this.#open.filter(({ id, job, since, how }) => {
      const owner = owners.get(id);
      const isOver = owner === undefined || (job !== null && owner !== null && owner !== job);
      if (isOver) this.taken.push({ how, ms: now - since - this.#without(since, now) });
      return !isOver;
    });
  }

  #without(from: number, to: number): number {
    const overlaps = this.#outages.map((outage) => Math.min(to, outage.to) - Math.max(from, outage.from));
    return overlaps.reduce((sum, ms) => sum + Math.max(0, ms), 0);
  }
}
