/**
 * The one place where an owner writes what it decided: a batch of events of any number of runs, in one transaction.
 *
 * Guards, each void the whole transaction: TW001, a run changed hands or was edited (owner or generation moved on);
 * TW002, a pool would be oversubscribed; TW003, an instance is not in the state, or not on the attempt, that the
 * decision was made for. Lock order, the same for every writer: runs by id, pools by name, instances, triggers by
 * fingerprint, waits. The fence comes first: slots that a fenced-out owner wants to free have been freed by the next one.
 *
 * Died before COMMIT: nothing happened, the next owner decides again. Died after: the next owner finds the queued
 * attempts and knows from their executor job that nobody has them in hand.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { ReceivedSignal } from "@tradewind/sdk/program";
import type { TaskState } from "../../model/index.ts";
import type { Call } from "../database/database.ts";
import { type Statement, statement } from "../database/statement.ts";
import { type AgainWrite, type DeadLetterWrite, type DriveWrite, drivenCalls } from "../drive/run-drives.ts";
import { type DeliveryWrite, deliveryCall } from "../notify/deliveries.ts";
import { type OutputWrite, outputCalls } from "../output/run-outputs.ts";
import type { PoolView } from "../pool/pool-occupancy.ts";
import { type RetryWrite, retryCalls } from "../run/run-retry.ts";
import { type SignalDraft, sendCalls } from "../signal/signals.ts";
import { smallSignalsCall } from "../signal/signals-read.ts";
import { type DeferralWrite, deferralCalls, type WaitEnd } from "../trigger/deferrals.ts";
import { type InstanceWrite, moveCall } from "./instance-moves.ts";
import { type MapWrite, mapCalls } from "./map-expansions.ts";
import { type GroupWrite, groupCalls } from "./run-groups.ts";

/** SQLSTATEs raised by tw_require. */
export const FENCED = "TW001";
export const POOL_FULL = "TW002";

/** An instance the run has no row for yet: of a map, or of a task that the version it started with had not. */
export interface InstanceBirth {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly maxTries: number;
  readonly pool: string;
  readonly poolSlots: number;
  readonly limitKey: string | null;
  readonly queue: string;
  readonly weight: number;
  readonly executor: string | null;
  readonly operator: string;
  readonly state: TaskState;
  readonly tryNumber: number;
  readonly scheduledAt: number | null;
  readonly endedAt: number | null;
  readonly reason: string | null;
}

/** An attempt that is over and will be followed by another. */
export interface AttemptWrite {
  readonly attempt: string;
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly state: string;
  readonly scheduledAt: number | null;
  readonly queuedAt: number | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly pid: number | null;
  readonly reason: string | null;
}

export interface SignalWrite {
  readonly namespace: string;
  readonly key: string;
  readonly value: Json;
}

export interface RunEnd {
  readonly runId: number;
  readonly state: "success" | "failed";
  readonly reason: string | null;
}

export interface CallbackWrite {
  readonly id: string;
  readonly runId: number;
  readonly taskId: string | null;
  /** Of a group's; left out otherwise. */
  readonly groupId?: string;
  readonly mapIndex: number | null;
  readonly event: "success" | "failure" | "retry";
  readonly tryNumber: number;
  readonly error: Json;
}

export interface RunBatch {
  readonly jobId: number;
  readonly hostname: string;
  readonly sender: string;
  readonly fences: readonly { readonly runId: number; readonly generation: number }[];
  /** Net change of occupied slots per pool; zero entries are left out. */
  readonly slots: ReadonlyMap<string, number>;
  readonly maps: readonly MapWrite[];
  /** One that has an attempt already is inserted as `none`, and its first change is among `instances`. */
  readonly births: readonly InstanceBirth[];
  readonly instances: readonly InstanceWrite[];
  readonly attempts: readonly AttemptWrite[];
  readonly outputs: readonly OutputWrite[];
  /** What the engine itself has to say. */
  readonly signals: readonly SignalWrite[];
  /** What tasks send with their success. */
  readonly sends: readonly SignalDraft[];
  readonly callbacks: readonly CallbackWrite[];
  readonly deliveries: readonly DeliveryWrite[];
  readonly deferrals: readonly DeferralWrite[];
  readonly waitEnds: readonly WaitEnd[];
  readonly ends: readonly RunEnd[];
  readonly retries: readonly RetryWrite[];
  readonly groups: readonly GroupWrite[];
  readonly drives: readonly DriveWrite[];
  /** Finished instances that begin again. */
  readonly again: readonly AgainWrite[];
  readonly deadLetters: readonly DeadLetterWrite[];
  /** Signals that queued attempts are due to, by version: read in the same round trip, for their processes. */
  readonly startedBy: readonly number[];
}

