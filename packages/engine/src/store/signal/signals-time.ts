/**
 * From times to versions, for pages that show a range of time. Ids and times grow together except for long transactions,
 * whose signals have the time of their start: a range of versions may miss those. It is exact enough to display.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** A binary search over the primary key: about forty reads of one row each, however long the log is. */
const UP_TO = statement(
  "signal-version-at",
  `WITH RECURSIVE search(low, high) AS (
     SELECT coalesce((SELECT id FROM signal ORDER BY id LIMIT 1), 1) - 1, coalesce((SELECT id FROM signal ORDER BY id DESC LIMIT 1), 0)
     UNION ALL
     SELECT CASE WHEN p.is_before THEN n.middle ELSE s.low END, CASE WHEN p.is_before THEN s.high ELSE n.middle - 1 END
     FROM search s CROSS JOIN LATERAL (SELECT (s.low + s.high + 1) / 2 AS middle) AS n
     CROSS JOIN LATERAL (SELECT coalesce((SELECT x.created_at < $1 FROM signal x WHERE x.id <= n.middle
                                          ORDER BY x.id DESC LIMIT 1), true) AS is_before) AS p
     WHERE s.low < s.high
   ) SELECT low AS version FROM search WHERE low >= high LIMIT 1`,
);

/** The last version before this time. */
export async function versionBefore(db: Connection, time: Date): Promise<number> {
  return (await db.one<{ version: number }>(UP_TO, [time]))?.version ?? 0;
}
