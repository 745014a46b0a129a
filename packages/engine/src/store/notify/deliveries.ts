/**
 * Messages to deliver, at least once each: notices of tasks, groups and runs, and reports of missed deadlines. A row is
 * written in the transaction of its event, so that neither exists without the other.
 *
 *  - *Take*: a process that takes a delivery first moves its next try by more than an attempt can last. Crash before the
 *    commit: it stays due. Crash after it, or a lost reply: it is due again then. Concurrent calls: the second skips it.
 *    Functions of deadlines are passed to the workers, as rows of `callback`, in the same transaction.
 *  - *Settle*: stores the outcome of an attempt. A success always counts; a failure only for the latest attempt, because
 *    a later attempt may have succeeded. A signal is sent in the transaction that settles its delivery: exactly once.
 *  - After the last attempt a delivery is dead: the row stays visible, and a user may retry it.
 */
import type { DeadlineAction, Json, NoticeAction } from "@tradewind/sdk/manifest";
import { DELIVERY_ATTEMPTS, deliveryPauseMs, type NoticeCause } from "../../model/index.ts";
import type { Call, Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { type SignalDraft, sendSignals } from "../signal/signals.ts";

/** A delivery to store. */
export interface DeliveryWrite {
  readonly runId: number;
  readonly event: "success" | "failure" | "retry" | "deadline";
  readonly deadlineId: number | null;
  /** Null for a run or a group. */
  readonly taskId: string | null;
  readonly groupId: string | null;
  readonly mapIndex: number;
  /** The index of the action among those of its event. */
  readonly place: number;
  readonly action: DeadlineAction;
  readonly report: { readonly [key: string]: Json };
  /** The instance that failed first; its row is stored with the delivery. */
  readonly cause: { readonly taskId: string; readonly mapIndex: number } | null;
}

/** One attempt, with its message. */
export interface TakenDelivery {
  readonly id: number;
  readonly attempts: number;
  readonly action: NoticeAction;
  readonly event: DeliveryWrite["event"];
  readonly report: { readonly [key: string]: Json };
  readonly cause: NoticeCause | null;
  readonly occurred_at: Date;
  readonly dag_id: string;
  readonly run_id: string;
  readonly run_state: string;
}

/** Runs after the instances of the same batch have changed: the first failure is read from their rows. */
const ADD = statement(
  "delivery-add",
  `INSERT INTO delivery (dag_run_id, event, deadline_id, task_id, group_id, map_index, place, action, report, cause)
   SELECT u.run, u.event, u.deadline, u.task, u.grp, u.map, u.place, u.action, u.report,
     CASE WHEN t.task_id IS NOT NULL THEN json_build_object('taskId', t.task_id, 'mapIndex', t.map_index,
       'tryNumber', t.try_number, 'reason', left(t.reason, 2000)) END
   FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::int[], $7::int[], $8::json[],
               $9::json[], $10::text[], $11::int[])
     AS u(run, event, deadline, task, grp, map, place, action, report, cause_task, cause_map)
   LEFT JOIN task_instance t ON t.dag_run_id = u.run AND t.task_id = u.cause_task AND t.map_index = u.cause_map`,
);

/** The pause after the nth attempt, in milliseconds; there is no attempt beyond its end. */
const PAUSES = Array.from({ length: DELIVERY_ATTEMPTS - 1 }, (_, at) => deliveryPauseMs(at + 1));

const TAKE = statement(
  "delivery-take",
  `WITH due AS (
     SELECT id FROM delivery WHERE state = 'pending' AND next_try_at <= now()
     ORDER BY next_try_at LIMIT $1 FOR UPDATE SKIP LOCKED
   ), taken AS (
     UPDATE delivery y SET attempts = y.attempts + 1, next_try_at = now() + $2 * interval '1 millisecond',
       state = CASE WHEN y.action->>'kind' = 'function' THEN 'handed' ELSE 'pending' END
     FROM due WHERE y.id = due.id RETURNING y.*
   ), handed AS (
     INSERT INTO callback (id, dag_run_id, task_id, event, delivery_id)
     SELECT gen_random_uuid(), y.dag_run_id, y.task_id, 'deadline', y.id FROM taken y WHERE y.state = 'handed'
   )
   SELECT y.id, y.attempts, y.action, y.event, y.report, y.cause, y.occurred_at, r.dag_id, r.run_id, r.state AS run_state
   FROM taken y JOIN dag_run r ON r.id = y.dag_run_id`,
);

/** Only for the current attempt: another one may have sent its signal meanwhile. */
const SENT = statement(
  "delivery-sent",
  `UPDATE delivery SET state = 'done', error = NULL, ended_at = now()
   WHERE id = $1 AND attempts = $2 AND state = 'pending' RETURNING id`,
);

const DONE = statement(
  "delivery-done",
  `UPDATE delivery SET state = 'done', error = NULL, ended_at = now()
   WHERE id = $1 AND state IN ('pending', 'dead')`,
);

/** The columns after a failed attempt. `pauses` is the parameter with PAUSES; SQL arrays and attempts start at 1. */
const afterFailure = (error: string, pauses: string) => {
  const pause = `(${pauses}::float8[])[y.attempts]`;
  return `state = CASE WHEN ${pause} IS NULL THEN 'dead' ELSE 'pending' END, error = ${error},
     next_try_at = now() + coalesce(${pause}, 0) * interval '1 millisecond',
     ended_at = CASE WHEN ${pause} IS NULL THEN now() END`;
};

const FAILED = statement(
  "delivery-failed",
  `UPDATE delivery y SET ${afterFailure("$3", "$4")}
   WHERE y.id = $1 AND y.attempts = $2 AND y.state = 'pending' RETURNING y.state`,
);

/** Deletes a callback that has run, and stores its outcome in its delivery. */
const END_CALLBACKS = statement(
  "delivery-end-callbacks",
  `WITH gone AS (
     DELETE FROM callback c USING unnest($1::uuid[], $2::text[]) AS u(id, error) WHERE c.id = u.id
     RETURNING c.delivery_id, u.error
   ), assigned AS (
     DELETE FROM assignment WHERE id = ANY($1::uuid[])
   ), failed AS (
     UPDATE delivery y SET ${afterFailure("gone.error", "$3")}
     FROM gone WHERE y.id = gone.delivery_id AND gone.error IS NOT NULL AND y.state = 'handed'
   )
   UPDATE delivery y SET state = 'done', error = NULL, ended_at = now()
   FROM gone WHERE y.id = gone.delivery_id AND gone.error IS NULL AND y.state = 'handed'`,
);

/** Functions given up after several workers died while running them. Index: callback_delivery. */
const BURY = statement(
  "delivery-bury",
  `UPDATE delivery y SET state = 'dead', ended_at = now(),
     error = 'the workers that ran it died over it'
   FROM callback c WHERE c.delivery_id IS NOT NULL AND c.delivery_id = y.id AND c.tries >= 5 AND y.state = 'handed'`,
);

const REVIVE = statement(
  "delivery-revive",
  `WITH revived AS (
     UPDATE delivery SET state = 'pending', attempts = 0, next_try_at = now(), ended_at = NULL
     WHERE id = ANY($1) AND state = 'dead' RETURNING id
   ), dropped AS (DELETE FROM callback c USING revived WHERE c.delivery_id = revived.id)
   SELECT id FROM revived ORDER BY id`,
);

/** A call of a batch. */
export function deliveryCall(writes: readonly DeliveryWrite[]): Call {
  const column = <T>(of: (write: DeliveryWrite) => T): T[] => writes.map(of);
  return {
    statement: ADD,
    values: [
      column(({ runId }) => runId),
      column(({ event }) => event),
      column(({ deadlineId }) => deadlineId),
      column(({ taskId }) => taskId),
      column(({ groupId }) => groupId),
      column(({ mapIndex }) => mapIndex),
      column(({ place }) => place),
      column(({ action }) => JSON.stringify(action)),
      column(({ report }) => JSON.stringify(report)),
      column(({ cause }) => cause?.taskId ?? null),
      column(({ cause }) => cause?.mapIndex ?? null),
    ],
  };
}

export async function addDeliveries(tx: Connection, writes: readonly DeliveryWrite[]): Promise<void> {
  const { statement, values } = deliveryCall(writes);
  await tx.rows(statement, values);
}

/** Functions among them are passed to workers and not returned. `leaseMs` is longer than any attempt. */
export async function claimDeliveries(
  db: Connection,
  { limit, leaseMs }: { readonly limit: number; readonly leaseMs: number },
): Promise<{ readonly taken: number; readonly own: readonly TakenDelivery[] }> {
  const rows = await db.rows<TakenRow>(TAKE, [limit, leaseMs]);
  return { taken: rows.length, own: rows.filter(isOwn) };
}

type TakenRow = Omit<TakenDelivery, "action"> & { readonly action: DeadlineAction };

function isOwn(row: TakenRow): row is TakenDelivery {
  return row.action.kind !== "function";
}

/** Sends a signal and completes its delivery. False: another attempt holds the delivery, and nothing was sent. */
export function deliverSignal(
  db: Database,
  { attempts, id }: TakenDelivery,
  draft: SignalDraft,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const held = await tx.one(SENT, [id, attempts]);
    if (held) await sendSignals(tx, [draft]);
    return held !== undefined;
  });
}

export async function deliveryDone(db: Connection, id: number): Promise<void> {
  await db.rows(DONE, [id]);
}

/** Returns whether that was the last attempt. */
export async function deliveryFailed(
  db: Connection,
  { attempts, id }: TakenDelivery,
  error: string,
): Promise<boolean> {
  return (await db.one<{ state: string }>(FAILED, [id, attempts, error, PAUSES]))?.state === "dead";
}

/** Callbacks that have run, each with its error; a deadline's function that failed is called again. */
export async function endCallbacks(db: Connection, ended: ReadonlyMap<string, string | null>): Promise<void> {
  await db.rows(END_CALLBACKS, [[...ended.keys()], [...ended.values()], PAUSES]);
}

export async function expireDeliveries(db: Connection): Promise<void> {
  await db.rows(BURY);
}

/** Restarts dead deliveries. Returns the ids of those that were dead. */
export async function reviveDeliveries(db: Connection, ids: readonly number[]): Promise<number[]> {
  return (await db.rows<{ id: number }>(REVIVE, [ids])).map(({ id }) => id);
}
