/** The runs of a DAG by day. Indexes: dag_run_logical_date, and dag_run_latest for runs without a logical date. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface CalendarDay {
  /** The position of the day, from 0. */
  readonly day: number;
  readonly queued: number;
  readonly running: number;
  readonly success: number;
  readonly failed: number;
  /** Milliseconds, of runs that have ended. */
  readonly longest: number | null;
  /** One of its runs: a failed one if there is one, the latest of these. */
  readonly run_id: string;
}

/** More runs are not read: the earliest of them are missing. */
export const MOST_CALENDAR_RUNS = 100_000;

const COLUMNS = "x.run_id, x.state, x.started_at, x.ended_at";
const DAYS = statement(
  "ui-calendar-days",
  `WITH run AS (
     (SELECT ${COLUMNS}, x.logical_date AS at FROM dag_run x
      WHERE x.dag_id = $1 AND x.logical_date >= $3 AND x.logical_date < $4
      ORDER BY x.logical_date DESC LIMIT ${MOST_CALENDAR_RUNS})
     UNION ALL
     (SELECT ${COLUMNS}, x.run_after FROM dag_run x
      WHERE x.dag_id = $1 AND x.run_after >= $3 AND x.run_after < $4 AND x.logical_date IS NULL
      ORDER BY x.run_after DESC, x.id DESC LIMIT ${MOST_CALENDAR_RUNS})
   )
   SELECT width_bucket(r.at, $2::timestamptz[]) - 1 AS day,
     count(*) FILTER (WHERE r.state = 'queued')::int AS queued, count(*) FILTER (WHERE r.state = 'running')::int AS running,
     count(*) FILTER (WHERE r.state = 'success')::int AS success, count(*) FILTER (WHERE r.state = 'failed')::int AS failed,
     (max(extract(epoch FROM r.ended_at - r.started_at)) * 1000)::int8 AS longest,
     (array_agg(r.run_id ORDER BY r.state = 'failed' DESC, r.at DESC))[1] AS run_id
   FROM run r GROUP BY 1 ORDER BY 1`,
);

/** @param starts The first moment of each day; the last is the end of the last day. */
export function readCalendar(
  connection: Connection,
  dagId: string,
  starts: readonly Date[],
): Promise<CalendarDay[]> {
  return connection.rows<CalendarDay>(DAYS, [dagId, starts.slice(0, -1), starts[0], starts.at(-1)]);
}
