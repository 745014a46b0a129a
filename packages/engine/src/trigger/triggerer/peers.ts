/**
 * The other triggerers, and how many triggers each should have. A new trigger is claimed by any triggerer that has room:
 * nothing is reserved for another one, which may be dead or full. Triggers that arrive together are claimed in portions,
 * so that all triggerers get some. A triggerer that exceeds its share releases the rest at its next poll.
 */
import type { Database } from "../../store/database/database.ts";
import { countFree, livePeersOf, type Peer, triggersOf } from "../../store/trigger/triggers.ts";
import { fairShare, slackOf } from "./fair-share.ts";

export interface PeersOptions {
  readonly capacity: number;
  readonly queues: readonly string[];
  readonly horizonMs: number;
}

/** A smaller portion is not worth a second claim. */
const MIN_PORTION = 10;

export class Peers {
  readonly #database: Database;
  readonly #options: PeersOptions;

  constructor(database: Database, options: PeersOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** How many triggers this triggerer may claim at once, given `held`. If fewer than its room: claim again until none is left. */
  async portion(jobId: number, held: number): Promise<number> {
    const room = Math.max(0, this.#options.capacity - held);
    if (room <= MIN_PORTION) return room;
    const peers = await this.#peers(jobId);
    if (peers.length === 0) return room;
    return Math.min(room, Math.max(MIN_PORTION, Math.ceil((await this.#free()) / (peers.length + 1))));
  }

  /** Periodic: how many triggers to release, and how many have no owner. */
  async read(jobId: number, held: number): Promise<{ surplus: number; unclaimed: number }> {
    const peers = await this.#peers(jobId);
    const unclaimed = await this.#free();
    if (peers.length === 0) return { surplus: 0, unclaimed };
    const counts = await triggersOf(
      this.#database,
      peers.map(({ id }) => id),
    );
    const loads = peers.map(({ id, facts }) => ({ triggers: counts.get(id) ?? 0, capacity: facts.capacity }));
    const share = fairShare([{ triggers: held, capacity: this.#options.capacity }, ...loads], unclaimed);
    return { surplus: held > share + slackOf(share) ? held - share : 0, unclaimed };
  }

  /** The triggerers of the same queue. */
  async #peers(jobId: number): Promise<Peer[]> {
    const mine = new Set(this.#options.queues);
    const peers = await livePeersOf(this.#database, jobId);
    return peers.filter(({ facts }) => facts.queues.some((queue) => mine.has(queue)));
  }

  #free(): Promise<number> {
    const { queues, horizonMs, capacity } = this.#options;
    return countFree(this.#database, { queues, horizonMs, limit: 2 * capacity });
  }
}
