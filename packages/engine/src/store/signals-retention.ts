/**
 * Retention of the signal log: by age, and never past a listener or a run that listens. One that nobody has held for `staleMs` no longer
 * holds signals back: it is reported, and misses what was deleted if it comes back. Dead letters have copies.
 */
import type { Connection } from "./database.ts";
import { statement } from "./statement.ts";

export interface SignalRetention {
  readonly olderThanMs: number;
  readonly staleMs: number;
}

/** After a week of absence a listener is taken for gone. */
export const STALE_LISTENER_MS = 7 * 86_400_000;

/** Of listener `l`: somebody holds it, or has not long ago. The duration is the parameter's. */
const isKept = (duration: string) =>
  `(l.lease_until > now() OR l.seen_at > now() - ${duration}::float8 * interval '1 millisecond')`;

/** Of signal `s`: old enough, and dealt with by every listener that is not stale, and by every run that listens. */
const DONE_WITH = `s.created_at < now() - $1::float8 * interval '1 millisecond'
  AND NOT EXISTS (
    SELECT 1 FROM signal_listener l WHERE ${isKept("$2")} AND (s.tx, s.id) > (l.tx, l.signal_id))
  AND NOT EXISTS (SELECT 1 FROM run_drive d WHERE (s.tx, s.id) > (d.tx, d.signal_id))
  AND NOT EXISTS (
    SELECT 1 FROM signal_retry r JOIN signal_listener l ON l.name = r.listener
    WHERE ${isKept("$2")}
      AND r.namespace = s.namespace AND r.key = s.key AND s.id >= r.signal_id)`;

const COUNT = statement("clean-count-signals", `SELECT count(*) AS n FROM signal s WHERE ${DONE_WITH}`);

const REMOVE = statement(
  "clean-remove-signals",
  `DELETE FROM signal s WHERE s.id = ANY(ARRAY(SELECT s.id FROM signal s WHERE ${DONE_WITH} ORDER BY s.id LIMIT $3))
   RETURNING 1`,
);

const STALE = statement(
  "listener-stale",
  `SELECT l.name, l.seen_at AS "seenAt" FROM signal_listener l WHERE ${isKept("$1")} IS NOT TRUE ORDER BY l.name`,
);

export async function countDeletableSignals(db: Connection, retention: SignalRetention): Promise<number> {
  const row = await db.one<{ n: number }>(COUNT, [retention.olderThanMs, retention.staleMs]);
  return row?.n ?? 0;
}

/** Deletes `batch` at most, the oldest first; answers how many it were. */
export async function deleteSignals(
  db: Connection,
  retention: SignalRetention & { readonly batch: number },
): Promise<number> {
  const { batch, olderThanMs, staleMs } = retention;
  return (await db.rows(REMOVE, [olderThanMs, staleMs, batch])).length;
}

/** Listeners that nobody has held for so long: for the one who cleans to know. */
export function staleListeners(db: Connection, staleMs: number): Promise<{ name: string; seenAt: Date }[]> {
  return db.rows(STALE, [staleMs]);
}
