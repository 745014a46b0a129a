/** DAGs without code, for tests of the store. */

import type { DagManifest } from "@tradewind/sdk/manifest";
import { planNext } from "../../src/model/calendar/planner.ts";
import { publishFiles } from "../../src/store/dag/dag-publish.ts";
import { adhoc, type Database } from "../../src/store/database/database.ts";
import { registerJob } from "../../src/store/job/job-lease.ts";
import { dagManifest, taskManifest } from "../reference/manifests.ts";
import { testDatabase } from "./test-database.ts";

/** Publishes a version with its own code; returns its id. */
export async function seedDag(
  db: Database,
  dagId: string,
  settings: Partial<DagManifest> & { readonly taskCount?: number } = {},
): Promise<number> {
  const { taskCount = 1, ...manifest } = settings;
  const tasks = Array.from({ length: taskCount }, (_, i) => taskManifest(`t${i}`));
  const hash = crypto.randomUUID();
  await publishFiles(
    db,
    [
      {
        file: `${dagId}.ts`,
        bundle: { hash, head: "", sharedChunk: null, code: "// nothing", sourceMap: null },
        source: "",
        manifests: [{ ...EMPTY, tasks, ...manifest, dagId }],
      },
    ],
    { isPausedAtCreation: false, plan: planNext },
  );
  const row = await db.one<{ id: number }>(adhoc("SELECT id FROM dag_version WHERE bundle_hash = $1"), [
    hash,
  ]);
  if (!row) throw new Error(`${dagId} was not published`);
  return row.id;
}

interface SeededRuns {
  readonly count?: number;
  readonly state?: "queued" | "running" | "success" | "failed";
  readonly ownerJob?: number;
  /** How long ago they fell due, and ended if they have ended. Each later run is a millisecond younger. */
  readonly ageMs?: number;
}

/** Runs of the DAG's current version; returns their ids, oldest first. */
export async function seedRuns(db: Database, dagId: string, runs: SeededRuns = {}): Promise<number[]> {
  const { count = 1, state = "queued", ownerJob = null, ageMs = 60_000 } = runs;
  const rows = await db.rows<{ id: number }>(
    adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, state, run_after, version_id, triggered_by, owner_job,
                                started_at, ended_at)
           SELECT d.dag_id, gen_random_uuid(), 'manual', $3, t.at, d.version_id, 'cli', $4,
                  CASE WHEN $3 <> 'queued' THEN t.at END, CASE WHEN $3 IN ('success', 'failed') THEN t.at END
           FROM dag d, generate_series(1, $2) AS i,
                LATERAL (SELECT now() - ($5::float8 - i) * interval '1 millisecond' AS at) AS t
           WHERE d.dag_id = $1 ORDER BY i RETURNING id`),
    [dagId, count, state, ownerJob, ageMs],
  );
  return rows.map((row) => row.id);
}

export async function seedJob(db: Database, leaseMs = 60_000): Promise<number> {
  return (await registerJob(db, { kind: "scheduler", hostname: "here", pid: 1, version: "0" }, leaseMs)).id;
}

/** A database in which two schedulers are alive. */
export async function twoSchedulers() {
  const { close, db } = await testDatabase();
  return { db, own: await seedJob(db), peer: await seedJob(db), close };
}

/** Waits until a statement of this database waits for a lock. */
export async function waitingForLock(db: Database): Promise<void> {
  const sql = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  while ((await db.one(adhoc(sql))) === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
}

const EMPTY = dagManifest([], { dagId: "" });