/** FOR SHARE: an edit or a take-over, which updates the row, waits for us or makes us fail; other batches do not. */
const FENCE = statement(
  "batch-fence",
  `SELECT tw_require(count(*) = cardinality($2::bigint[]), '${FENCED}', 'a run changed hands') FROM (
     SELECT 1 FROM dag_run r JOIN unnest($2::bigint[], $3::bigint[]) AS f(id, generation)
       ON r.id = f.id AND r.generation = f.generation
     WHERE r.owner_job = $1 AND r.state = 'running'
     ORDER BY r.id FOR SHARE OF r
   ) AS held`,
);

const SETTLE = statement(
  "batch-settle-pools",
  `WITH locked AS (
     SELECT p.name, d.delta FROM pool p JOIN unnest($1::text[], $2::int[]) AS d(name, delta) ON d.name = p.name
     ORDER BY p.name FOR NO KEY UPDATE OF p
   ), settled AS (
     UPDATE pool p SET occupied = p.occupied + locked.delta FROM locked WHERE p.name = locked.name
     RETURNING p.name, p.slots, p.occupied, p.include_deferred, locked.delta
   )
   SELECT name, slots, occupied, include_deferred,
          tw_require(delta <= 0 OR slots < 0 OR occupied <= slots, '${POOL_FULL}', 'pool ' || name || ' is full')
   FROM settled
   UNION ALL
   SELECT d.name, 0, 0, false, tw_require(false, '${POOL_FULL}', 'pool ' || d.name || ' is gone')
   FROM unnest($1::text[], $2::int[]) AS d(name, delta)
   WHERE d.delta > 0 AND NOT EXISTS (SELECT 1 FROM settled s WHERE s.name = d.name)`,
);

const BEAR = statement(
  "batch-insert-instances",
  `INSERT INTO task_instance (dag_run_id, task_id, map_index, max_tries, pool, pool_slots, limit_key, queue,
                              priority_weight, executor, operator, state, try_number, scheduled_at, ended_at, reason)
   SELECT u.run, u.task, u.map, u.max_tries, u.pool, u.slots, u.limit_key, u.queue, u.weight, u.executor, u.operator,
          u.state, u.try_number, to_timestamp(u.scheduled_at / 1000), to_timestamp(u.ended_at / 1000), u.reason
   FROM unnest($1::bigint[], $2::text[], $3::int[], $4::int[], $5::text[], $6::int[], $7::text[], $8::text[], $9::int[],
               $10::text[], $11::text[], $12::text[], $13::int[], $14::float8[], $15::float8[], $16::text[])
     AS u(run, task, map, max_tries, pool, slots, limit_key, queue, weight, executor, operator, state, try_number,
          scheduled_at, ended_at, reason)
   ON CONFLICT DO NOTHING`,
);

/** Before the instances move: where a lost attempt ran is known to its row alone, not to whoever took the run over. */
const ATTEMPTS = statement(
  "batch-insert-attempts",
  `INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, scheduled_at, queued_at,
                             started_at, ended_at, pid, reason, executor_job, hostname)
   SELECT u.attempt, u.run, u.task, u.map, u.try_number, u.state, to_timestamp(u.scheduled_at / 1000),
          to_timestamp(u.queued_at / 1000), to_timestamp(u.started_at / 1000), to_timestamp(u.ended_at / 1000), u.pid,
          coalesce(u.reason, t.reason), coalesce(t.executor_job, $13::bigint), coalesce(t.hostname, $14)
   FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::int[], $5::int[], $6::text[], $7::float8[], $8::float8[],
               $9::float8[], $10::float8[], $11::int[], $12::text[])
     AS u(attempt, run, task, map, try_number, state, scheduled_at, queued_at, started_at, ended_at, pid, reason)
   LEFT JOIN task_instance t ON t.dag_run_id = u.run AND t.task_id = u.task AND t.map_index = u.map
     AND t.attempt = u.attempt
   ON CONFLICT (attempt) DO NOTHING`,
);

const SIGNALS = statement(
  "batch-insert-signals",
  `INSERT INTO signal (namespace, key, value, sender)
   SELECT u.*, $4 FROM unnest($1::text[], $2::text[], $3::json[]) AS u`,
);

const CALLBACKS = statement(
  "batch-insert-callbacks",
  `INSERT INTO callback (id, dag_run_id, task_id, map_index, event, try_number, error, group_id, owner_job)
   SELECT u.*, $9::bigint
   FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::int[], $5::text[], $6::int[], $7::json[], $8::text[]) AS u`,
);

