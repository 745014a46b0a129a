/** The facts that decide whether a run is the latest of its schedule. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface LatestRunRow {
  readonly dag_id: string;
  readonly run_type: string;
  readonly logical_date: Date | null;
  readonly interval_end: Date | null;
  readonly manifest: Pick<DagManifest, "schedule" | "start" | "end" | "catchup" | "jitterMs">;
  readonly has_later: boolean;
  readonly next_logical_date: Date | null;
  readonly next_run_after: Date | null;
  readonly now: number;
}

/**
 * Index: dag_run_logical_date. A later manual run is not part of the schedule. A date that the run's backfill has not
 * reached yet counts as a later run.
 */
const FACTS = statement(
  "latest-run-facts",
  `SELECT r.dag_id, r.run_type, r.logical_date, r.interval_end, v.manifest - 'tasks' - 'groups' - 'maps' AS manifest,
          EXISTS (SELECT 1 FROM dag_run l WHERE l.dag_id = r.dag_id AND l.logical_date > r.logical_date
                    AND l.run_type IN ('scheduled', 'backfill'))
            OR EXISTS (SELECT 1 FROM backfill b WHERE b.id = r.backfill_id
                         AND jsonb_path_exists(b.schedule, '$.dues[*][0] ? (@ > $at)',
                               jsonb_build_object('at', extract(epoch FROM r.logical_date) * 1000))) AS has_later,
          d.next_logical_date, d.next_run_after, extract(epoch FROM now()) * 1000 AS now
   FROM dag_run r JOIN dag d ON d.dag_id = r.dag_id JOIN dag_version v ON v.id = d.version_id
   WHERE r.id = $1`,
);

/** undefined: the run is deleted. */
export function readLatestFacts(db: Connection, dagRunId: number): Promise<LatestRunRow | undefined> {
  return db.one<LatestRunRow>(FACTS, [dagRunId]);
}
