/**
 * Stores the decisions of an owner: a batch of changes of any number of runs, in one transaction.
 *
 * Each guard rolls back the whole transaction. TW001: a run has another owner or was edited (owner or generation
 * changed). TW002: a pool would be oversubscribed. TW003: an instance is not in the state, or not on the attempt, that the
 * decision was made for. All writers lock in the same order: runs by id, pools by name, instances, triggers by
 * fingerprint, waits. The fence comes first: the next owner has already released the slots of a fenced-out owner.
 *
 * Crash before COMMIT: no effect, the next owner decides again. Crash after it: the next owner finds the queued attempts,
 * and their executor job shows that no executor has them.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { ReceivedSignal } from "@tradewind/sdk/program";
import type { Call } from "../database/database.ts";
import { RowArrays } from "../database/row-arrays.ts";
import { call, statement } from "../database/statement.ts";
import { type AgainWrite, type DeadLetterWrite, type DriveWrite, drivenCalls } from "../drive/run-drives.ts";
import { deleteAssignmentsCall } from "../execute/assignments.ts";
import { deleteReportsCall } from "../execute/reports.ts";
import { type DeliveryWrite, deliveryCall } from "../notify/deliveries.ts";
import { type OutputWrite, outputCalls } from "../output/run-outputs.ts";
import type { PoolView } from "../pool/pool-occupancy.ts";
import { type RetryWrite, retryCalls } from "../run/run-retry.ts";
import { type EffectWrite, effectCall } from "../signal/signal-effects.ts";
import { type SignalDraft, sendCalls } from "../signal/signals.ts";
import { smallSignalsCall } from "../signal/signals-read.ts";
import { type DeferralWrite, deferralCalls, type WaitEnd } from "../trigger/deferrals.ts";
import { type AttemptWrite, attemptCall } from "./ended-attempts.ts";
import { type InstanceMove, moveCall } from "./instance-moves.ts";
import { type MapWrite, mapCalls } from "./map-expansions.ts";
import { birthCall, type InstanceBirth } from "./new-instances.ts";
import { type GroupWrite, groupCalls } from "./run-groups.ts";

/** SQLSTATEs raised by tw_require. */
export const FENCED = "TW001";
export const POOL_FULL = "TW002";

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
  /** Set for the callback of a group. */
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
  /** Net change of occupied slots per pool, without zero entries. */
  readonly slots: ReadonlyMap<string, number>;
  readonly maps: readonly MapWrite[];
  /** An instance that already has an attempt is inserted as `none`; its first change is in `instances`. */
  readonly births: readonly InstanceBirth[];
  readonly instances: readonly InstanceMove[];
  readonly attempts: readonly AttemptWrite[];
  readonly outputs: readonly OutputWrite[];
  /** State changes, sent by the engine. */
  readonly signals: readonly SignalWrite[];
  /** Signals that tasks send with their success. */
  readonly sends: readonly SignalDraft[];
  readonly callbacks: readonly CallbackWrite[];
  readonly deliveries: readonly DeliveryWrite[];
  readonly deferrals: readonly DeferralWrite[];
  readonly waitEnds: readonly WaitEnd[];
  readonly ends: readonly RunEnd[];
  readonly retries: readonly RetryWrite[];
  readonly groups: readonly GroupWrite[];
  readonly drives: readonly DriveWrite[];
  /** Finished instances that restart. */
  readonly again: readonly AgainWrite[];
  readonly deadLetters: readonly DeadLetterWrite[];
  readonly effects: readonly EffectWrite[];
  /** Stored reports that the batch applies. */
  readonly reports: readonly number[];
  /** Assignments whose end the batch stores, with their reports. */
  readonly endedAssignments: readonly string[];
  /** Versions of the signals that started the queued attempts: read in the same round trip, for their processes. */
  readonly startSignals: readonly number[];
}

/** FOR SHARE: an edit or a take-over, which updates the row, waits for the batch or fails it; other batches do not. */
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

const SIGNALS = new RowArrays<SignalWrite>({
  namespace: ["text", ({ namespace }) => namespace],
  key: ["text", ({ key }) => key],
  value: ["json", ({ value }) => value],
});

const INSERT_SIGNALS = statement(
  "batch-insert-signals",
  `INSERT INTO signal (${SIGNALS.names}, sender) SELECT u.*, ${SIGNALS.parameter(1)} FROM ${SIGNALS.source} AS u`,
);

