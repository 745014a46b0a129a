/**
 * Makes the deliveries that are due, a few at a time, each within its time limit, and stores their outcome. A receiver
 * that hangs blocks only its own place.
 */

import { EngineError, messageOf } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import type { Database } from "../store/database/database.ts";
import {
  claimDeliveries,
  deliverSignal,
  deliveryDone,
  deliveryFailed,
  type TakenDelivery,
} from "../store/notify/deliveries.ts";
import { noticeValue } from "./notice-text.ts";
import { deliver, type FindConnection } from "./notices.ts";

const AT_ONCE = 8;
const ATTEMPT_MS = 30_000;
/** Longer than an attempt and the write of its outcome: after that, others take over the deliveries of a dead process. */
const LEASE_MS = 90_000;
/** Stored length of an error. */
const MAX_ERROR = 1_000;

export interface DelivererOptions {
  readonly database: Database;
  readonly connection: FindConnection;
  /** The external address of the API, for links. */
  readonly publicUrl?: string | undefined;
  readonly logger: Logger;
  /** A delivery has ended: there is room for another, or something to poll. */
  readonly onEnd: () => void;
  /** A signal was sent. */
  readonly onSignal: () => void;
  /** Functions were passed on to the jobs that run callbacks. */
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

  /** Claims due deliveries while there is room; returns how many. */
  async begin(): Promise<number> {
    if (this.isFull || this.#over.signal.aborted) return 0;
    const { database, leaseMs = LEASE_MS } = this.#options;
    const { own, taken } = await claimDeliveries(database, { limit: AT_ONCE - this.#underWay.size, leaseMs });
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

  /** Aborts the deliveries in progress: they are due again when their lease has expired. */
  async stop(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#underWay);
  }

  async #deliver(delivery: TakenDelivery): Promise<void> {
    const { attemptMs = ATTEMPT_MS, connection, database, onSignal, publicUrl } = this.#options;
    const { action } = delivery;
    if (action.kind !== "signal") {
      const signal = AbortSignal.any([AbortSignal.timeout(attemptMs), this.#over.signal]);
      return await deliver(action, delivery, { connection, signal, publicUrl });
    }
    const { key, namespace, value = noticeValue(delivery) } = action;
    if (await deliverSignal(database, delivery, { namespace, key, value, sender: senderOf(delivery) }))
      onSignal();
  }

  /** Never rejects. */
  async #attempt(delivery: TakenDelivery): Promise<void> {
    const { database, logger } = this.#options;
    const facts = { delivery: delivery.id, dag: delivery.dag_id, run: delivery.run_id };
    try {
      const error = await this.#deliver(delivery).then(
        () => null,
        (thrown: unknown) => thrown,
      );
      if (error === null) {
        // A signal was sent in the transaction that ended the delivery.
        if (delivery.action.kind !== "signal") await deliveryDone(database, delivery.id);
        return;
      }
      if (this.#over.signal.aborted) return;
      const code = error instanceof EngineError ? `${error.code}: ` : "";
      const text = `${code}${messageOf(error)}`.slice(0, MAX_ERROR);
      const isDead = await deliveryFailed(database, delivery, text);
      logger.warn(isDead ? "a delivery has failed permanently" : "a delivery failed", {
        ...facts,
        error: text,
      });
    } catch (error) {
      // The database is unavailable: the outcome of the attempt is unknown, and it is repeated.
      logger.warn("could not store the outcome of a delivery", { ...facts, error: String(error) });
    }
  }
}

function senderOf({ dag_id: dagId, event, report, run_id: runId }: TakenDelivery): string {
  const { taskId } = report;
  return [`${event}:${dagId}`, runId, ...(typeof taskId === "string" ? [taskId] : [])].join("/");
}