const END_RUNS = statement(
  "batch-end-runs",
  `UPDATE dag_run r SET state = u.state, end_reason = u.reason, ended_at = now(), owner_job = NULL,
                        ending = NULL, retry_at = NULL
   FROM unnest($1::bigint[], $2::text[], $3::text[]) AS u(id, state, reason) WHERE r.id = u.id`,
);

/** The batch as statements, empty parts left out; to be sent in one go, as one transaction. */
export function batchCalls(batch: RunBatch): Call[] {
  const calls: Call[] = [];
  calls.push(call(FENCE, [batch.jobId, column(batch.fences, "runId"), column(batch.fences, "generation")]));
  if (batch.slots.size > 0) calls.push(call(SETTLE, [[...batch.slots.keys()], [...batch.slots.values()]]));
  if (batch.startedBy.length > 0) calls.push(smallSignalsCall(batch.startedBy));
  if (batch.maps.length > 0) calls.push(...mapCalls(batch.maps));
  if (batch.births.length > 0) calls.push(call(BEAR, birthValues(batch)));
  if (batch.attempts.length > 0) calls.push(call(ATTEMPTS, attemptValues(batch)));
  if (batch.instances.length > 0) calls.push(moveCall(batch.instances, batch));
  calls.push(...deferralCalls(batch.deferrals, batch.waitEnds));
  const { outputs, signals, callbacks, ends } = batch;
  if (outputs.length > 0) calls.push(...outputCalls(outputs));
  calls.push(...drivenCalls(batch));
  if (signals.length > 0)
    calls.push(
      call(SIGNALS, [
        column(signals, "namespace"),
        column(signals, "key"),
        signals.map((s) => JSON.stringify(s.value)),
        batch.sender,
      ]),
    );
  // Last of all locks: those of signal keys, which others wait for.
  if (batch.sends.length > 0) calls.push(...sendCalls(batch.sends));
  if (callbacks.length > 0)
    calls.push(
      call(CALLBACKS, [
        column(callbacks, "id"),
        column(callbacks, "runId"),
        column(callbacks, "taskId"),
        column(callbacks, "mapIndex"),
        column(callbacks, "event"),
        column(callbacks, "tryNumber"),
        callbacks.map((c) => JSON.stringify(c.error)),
        callbacks.map((c) => c.groupId ?? null),
        batch.jobId,
      ]),
    );
  if (batch.deliveries.length > 0) calls.push(deliveryCall(batch.deliveries));
  if (ends.length > 0)
    calls.push(call(END_RUNS, [column(ends, "runId"), column(ends, "state"), column(ends, "reason")]));
  return [...calls, ...groupCalls(batch.groups), ...retryCalls(batch.retries)];
}

/** Of the results of `batchCalls`, the pools that were settled, as they are now. */
export function settledPools(batch: RunBatch, results: readonly unknown[][]): PoolView[] {
  return batch.slots.size > 0 ? (results[1] as PoolView[]) : [];
}

/** Of the results of `batchCalls`, the signals of `startedBy` by version, without those that are large or gone. */
export function startingSignals(
  batch: Pick<RunBatch, "slots" | "startedBy">,
  results: readonly unknown[][],
): ReadonlyMap<number, ReceivedSignal> {
  const rows = batch.startedBy.length > 0 ? results[batch.slots.size > 0 ? 2 : 1] : [];
  return new Map((rows as ReceivedSignal[]).map((signal) => [signal.version, signal]));
}

function birthValues({ births }: RunBatch): unknown[] {
  return [
    column(births, "runId"),
    column(births, "taskId"),
    column(births, "mapIndex"),
    column(births, "maxTries"),
    column(births, "pool"),
    column(births, "poolSlots"),
    column(births, "limitKey"),
    column(births, "queue"),
    column(births, "weight"),
    column(births, "executor"),
    column(births, "operator"),
    column(births, "state"),
    column(births, "tryNumber"),
    column(births, "scheduledAt"),
    column(births, "endedAt"),
    column(births, "reason"),
  ];
}

function attemptValues(batch: RunBatch): unknown[] {
  const rows = batch.attempts;
  return [
    column(rows, "attempt"),
    column(rows, "runId"),
    column(rows, "taskId"),
    column(rows, "mapIndex"),
    column(rows, "tryNumber"),
    column(rows, "state"),
    column(rows, "scheduledAt"),
    column(rows, "queuedAt"),
    column(rows, "startedAt"),
    column(rows, "endedAt"),
    column(rows, "pid"),
    column(rows, "reason"),
    batch.jobId,
    batch.hostname,
  ];
}

function column<R, K extends keyof R>(rows: readonly R[], key: K): R[K][] {
  return rows.map((row) => row[key]);
}

function call(statement: Statement, values: readonly unknown[]): Call {
  return { statement, values };
}