const CALLBACKS = new RowArrays<CallbackWrite>({
  id: ["uuid", ({ id }) => id],
  dag_run_id: ["bigint", ({ runId }) => runId],
  task_id: ["text", ({ taskId }) => taskId],
  map_index: ["integer", ({ mapIndex }) => mapIndex],
  event: ["text", ({ event }) => event],
  try_number: ["integer", ({ tryNumber }) => tryNumber],
  error: ["json", ({ error }) => error],
  group_id: ["text", ({ groupId }) => groupId],
});

const INSERT_CALLBACKS = statement(
  "batch-insert-callbacks",
  `INSERT INTO callback (${CALLBACKS.names}, owner_job)
   SELECT u.*, ${CALLBACKS.parameter(1)}::bigint FROM ${CALLBACKS.source} AS u`,
);

const END_RUNS = statement(
  "batch-end-runs",
  `UPDATE dag_run r SET state = u.state, end_reason = u.reason, ended_at = now(), owner_job = NULL,
                        ending = NULL, retry_at = NULL
   FROM unnest($1::bigint[], $2::text[], $3::text[]) AS u(id, state, reason) WHERE r.id = u.id`,
);

/** The batch as statements, without its empty parts; to be sent as one transaction. */
export function batchCalls(batch: RunBatch): Call[] {
  const calls: Call[] = [];
  calls.push(call(FENCE, batch.jobId, column(batch.fences, "runId"), column(batch.fences, "generation")));
  if (batch.slots.size > 0) calls.push(call(SETTLE, [...batch.slots.keys()], [...batch.slots.values()]));
  if (batch.startSignals.length > 0) calls.push(smallSignalsCall(batch.startSignals));
  if (batch.maps.length > 0) calls.push(...mapCalls(batch.maps));
  if (batch.births.length > 0) calls.push(birthCall(batch.births));
  if (batch.attempts.length > 0) calls.push(attemptCall(batch.attempts, batch));
  if (batch.instances.length > 0) calls.push(moveCall(batch.instances, batch));
  calls.push(...deferralCalls(batch.deferrals, batch.waitEnds));
  const { outputs, signals, callbacks, ends } = batch;
  if (outputs.length > 0) calls.push(...outputCalls(outputs));
  calls.push(...drivenCalls(batch));
  if (batch.effects.length > 0) calls.push(effectCall(batch.effects));
  if (signals.length > 0) calls.push(call(INSERT_SIGNALS, ...SIGNALS.values(signals), batch.sender));
  // The locks of signal keys come last, because other transactions wait for them.
  if (batch.sends.length > 0) calls.push(...sendCalls(batch.sends));
  if (callbacks.length > 0) calls.push(call(INSERT_CALLBACKS, ...CALLBACKS.values(callbacks), batch.jobId));
  if (batch.deliveries.length > 0) calls.push(deliveryCall(batch.deliveries));
  if (ends.length > 0)
    calls.push(call(END_RUNS, column(ends, "runId"), column(ends, "state"), column(ends, "reason")));
  if (batch.reports.length > 0) calls.push(deleteReportsCall(batch.reports));
  if (batch.endedAssignments.length > 0) calls.push(deleteAssignmentsCall(batch.endedAssignments));
  return [...calls, ...groupCalls(batch.groups), ...retryCalls(batch.retries)];
}

/** The changed pools, from the results of `batchCalls`. */
export function settledPools(batch: RunBatch, results: readonly unknown[][]): PoolView[] {
  return batch.slots.size > 0 ? (results[1] as PoolView[]) : [];
}

/** The signals of `startSignals` by version, from the results of `batchCalls`; large and deleted signals are missing. */
export function startingSignals(
  batch: Pick<RunBatch, "slots" | "startSignals">,
  results: readonly unknown[][],
): ReadonlyMap<number, ReceivedSignal> {
  const rows = batch.startSignals.length > 0 ? results[batch.slots.size > 0 ? 2 : 1] : [];
  return new Map((rows as ReceivedSignal[]).map((signal) => [signal.version, signal]));
}

function column<R, K extends keyof R>(rows: readonly R[], key: K): R[K][] {
  return rows.map((row) => row[key]);
}
