/** Waits by task instance: the current wait of a deferred instance, and its earlier waits. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { Conditions, type Listed, list, type Page } from "../page/query.ts";
import { type JobRow, readJobs } from "./jobs.ts";
import { FIRED, TRIGGER_STATE, type TriggerState, WAKE_AT } from "./triggers.ts";

export interface CurrentWait {
  readonly kind: string;
  readonly deferred_at: Date;
  readonly timeout_at: Date | null;
  /** Set when it has fired and the run's owner has not applied the outcome yet. */
  readonly fired_at: Date | null;
  /** null once it has fired. */
  readonly trigger: WaitedTrigger | null;
}

export interface WaitedTrigger {
  readonly id: number;
  readonly args: Json;
  readonly fired: readonly number[] | null;
  readonly queue: string;
  readonly state: TriggerState;
  readonly wake_at: Date | null;
  readonly created_at: Date;
  readonly polled_at: Date | null;
  /** The job that runs it; may be an ended job until another one has claimed the trigger. */
  readonly triggerer: JobRow | null;
}

interface InstanceKey {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
}

/** The waits of deferred instances, in the order of the keys; null for other instances. */
export async function readCurrentWaits(
  connection: Connection,
  keys: readonly InstanceKey[],
): Promise<(CurrentWait | null)[]> {
  const waits = keys.map((): CurrentWait | null => null);
  if (keys.length === 0) return waits;
  const rows = await connection.rows<WaitColumns>(CURRENT, [
    keys.map((key) => key.dag_run_id),
    keys.map((key) => key.task_id),
    keys.map((key) => key.map_index),
  ]);
  const jobs = await readJobs(
    connection,
    rows.flatMap(({ owner_job }) => owner_job ?? []),
  );
  for (const row of rows) waits[row.place - 1] = waitOf(row, jobs);
  return waits;
}

/** One wait of the instance's history. */
export interface DeferralRow {
  readonly try_number: number;
  readonly trigger_id: number;
  readonly kind: string;
  readonly name: string | null;
  readonly method: string | null;
  readonly on_timeout: string;
  readonly deferred_at: Date;
  readonly timeout_at: Date | null;
  readonly fired_at: Date | null;
  readonly ended_at: Date | null;
  readonly end_kind: string | null;
  /** The kind of the stored outcome. */
  readonly outcome_kind: string | null;
  readonly outcome_bytes: number | null;
  /** Absent for an event unless requested: it may have a megabyte. */
  readonly outcome: { readonly [key: string]: Json } | null;
}

export const DEFERRAL_ORDER = { deferred_at: "d.deferred_at", try_number: "d.try_number" } as const;

export function listDeferrals(
  connection: Connection,
  of: InstanceKey,
  { page, withPayload }: { readonly page: Page; readonly withPayload: boolean },
): Promise<Listed<DeferralRow>> {
  return list(connection, {
    columns: withPayload ? `${COLUMNS}, d.outcome` : `${COLUMNS}, ${WITHOUT_EVENT} AS outcome`,
    from: "deferral d",
    where: new Conditions()
      .equals("d.dag_run_id", of.dag_run_id)
      .equals("d.task_id", of.task_id)
      .equals("d.map_index", of.map_index),
    order: DEFERRAL_ORDER,
    tiebreak: "d.deferred_at, d.attempt",
    page,
  });
}

/**
 * Read from the text, where it is the first key: a `json` operator would unescape everything before it, and would reject
 * values that user code can send (ADR 6).
 */
const OUTCOME_KIND = `substring(left(d.outcome::text, 100) FROM '^\\s*\\{\\s*"kind"\\s*:\\s*"(\\w+)"')`;
const WITHOUT_EVENT = `CASE WHEN ${OUTCOME_KIND} <> 'event' THEN d.outcome END`;
const COLUMNS = `d.try_number, d.trigger_id, d.kind, d.name, d.method, d.on_timeout, d.deferred_at, d.timeout_at, d.fired_at,
  d.ended_at, d.end_kind, ${OUTCOME_KIND} AS outcome_kind, octet_length(d.outcome::text) AS outcome_bytes`;

interface WaitColumns extends Omit<CurrentWait, "trigger">, Omit<WaitedTrigger, "id" | "triggerer"> {
  readonly place: number;
  readonly trigger_id: number | null;
  readonly owner_job: number | null;
}

function waitOf(row: WaitColumns, jobs: ReadonlyMap<number, JobRow>): CurrentWait {
  const { place: _, kind, deferred_at, timeout_at, fired_at, trigger_id, owner_job, ...trigger } = row;
  const triggerer = (owner_job === null ? undefined : jobs.get(owner_job)) ?? null;
  return {
    kind,
    deferred_at,
    timeout_at,
    fired_at,
    trigger: trigger_id === null ? null : { id: trigger_id, ...trigger, triggerer },
  };
}

/** By the attempt: a deferred instance keeps the attempt of the process that deferred. */
const CURRENT = statement(
  "list-current-waits",
  `SELECT k.place, d.kind, d.deferred_at, d.timeout_at, d.fired_at, g.id AS trigger_id, g.args, g.queue,
     ${TRIGGER_STATE} AS state, ${WAKE_AT}, ${FIRED}, g.created_at, g.polled_at, g.owner_job
   FROM unnest($1::int8[], $2::text[], $3::int4[]) WITH ORDINALITY AS k (dag_run_id, task_id, map_index, place)
     JOIN task_instance t USING (dag_run_id, task_id, map_index)
     JOIN deferral d ON d.attempt = t.attempt
     LEFT JOIN trigger g ON g.id = d.waits_on LEFT JOIN job j ON j.id = g.owner_job
   WHERE t.state = 'deferred'`,
);
