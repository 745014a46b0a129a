/**
 * A million deferred tasks that wait for a distant time: half of them for the time itself, half for triggers that need not
 * run before it. The rows are inserted in bulk; their runs belong to a job that is alive but idle, so that only the
 * triggerer's part is measured.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc, type Database } from "../../../packages/engine/src/store/database/database.ts";
import type { Figure } from "../../result.ts";
import { openRig, type Rig } from "../../rig.ts";
import { digits, quantile } from "../../statistics.ts";
import { coldFile } from "../dags.ts";
import { withTriggerer } from "../triggerer-process.ts";

const ROUNDS = 10;
/** Several heartbeats, including work that only some of them do. */
const SETTLED_MS = 12_000;

export async function coldTriggers(options: { readonly quick: boolean }): Promise<Figure[]> {
  const runs = options.quick ? 100 : 1_000;
  const rig = await openRig();
  try {
    await rig.publish({ "cold.ts": coldFile() });
    await addWaits(rig.database, runs);
    return await measure(rig, runs * 1_000);
  } finally {
    await rig.stop();
  }
}

const WAITS = adhoc(
  `SELECT task_id, fired_at IS NOT NULL AS fired, 1000 * extract(epoch FROM fired_at - deferred_at)::float8 AS ms,
          1000 * extract(epoch FROM fired_at)::float8 AS at
   FROM deferral WHERE dag_run_id = ANY($1)`,
);

interface WaitRow {
  readonly task_id: string;
  readonly ms: number;
  readonly at: number;
}

async function measure(rig: Rig, waits: number): Promise<Figure[]> {
  // These are due before the triggerer exists: once they have fired, it has started.
  const first = await rig.create(["due"]);
  await sleep(1_000);
  const spawned = Date.now();
  return withTriggerer(rig, async (triggerer) => {
    await rig.ended(first);
    const firedAt = (await rig.database.rows<WaitRow>(WAITS, [first])).map(({ at }) => at);
    await sleep(SETTLED_MS);
    const ids: number[] = [];
    for (let n = 0; n < ROUNDS; n++) {
      ids.push(...(await rig.create(["due"])));
      await rig.ended(ids);
      await sleep(100);
    }
    const processes = triggerer.processes();
    const rows = await rig.database.rows<WaitRow>(WAITS, [ids]);
    const ms = (task: string) => rows.filter(({ task_id }) => task_id === task).map((row) => row.ms);
    const what = `${waits.toLocaleString("en-US")} deferred tasks with cold triggers`;
    return [
      {
        scenario: "e",
        what: `${what}: triggerer started, until it has fired what was due`,
        value: (Math.max(...firedAt) - spawned) / 1_000,
        unit: "s",
        bar: { atMost: 30 },
      },
      {
        scenario: "e",
        what: `${what}: memory of the triggerer's ${processes.length} processes`,
        value: processes.reduce((sum, { megabytes }) => sum + megabytes, 0),
        unit: "MB",
        bar: { atMost: 1_000 },
        note: `after ${SETTLED_MS / 1_000} s: ${processes.map(({ megabytes }) => digits(megabytes)).join(", ")} MB`,
      },
      due(`${what}: one that is due now fires, a moment`, ms("timed")),
      due(`${what}: one that is due now fires, a trigger that has to be run`, ms("run")),
    ];
  });
}

function due(what: string, ms: readonly number[]): Figure {
  return {
    scenario: "e",
    what,
    value: quantile(ms, 1),
    unit: "ms",
    bar: { atMost: 1_000 },
    note: `the longest of ${ms.length}, p50 ${digits(quantile(ms, 0.5))} ms; from the wait's first commit to the fire's`,
  };
}

/** Skips the foreign key checks, which would take minutes: the generated rows are consistent. */
async function addWaits(database: Database, runs: number): Promise<void> {
  await database.transaction(async (tx) => {
    await tx.script(`
      SET LOCAL session_replication_role = replica;
      SET LOCAL synchronous_commit = off;
      SET LOCAL maintenance_work_mem = '256MB';

      INSERT INTO job (kind, hostname, pid, version, lease_until)
      VALUES ('backfill', 'nowhere', 0, 'bench', now() + interval '1 day');

      INSERT INTO dag_run (dag_id, run_id, run_type, state, version_id, triggered_by, started_at, owner_job)
      SELECT d.dag_id, 'waits_' || n, 'manual', 'running', d.version_id, 'cli', now(), (SELECT max(id) FROM job WHERE kind = 'backfill')
      FROM dag d CROSS JOIN generate_series(1, ${runs}) AS n WHERE d.dag_id = 'many';

      CREATE TEMPORARY TABLE wait ON COMMIT DROP AS
      SELECT r.id AS run, 't' || n AS task, gen_random_uuid() AS attempt, n % 2 = 0 AS is_timed,
             now() + interval '100 days' + random() * interval '100 days' AS at,
             row_number() OVER () AS trigger
      FROM dag_run r CROSS JOIN generate_series(0, 999) AS n WHERE r.run_id LIKE 'waits_%';

      INSERT INTO task_instance (dag_run_id, task_id, state, try_number, attempt, scheduled_at, pool, pool_slots, queue,
                                 priority_weight, operator, started_at)
      SELECT run, task, 'deferred', 1, attempt, now(), 'default_pool', 1, 'default', 1, 'task', now() FROM wait;

      INSERT INTO trigger (id, fingerprint, kind, args, bundle_hash, queue, replicas, wake_at, timed)
      OVERRIDING SYSTEM VALUE
      SELECT trigger, sha256(trigger::text::bytea),
             CASE WHEN is_timed THEN 'tradewind.timedelta' ELSE 'bench.cold' END,
             CASE WHEN is_timed THEN '{"deltaMs":1}' ELSE '{"n":2,"at":0}' END::json,
             CASE WHEN is_timed THEN NULL ELSE (SELECT v.bundle_hash FROM dag_version v WHERE v.dag_id = 'many') END,
             'default', 1, at, CASE WHEN is_timed THEN '{"payload":null}'::json END
      FROM wait;

      INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, waits_on, kind, kwargs,
                            on_timeout, on_failure)
      SELECT attempt, run, task, -1, 1, trigger, trigger, CASE WHEN is_timed THEN 'tradewind.timedelta' ELSE 'bench.cold' END,
             '{}', 'fail', 'fail'
      FROM wait;

      SELECT setval(pg_get_serial_sequence('trigger', 'id'), (SELECT max(trigger) FROM wait));`);
  });
  // Like an installation after a while: otherwise autovacuum would start during the measurement.
  for (const name of ["dag_run", "task_instance", "trigger", "deferral"])
    await database.rows(adhoc(`VACUUM (FREEZE, ANALYZE) ${name}`));
  await database.rows(adhoc("CHECKPOINT"));
}
