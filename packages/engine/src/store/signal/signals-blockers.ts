/**
 * The open transactions that hold back the signal log: readers stop before a transaction that has written signals until
 * it ends (signals-horizon.ts). If the database's default isolation is not READ COMMITTED, readers stop before any open
 * transaction that has a transaction id, in any database of the server.
 */
import type { Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { finalPosition, SIGNAL_WRITERS } from "./signals-horizon.ts";

export interface SignalBlocker {
  /** The backend; null: a prepared transaction, which has a gid. */
  readonly pid: number | null;
  readonly gid: string | null;
  readonly database: string;
  readonly user: string;
  readonly application: string | null;
  /** As in pg_stat_activity, e.g. "idle in transaction"; null if our role may not see it (also age and query). */
  readonly state: string | null;
  readonly age_seconds: number | null;
  /** The beginning of its last query. */
  readonly query: string | null;
  /** The default isolation, if it is the reason for the blocking; null: the transaction has written signals. */
  readonly isolation: string | null;
}

/** Minimum age to report: transactions of the engine take milliseconds. */
const OLD_SECONDS = 1;

/** Without pg_read_all_stats, our role sees neither start nor state nor query of other roles' sessions. */
const BLOCKERS = statement(
  "signal-blockers",
  `WITH ${SIGNAL_WRITERS},
   isolation AS (SELECT nullif(current_setting('default_transaction_isolation'), 'read committed') AS level)
   SELECT * FROM (
     SELECT a.pid, NULL AS gid, coalesce(a.datname, 'none') AS database, coalesce(a.usename, a.backend_type) AS "user",
            nullif(a.application_name, '') AS application, a.state, extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS age_seconds,
            CASE WHEN a.state IS NOT NULL
              THEN left(substring(regexp_replace(a.query, '\\s+', ' ', 'g') FROM '^ ?((?:[^ ]+ ?){1,4})'), 60) END AS query,
            i.level AS isolation
     FROM isolation i
     JOIN pg_stat_activity a ON CASE WHEN i.level IS NULL THEN a.pid IN (SELECT pid FROM writer) ELSE a.backend_xid IS NOT NULL END
       AND (a.state IS NULL OR a.xact_start IS NOT NULL)
     UNION ALL
     SELECT NULL, p.gid, p.database, p.owner, NULL, 'prepared',
            extract(epoch FROM clock_timestamp() - p.prepared)::float8, NULL, i.level
     FROM isolation i
     JOIN pg_prepared_xacts p ON i.level IS NOT NULL OR p.transaction IN (SELECT xid FROM writer)
   ) AS b
   WHERE b.age_seconds IS NULL OR b.age_seconds >= ${OLD_SECONDS}
   ORDER BY b.age_seconds DESC NULLS LAST, b.pid`,
);

/** Index: signal_position. */
const HELD = statement(
  "signal-held-back",
  `SELECT extract(epoch FROM clock_timestamp() - created_at)::float8 AS seconds FROM signal
   WHERE (tx, id) > ($1::xid8, $2) ORDER BY tx, id LIMIT 1`,
);

/** Blockers older than a second, oldest first. A blocker of unknown age counts if signals have waited that long. */
export async function signalBlockers(db: Database): Promise<SignalBlocker[]> {
  const found = await db.rows<SignalBlocker>(BLOCKERS);
  if (found.every(({ age_seconds }) => age_seconds !== null)) return found;
  const { id, tx } = await finalPosition(db);
  const held = await db.one<{ seconds: number }>(HELD, [tx, id]);
  const isLong = held !== undefined && held.seconds >= OLD_SECONDS;
  return found.filter(({ age_seconds }) => age_seconds !== null || isLong);
}

/** A sentence without its full stop: the transaction, and how long it has been open. */
export function describeBlocker(blocker: SignalBlocker): string {
  const { age_seconds, application, database, gid, isolation, pid, query, state, user } = blocker;
  const who = gid === null ? `session ${pid}` : `prepared transaction ${quoted(gid)}`;
  const facts = [
    ...(application === null ? [] : [`application ${application}`]),
    `user ${user}`,
    `database ${database}`,
    ...(gid !== null || state === null ? [] : [state]),
    ...(query === null ? [] : [`last query ${query.trim()} …`]),
  ];
  const age = age_seconds === null ? "" : `, for ${Math.floor(age_seconds)} s`;
  const what =
    isolation === null
      ? `has sent signals and not committed${age}`
      : `is open${age}, and default_transaction_isolation is ${isolation}`;
  return `${who} (${facts.join(", ")}) ${what}`;
}

/** Without the full stop: it ends with a statement to copy. */
export function blockerRemedy({ age_seconds, database, gid, isolation, pid }: SignalBlocker): string {
  const end =
    gid === null
      ? `commit or roll back in that session, or end it with: SELECT pg_terminate_backend(${pid})`
      : `in database ${database}: COMMIT PREPARED ${quoted(gid)} or ROLLBACK PREPARED ${quoted(gid)}`;
  const level =
    isolation === null
      ? ""
      : "set default_transaction_isolation of Tradewind's database to 'read committed', so that only transactions that send signals matter; ";
  const grant = age_seconds === null ? "GRANT pg_monitor to Tradewind's role to see its age and query; " : "";
  return `${level}${grant}${end}`;
}

function quoted(gid: string): string {
  return `'${gid.replaceAll("'", "''")}'`;
}
