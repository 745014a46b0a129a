/** Signals over time, by namespace or by the first part of their keys. */
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import { Conditions } from "../page/query.ts";
import { signalConditions } from "../signal/signals-list.ts";

interface HistogramQuery {
  /** LIKE patterns. */
  readonly namespace: string;
  readonly keys: readonly string[];
  readonly sender?: string | undefined;
  readonly from: Date;
  readonly to: Date;
  readonly buckets: number;
  /** Versions after the first and up to the second. */
  readonly versions: readonly [number, number];
  /** At most so many signals are read, matching or not: the newest of the range. */
  readonly limit: number;
  /** At most so many names; the others are counted together. */
  readonly names: number;
}

interface HistogramRow {
  readonly bucket: number;
  /** null: all other names. */
  readonly name: string | null;
  readonly amount: number;
}

export interface Histogram {
  readonly rows: readonly HistogramRow[];
  /** Set if the limit was reached: older signals are not counted. */
  readonly completeSince: Date | null;
}

interface Row extends HistogramRow {
  readonly total: number;
  readonly oldest: Date | null;
}

/** Index: signal_pkey, or signal_key for exact keys; at most `limit` rows. */
export async function signalHistogram(db: Connection, query: HistogramQuery): Promise<Histogram> {
  const [after, upTo] = query.versions;
  const range = new Conditions().between("s.id", { gt: after, lte: upTo });
  const names = new Conditions(range);
  const { isByKey } = signalConditions(names, query);
  const filter = names.isEmpty ? "true" : `${names}`.replace(/^WHERE /, "");
  const [from, to] = [range.bind(query.from), range.bind(query.to)];
  const limit = Math.trunc(query.limit);
  // The first part of a key, e.g. "order" of "order.paid"; of several namespaces, the namespace.
  const name = query.namespace.includes("%") ? "s.namespace" : "regexp_replace(s.key, '[./:].*$', '')";
  const rows = await db.rows<Row>(
    adhoc(
      // Unless an index finds the keys, signals of other names count towards the limit.
      `WITH scanned AS MATERIALIZED (
         SELECT s.namespace, s.key, s.sender, s.created_at FROM signal s
         ${range} AND ${isByKey ? filter : "true"} ORDER BY s.id DESC LIMIT ${limit}
       ), matched AS MATERIALIZED (
         SELECT ${name} AS name, width_bucket(extract(epoch FROM s.created_at), extract(epoch FROM ${from}::timestamptz),
           extract(epoch FROM ${to}::timestamptz), ${Math.trunc(query.buckets)}) - 1 AS bucket
         FROM scanned s WHERE ${filter} AND s.created_at >= ${from}::timestamptz AND s.created_at < ${to}::timestamptz
       ), top AS (
         SELECT name FROM matched GROUP BY name ORDER BY count(*) DESC, name LIMIT ${Math.trunc(query.names)}
       ), told AS (
         SELECT m.bucket, t.name, count(*) AS amount FROM matched m LEFT JOIN top t ON t.name = m.name GROUP BY 1, 2
       ), read AS (SELECT count(*) AS total, min(created_at) AS oldest FROM scanned)
       SELECT t.bucket, t.name, t.amount, r.total, r.oldest FROM read r LEFT JOIN told t ON true ORDER BY t.bucket, t.name`,
    ),
    range.values,
  );
  const [first] = rows;
  const isCut = first !== undefined && first.total >= limit;
  return { rows: rows.filter(({ bucket }) => bucket !== null), completeSince: isCut ? first.oldest : null };
}
