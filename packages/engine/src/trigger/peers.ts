/**
 * The other triggerers, and how many triggers each should have. When one joins, the others let go of what is above
 * their share, once; from then on new triggers go to whoever is below it. Shares are a wish, not a law: what nobody
 * takes for a while is taken by whoever has room.
 */
import type { Database } from "../store/database.ts";
import { countFree, livePeersOf, type Peer } from "../store/triggers.ts";
import { fairShare, slackOf } from "./fair-share.ts";

export interface PeersOptions {
  readonly capacity: number;
  readonly queues: readonly string[];
  readonly horizonMs: number;
}

export class Peers {
  readonly #database: Database;
  readonly #options: PeersOptions;
  #known: ReadonlySet<number> | null = null;
  /** Heartbeats in a row at which triggers were left lying. */
  #leftLying = 0;

  constructor(database: Database, options: PeersOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** Under a new name it begins anew. */
  forget(): void {
    this.#known = null;
    this.#leftLying = 0;
  }

  /** How many more triggers this one may claim now, having `held`. */
  async room(jobId: number, held: number): Promise<number> {
    const { capacity } = this.#options;
    const peers = await this.#peers(jobId);
    if (peers.length === 0 || this.#leftLying >= 2) return capacity - held;
    const share = this.#share(held, peers, await this.#free());
    return Math.min(capacity, share + slackOf(share)) - held;
  }

  /** At each heartbeat: how many to give away because somebody joined, and how many triggers nobody runs. */
  async look(jobId: number, held: number): Promise<{ surplus: number; unclaimed: number }> {
    const peers = await this.#peers(jobId);
    const unclaimed = await this.#free();
    this.#leftLying = unclaimed > 0 ? this.#leftLying + 1 : 0;
    const known = this.#known;
    this.#known = new Set(peers.map(({ id }) => id));
    // At the first look, those who came after this one: it may have taken everything before they were there.
    const someoneJoined = peers.some(({ id }) => (known === null ? id > jobId : !known.has(id)));
    if (!someoneJoined) return { surplus: 0, unclaimed };
    const share = this.#share(held, peers, unclaimed);
    return { surplus: held > share + slackOf(share) ? held - share : 0, unclaimed };
  }

  /** Those with whom it shares a queue. */
  async #peers(jobId: number): Promise<Peer[]> {
    const mine = new Set(this.#options.queues);
    const peers = await livePeersOf(this.#database, jobId);
    return peers.filter(({ facts }) => facts.queues.some((queue) => mine.has(queue)));
  }

  #share(held: number, peers: readonly Peer[], free: number): number {
    const me = { triggers: held, capacity: this.#options.capacity };
    return fairShare([me, ...peers.map(({ facts }) => facts)], free);
  }

  #free(): Promise<number> {
    const { queues, horizonMs, capacity } = this.#options;
    return countFree(this.#database, { queues, horizonMs, limit: 2 * capacity });
  }
}
