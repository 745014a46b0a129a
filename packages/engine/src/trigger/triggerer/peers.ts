/**
 * The other triggerers, and how many triggers each should have. A new trigger is claimed by any triggerer that has room:
 * nothing is left to another, which may be dead or full. Those that come together are claimed in portions, so that all
 * get some. Whoever then has more than its share releases the rest at its next look.
 */
import type { Database } from "../../store/database/database.ts";
import { countFree, livePeersOf, type Peer, triggersOf } from "../../store/trigger/triggers.ts";
import { fairShare, slackOf } from "./fair-share.ts";

export interface PeersOptions {
  readonly capacity: number;
  readonly queues: readonly string[];
  readonly horizonMs: number;
}

/** Fewer are not worth a second claim. */
const MIN_PORTION = 10;

export class Peers {
  readonly #database: Database;
  readonly #options: PeersOptions;

  constructor(database: Database, options: PeersOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** How many triggers this one may claim at once, having `held`. Fewer than its room: claim again until none is left. */
  async portion(jobId: number, held: number): Promise<number> {
    const room = Math.max(0, this.#options.capacity - held);
    if (room <= MIN_PORTION) return room;
    const peers = await this.#peers(jobId);
    if (peers.length === 0) return room;
    return Math.min(room, Math.max(MIN_PORTION, Math.ceil((await this.#free()) / (peers.length + 1))));
  }

  /** Now and then: how many to give away, and how many triggers nobody runs. */
  async look(jobId: number, held: number): Promise<{ surplus: number; unclaimed: number }> {
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

  /** Those with whom it shares a queue. */
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
