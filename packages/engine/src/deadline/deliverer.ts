/**
 * Makes the deliveries that are due, some at a time, each within its time limit, and stores what came of them. Nobody
 * waits for it: a receiver that hangs keeps its own place and nothing else.
 */

import { EngineError, messageOf } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import type { Connection } from "../store/database.ts";
import {
  deliveryDone,
  deliveryFailed,
  type TakenDelivery,
  takeDeliveries,
} from "../store/deadline-deliveries.ts";
import { deliver, type FindConnection } from "./notices.ts";

const AT_ONCE = 8;
const ATTEMPT_MS = 30_000;
/** Longer than an attempt and the storing of its end: who dies over a delivery leaves it to others after that. */
const LEASE_MS = 90_000;
/** What is stored of an error. */
const MAX_ERROR = 1_000;

export interface DelivererOptions {
  readonly database: Connection;
  readonly connection: FindConnection;
  readonly logger: Logger;
  /** One has ended: there is room, or something to look for. */
  readonly onEnd: () => void;
  /** Functions have been handed to whoever runs callbacks. */
  readonly onHanded?: (() => void) | undefined;
  readonly attemptMs?: number;
  readonly leaseMs?: number;
}

export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #underWay = new Set<Promise<void>>();
  readonly #over = new AbortController();

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  get isFull(): boolean {
    return this.#underWay.size >= AT_ONCE;
  }

  /** Takes what is due and there is room for; answers how many. */
  async begin(): Promise<number> {
    if (this.isFull || this.#over.signal.aborted) return 0;
    const { database, leaseMs = LEASE_MS } = this.#options;
    const { own, taken } = await takeDeliveries(database, { limit: AT_ONCE - this.#underWay.size, leaseMs });
    for (const delivery of own) {
      const attempt = this.#attempt(delivery).finally(() => {
        this.#underWay.delete(attempt);
        this.#options.onEnd();
      });
      this.#underWay.add(attempt);
    }
    if (own.length < taken) this.#options.onHanded?.();
    return taken;
  }

  /** Gives up what is under way: it is due again when its lease is over. */
  async stop(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#underWay);
  }

  /** Never rejects. */
  async #attempt(delivery: TakenDelivery): Promise<void> {
    const { attemptMs = ATTEMPT_MS, connection, database, logger } = this.#options;
    const limit = AbortSignal.timeout(attemptMs);
    const facts = { delivery: delivery.id, dag: delivery.dag_id, run: delivery.run_id };
    try {
      const error = await deliver(delivery, connection, AbortSignal.any([limit, this.#over.signal])).then(
        () => null,
        (thrown: unknown) => thrown,
      );
      if (error === null) return await deliveryDone(database, delivery.id);
      if (this.#over.signal.aborted) return;
      const code = error instanceof EngineError ? `${error.code}: ` : "";
      const text = `${code}${messageOf(error)}`.slice(0, MAX_ERROR);
      const isDead = await deliveryFailed(database, delivery, text);
      logger.warn(isDead ? "a delivery was given up" : "a delivery failed", { ...facts, error: text });
    } catch (error) {
      // The database is away: what came of the attempt is not known to anybody, and it is made again.
      logger.warn("what came of a delivery could not be stored", { ...facts, error: String(error) });
    }
  }
}
