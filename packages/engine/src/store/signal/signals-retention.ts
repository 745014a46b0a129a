/**
 * Retention of the signal log: by age, and never past the position of a listener or a run. A listener that no process has
 * held for `staleMs` no longer prevents deletion: it is reported, and misses the deleted signals if it returns. Dead
 * letters are copies.
 *
 * A signal-driven run gets its position in the log when it is first loaded, and receives the signals sent since it was
 * queued. Until then that time is its position. A task that waits for signals or a webhook is checked against everything
 * since its run was queued whenever a triggerer takes it over, so that time is its position, too. Signals that have
 * started a task, or will start it, are kept as long as its run: the task may be retried.
 */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { isDriven } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { Deletable } from "../run/history-count.ts";

export interface SignalRetention {
  readonly olderThanMs: number;
  readonly staleMs: number;
}

/** A listener counts as abandoned after a week without a holder. */
export const STALE_LISTENER_MS = 7 * 86_400_000;

/** SQL for a listener `l`: it has a holder, or had one recently. The parameter is a duration. */
const isKept = (duration: string) =>
  `(l.lease_until > now() OR l.seen_at > now() - ${duration}::float8 * interval '1 millisecond')`;

/** Unfinished runs without a position in the log, by version; only those older than the given age. */
const UNPLACED = statement(
  "clean-unplaced-runs",
  `SELECT r.version_id, min(r.queued_at) AS since FROM (
     SELECT id, version_id, queued_at FROM dag_run WHERE state = 'queued'
     UNION ALL SELECT id, version_id, queued_at FROM dag_run WHERE state = 'running') AS r
   WHERE r.queued_at < now() - $1::float8 * interval '1 millisecond'
     AND NOT EXISTS (SELECT 1 FROM run_drive d WHERE d.dag_run_id = r.id)
   GROUP BY r.version_id`,
);

const MANIFESTS = statement(
  "clean-unplaced-manifests",
  "SELECT id, manifest->'stop' AS stop, manifest->'tasks' AS tasks FROM dag_version WHERE id = ANY($1::bigint[])",
);

/** $2: the earliest queued time of signal-driven runs that have not started; null: none. */
const BOUND = statement(
  "clean-signals-bound",
  `SELECT least(now() - $1::float8 * interval '1 millisecond', $2::timestamptz,
     (SELECT min(r.queued_at) FROM deferral d JOIN trigger t ON t.id = d.waits_on JOIN dag_run r ON r.id = d.dag_run_id
      WHERE t.kind IN ('tradewind.signal', 'tradewind.webhook')
         OR t.kind IN ('tradewind.all', 'tradewind.any') AND t.args::text ~ '"tradewind[.](signal|webhook)"'),
     (SELECT min(greatest(t.created_at, t.polled_at - interval '1 minute')) FROM trigger t
      WHERE t.dag_id IS NOT NULL AND t.kind = 'tradewind.webhook'))::text AS bound`,
);

/** SQL for a signal `s`: before the bound $2, and processed by all listeners that are not stale ($3) and all runs. */
const FLOOR = `floor AS MATERIALIZED (
  SELECT p.tx, p.signal_id FROM (
    SELECT l.tx, l.signal_id FROM signal_listener l WHERE ${isKept("$3")}
    UNION ALL SELECT d.tx, d.signal_id FROM run_drive d
    UNION ALL SELECT b.tx, b.signal_id FROM signal_bridge b WHERE b.lease_until > now() - $3::float8 * interval '1 millisecond') AS p
  ORDER BY p.tx, p.signal_id LIMIT 1)`;
/** Signals that caused tries and starts, and signals of partly met conditions: their tasks will read them. */
const KEPT = `kept AS MATERIALIZED (
  SELECT DISTINCT (v.version #>> '{}')::bigint AS id FROM run_drive d
  CROSS JOIN unnest(ARRAY['$.tasks.*.cause.*[*]', '$.rules[*].state.leaves[*].version']) AS p(path)
  CROSS JOIN LATERAL jsonb_path_query(d.state::jsonb, p.path::jsonpath) AS v(version)
  UNION SELECT (v.version #>> '{}')::bigint FROM run_start w
  CROSS JOIN LATERAL jsonb_path_query(w.cause::jsonb, '$.*[*]') AS v(version))`;
const DONE_WITH = `s.created_at < $2::timestamptz
  AND NOT EXISTS (SELECT 1 FROM floor f WHERE (s.tx, s.id) > (f.tx, f.signal_id))
  AND NOT EXISTS (SELECT 1 FROM kept k WHERE k.id = s.id)
  AND NOT EXISTS (
    SELECT 1 FROM signal_retry r JOIN signal_listener l ON l.name = r.listener
    WHERE ${isKept("$3")}
      AND r.namespace = s.namespace AND r.key = s.key AND s.id >= r.signal_id)`;

/** For counting. */
export const DELETABLE_SIGNALS: Deletable = {
  table: "signal",
  alias: "s",
  key: "id",
  old: DONE_WITH,
  subqueries: [FLOOR, KEPT],
};

const REMOVE = statement(
  "clean-remove-signals",
  `WITH ${FLOOR}, ${KEPT}
   DELETE FROM signal s WHERE s.id = ANY(ARRAY(SELECT s.id FROM signal s WHERE ${DONE_WITH} ORDER BY s.id LIMIT $1))
   RETURNING 1`,
);

const STALE = statement(
  "listener-stale",
  `SELECT l.name, l.seen_at AS "seenAt" FROM signal_listener l WHERE ${isKept("$1")} IS NOT TRUE ORDER BY l.name`,
);

/** Deletes at most `batch` signals, oldest first; returns their number. */
export async function deleteSignals(
  db: Connection,
  {
    batch,
    bound,
    olderThanMs,
    staleMs,
  }: SignalRetention & { readonly batch: number; readonly bound?: string },
): Promise<number> {
  const before = bound ?? (await signalsBound(db, olderThanMs));
  return (await db.rows(REMOVE, [batch, before, staleMs])).length;
}

/**
 * The time before which no run without a position needs signals. A separate statement: a run that gets its position
 * meanwhile gets it at or after the time it was queued, which the bound includes; a run that is created meanwhile is
 * younger than the deleted signals.
 */
export async function signalsBound(db: Connection, olderThanMs: number): Promise<string> {
  const waiting = await db.rows<{ version_id: number; since: Date }>(UNPLACED, [olderThanMs]);
  const versions = waiting.map(({ version_id }) => version_id);
  const rows =
    versions.length === 0
      ? []
      : await db.rows<{ id: number } & Pick<DagManifest, "stop" | "tasks">>(MANIFESTS, [versions]);
  const driven = new Set(rows.filter(isDriven).map(({ id }) => id));
  const since = waiting
    .filter(({ version_id }) => driven.has(version_id))
    .reduce<Date | null>((min, each) => (min === null || each.since < min ? each.since : min), null);
  const row = await db.one<{ bound: string }>(BOUND, [olderThanMs, since]);
  if (!row) throw new Error("the database returned no time");
  return row.bound;
}

/** Listeners without a holder for this long, for the report of the cleanup. */
export function staleListeners(db: Connection, staleMs: number): Promise<{ name: string; seenAt: Date }[]> {
  return db.rows(STALE, [staleMs]);
}
