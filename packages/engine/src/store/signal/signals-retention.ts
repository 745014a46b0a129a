/**
 * Retention of the signal log: by age, and never past a listener or a run that listens. One that nobody has held for
 * `staleMs` no longer holds signals back: it is reported, and misses what was deleted if it comes back. Dead letters
 * have copies.
 *
 * A run that signals drive gets its place in the log when it is first loaded, and hears what was sent since it was
 * queued. Until then that moment is its place. A task that waits for signals or for a webhook is asked about everything
 * since its run was queued whenever a triggerer takes it over, so that moment is its place, too. Signals that a task was
 * started by, or will be, stay as long as its run: it may be tried again.
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

/** After a week of absence a listener is taken for gone. */
export const STALE_LISTENER_MS = 7 * 86_400_000;

/** Of listener `l`: somebody holds it, or has not long ago. The duration is the parameter's. */
const isKept = (duration: string) =>
  `(l.lease_until > now() OR l.seen_at > now() - ${duration}::float8 * interval '1 millisecond')`;

/** Runs, by version, that are not over and have no place in the log; only those that are older than the age asked for. */
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

/** $2: since when a run that signals drive waits for its start; null when none does. */
const BOUND = statement(
  "clean-signals-bound",
  `SELECT least(now() - $1::float8 * interval '1 millisecond', $2::timestamptz,
     (SELECT min(r.queued_at) FROM deferral d JOIN trigger t ON t.id = d.waits_on JOIN dag_run r ON r.id = d.dag_run_id
      WHERE t.kind IN ('tradewind.signal', 'tradewind.webhook')
         OR t.kind IN ('tradewind.all', 'tradewind.any') AND t.args::text ~ '"tradewind[.](signal|webhook)"'),
     (SELECT min(greatest(t.created_at, t.polled_at - interval '1 minute')) FROM trigger t
      WHERE t.dag_id IS NOT NULL AND t.kind = 'tradewind.webhook'))::text AS bound`,
);

/** Of signal `s`: before the bound $2, and dealt with by every listener that is not stale ($3), and by every run that listens. */
const FLOOR = `floor AS MATERIALIZED (
  SELECT p.tx, p.signal_id FROM (
    SELECT l.tx, l.signal_id FROM signal_listener l WHERE ${isKept("$3")}
    UNION ALL SELECT d.tx, d.signal_id FROM run_drive d
    UNION ALL SELECT b.tx, b.signal_id FROM signal_bridge b WHERE b.lease_until > now() - $3::float8 * interval '1 millisecond') AS p
  ORDER BY p.tx, p.signal_id LIMIT 1)`;
/** What tries and starts of runs are due to, and what half fulfilled conditions have heard: their tasks will ask for it. */
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

/** For whoever counts. */
export const DELETABLE_SIGNALS: Deletable = {
  table: "signal",
  alias: "s",
  key: "id",
  old: DONE_WITH,
  asks: [FLOOR, KEPT],
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

/** Deletes `batch` at most, the oldest first; answers how many it were. */
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
 * The moment before which no signal is needed for want of a place in the log. It is asked in a statement of its own: a
 * run that gets its place meanwhile gets it at or behind the moment it was queued, which the bound knows; one that is
 * made meanwhile is younger than what is deleted.
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
  if (!row) throw new Error("the database did not tell the time");
  return row.bound;
}

/** Listeners that nobody has held for so long: for the one who cleans to know. */
export function staleListeners(db: Connection, staleMs: number): Promise<{ name: string; seenAt: Date }[]> {
  return db.rows(STALE, [staleMs]);
}
