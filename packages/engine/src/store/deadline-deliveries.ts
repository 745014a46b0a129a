/**
 * What missed deadlines have to tell, at least once each.
 *
 *  - *Take*: whoever takes a delivery moves its next try on first, by more than an attempt can last. Dies before: it is
 *    due as it was. Dies after, or the answer is lost: it is due again then. Two at once: the second passes over it.
 *    Functions are handed to the workers, as rows of `callback`, in the same transaction.
 *  - *Settle*: what came of an attempt. A success counts whenever it comes; a failure only for the attempt that is the
 *    latest, for one that woke up late knows nothing of what was tried after it.
 *  - After the last attempt a delivery is dead: a row that people see and may set going again.
 */
import type { DeadlineAction } from "@tradewind/sdk/manifest";
import { DELIVERY_ATTEMPTS, deliveryPauseMs } from "../model/index.ts";
import type { Connection } from "./database.ts";
import { statement } from "./statement.ts";

/** One attempt, with all that is to be told. */
export interface TakenDelivery {
  readonly id: number;
  readonly attempts: number;
  readonly action: DeadlineAction;
  readonly due_at: Date;
  readonly missed_at: Date;
  readonly dag_id: string;
  readonly run_id: string;
  readonly logical_date: Date | null;
  readonly run_state: string;
  /** "": of the run. */
  readonly task_id: string;
  readonly ordinal: number;
  readonly counts_from: string;
}

/** How long after its nth attempt a delivery rests, in milliseconds; beyond its end there is no other. */
const PAUSES = Array.from({ length: DELIVERY_ATTEMPTS - 1 }, (_, at) => deliveryPauseMs(at + 1));

const TAKE = statement(
  "delivery-take",
  `WITH due AS (
     SELECT id FROM deadline_delivery WHERE state = 'pending' AND next_try_at <= now()
     ORDER BY next_try_at LIMIT $1 FOR UPDATE SKIP LOCKED
   ), taken AS (
     UPDATE deadline_delivery y SET attempts = y.attempts + 1, next_try_at = now() + $2 * interval '1 millisecond',
       state = CASE WHEN y.action->>'kind' = 'function' THEN 'handed' ELSE 'pending' END
     FROM due WHERE y.id = due.id RETURNING y.*
   ), handed AS (
     INSERT INTO callback (id, dag_run_id, task_id, event, delivery_id)
     SELECT gen_random_uuid(), d.dag_run_id, nullif(d.task_id, ''), 'deadline', y.id
     FROM taken y JOIN deadline d ON d.id = y.deadline_id WHERE y.state = 'handed'
   )
   SELECT y.id, y.attempts, y.action, y.due_at, y.missed_at, r.dag_id, r.run_id, r.logical_date, r.state AS run_state,
     d.task_id, d.ordinal, d.counts_from
   FROM taken y JOIN deadline d ON d.id = y.deadline_id JOIN dag_run r ON r.id = d.dag_run_id`,
);

const DONE = statement(
  "delivery-done",
  `UPDATE deadline_delivery SET state = 'done', error = NULL, ended_at = now()
   WHERE id = $1 AND state IN ('pending', 'dead')`,
);

/** What a failed attempt leaves behind. `pauses` is the parameter with PAUSES; SQL counts from 1, as attempts do. */
const afterFailure = (error: string, pauses: string) => {
  const pause = `(${pauses}::float8[])[y.attempts]`;
  return `state = CASE WHEN ${pause} IS NULL THEN 'dead' ELSE 'pending' END, error = ${error},
     next_try_at = now() + coalesce(${pause}, 0) * interval '1 millisecond',
     ended_at = CASE WHEN ${pause} IS NULL THEN now() END`;
};

const FAILED = statement(
  "delivery-failed",
  `UPDATE deadline_delivery y SET ${afterFailure("$3", "$4")}
   WHERE y.id = $1 AND y.attempts = $2 AND y.state = 'pending' RETURNING y.state`,
);

/** A callback that has run goes, and with it what is known of the delivery it was made for. */
const END_CALLBACKS = statement(
  "delivery-end-callbacks",
  `WITH gone AS (
     DELETE FROM callback c USING unnest($1::uuid[], $2::text[]) AS u(id, error) WHERE c.id = u.id
     RETURNING c.delivery_id, u.error
   ), failed AS (
     UPDATE deadline_delivery y SET ${afterFailure("gone.error", "$3")}
     FROM gone WHERE y.id = gone.delivery_id AND gone.error IS NOT NULL AND y.state = 'handed'
   )
   UPDATE deadline_delivery y SET state = 'done', error = NULL, ended_at = now()
   FROM gone WHERE y.id = gone.delivery_id AND gone.error IS NULL AND y.state = 'handed'`,
);

/** Functions that several workers have died over: nobody runs them any more. Index: callback_delivery. */
const BURY = statement(
  "delivery-bury",
  `UPDATE deadline_delivery y SET state = 'dead', ended_at = now(),
     error = 'the workers that ran it died over it'
   FROM callback c WHERE c.delivery_id IS NOT NULL AND c.delivery_id = y.id AND c.tries >= 5 AND y.state = 'handed'`,
);

const REVIVE = statement(
  "delivery-revive",
  `WITH revived AS (
     UPDATE deadline_delivery SET state = 'pending', attempts = 0, next_try_at = now(), ended_at = NULL
     WHERE id = ANY($1) AND state = 'dead' RETURNING id
   ), dropped AS (DELETE FROM callback c USING revived WHERE c.delivery_id = revived.id)
   SELECT id FROM revived ORDER BY id`,
);

/** Functions among them have been handed on, and are not answered. `leaseMs` is longer than any attempt. */
export async function takeDeliveries(
  db: Connection,
  { limit, leaseMs }: { readonly limit: number; readonly leaseMs: number },
): Promise<{ readonly taken: number; readonly own: readonly TakenDelivery[] }> {
  const rows = await db.rows<TakenDelivery>(TAKE, [limit, leaseMs]);
  return { taken: rows.length, own: rows.filter(({ action }) => action.kind !== "function") };
}

export async function deliveryDone(db: Connection, id: number): Promise<void> {
  await db.rows(DONE, [id]);
}

/** Answers whether that was the last attempt. */
export async function deliveryFailed(
  db: Connection,
  { attempts, id }: TakenDelivery,
  error: string,
): Promise<boolean> {
  return (await db.one<{ state: string }>(FAILED, [id, attempts, error, PAUSES]))?.state === "dead";
}

/** Callbacks that have run, each with its error: of a deadline's function, it is called again. */
export async function endCallbacks(db: Connection, ended: ReadonlyMap<string, string | null>): Promise<void> {
  await db.rows(END_CALLBACKS, [[...ended.keys()], [...ended.values()], PAUSES]);
}

export async function buryDeliveries(db: Connection): Promise<void> {
  await db.rows(BURY);
}

/** Dead deliveries begin again; answers those that were dead. */
export async function reviveDeliveries(db: Connection, ids: readonly number[]): Promise<number[]> {
  return (await db.rows<{ id: number }>(REVIVE, [ids])).map(({ id }) => id);
}
