/** A dry run counts the rows that the same call then deletes, including rows that become deletable on the way. */
import { mkdir, mkdtemp, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { CLEANABLE, clean } from "../../process/clean.ts";
import { resolveConfig } from "../../service/config.ts";
import { adhoc, type Database } from "../database/database.ts";

let db: Database;
let home: string;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  home = await mkdtemp(join(tmpdir(), "tradewind-count-"));
  await seed();
  return async () => {
    await test.close();
    await rm(home, { recursive: true });
  };
});

const DAY = 86_400_000;
const NOTHING = Object.fromEntries(CLEANABLE.map((name) => [name, 0]));
const sql = <R = { id: number }>(text: string, values: unknown[] = []) => db.rows<R>(adhoc(text), values);
const cleaned = (dryRun: boolean, only?: readonly (typeof CLEANABLE)[number][]) =>
  clean(
    { config: resolveConfig({ home }, {}), database: db },
    { olderThanMs: 30 * DAY, dryRun, batch: 2, only },
  );

/** Three old runs of an earlier version, each with different references, and one run that is kept. */
async function seed(): Promise<void> {
  const version = await seedDag(db, "a");
  const [first, second, driven] = await seedRuns(db, "a", { count: 3, state: "success", ageMs: 40 * DAY });
  await seedDag(db, "a");
  const [staying] = await seedRuns(db, "a", { state: "success" });
  await seedDag(db, "a");

  await sql("INSERT INTO shared_chunk (hash, names, code, created_at) VALUES ('p', '{}', '', '2020-01-01')");
  await sql("INSERT INTO bundled_file (hash, content, created_at) VALUES ('f', '', '2020-01-01')");
  await sql(
    "INSERT INTO bundle_file (bundle_hash, file_hash) SELECT bundle_hash, 'f' FROM dag_version WHERE id = $1",
    [version],
  );
  await sql("UPDATE dag_version SET created_at = '2020-01-01'");
  await sql(
    `UPDATE bundle SET created_at = '2020-01-01',
       shared_chunk_hash = CASE WHEN hash = (SELECT bundle_hash FROM dag_version WHERE id = $1) THEN 'p' END`,
    [version],
  );

  const job = await seedJob(db);
  await sql("UPDATE job SET state = 'stopped', ended_at = '2020-01-01' WHERE id = $1", [job]);
  await sql("UPDATE dag_run SET owner_job = $2 WHERE id = $1", [second, job]);

  const [backfill] = await sql(
    `INSERT INTO backfill (dag_id, schedule, from_date, to_date, reprocess, is_reverse, max_active, stop_on_failure,
                           state, total_runs, version_id, ended_at)
     VALUES ('a', '{}', now(), now(), 'none', false, 1, false, 'done', 1, $1, '2020-01-01') RETURNING id`,
    [version],
  );
  await sql("UPDATE dag_run SET backfill_id = $2 WHERE id = $1", [first, backfill?.id]);
  await sql(
    `INSERT INTO backfill_date (backfill_id, ordinal, logical_date, action, dag_run_id)
     VALUES ($1, 0, now(), 'created', $2), ($1, 1, now(), 'kept', NULL)`,
    [backfill?.id, first],
  );

  const signals = await sql(
    `INSERT INTO signal (namespace, key, value, sender, created_at)
     SELECT 'asset', 's3://orders', '{}', 's', '2020-01-01' FROM generate_series(1, 4) RETURNING id`,
  );
  await sql("INSERT INTO asset_event_run (dag_run_id, event_id) VALUES ($1, $3), ($2, $4)", [
    second,
    staying,
    signals[0]?.id,
    signals[1]?.id,
  ]);
  // It has received one of them, and its task was started by the first.
  await sql(
    `INSERT INTO run_drive (dag_run_id, since, tx, signal_id, state)
     SELECT $1, s.created_at, s.tx, s.id, $3 FROM signal s WHERE s.id = $2`,
    [driven, signals[1]?.id, JSON.stringify({ tasks: { t: { cause: { s: [signals[0]?.id] } } } })],
  );

  const [object] = await sql(
    `INSERT INTO output_object (dag_run_id, task_id, map_index, attempt, store, key, bytes, sha256, created_at)
     VALUES ($1, 't0', -1, gen_random_uuid(), $2, 'k', 1, repeat('0', 64), '2020-01-01') RETURNING id`,
    [first, `file://${join(home, "outputs")}`],
  );
  await sql(
    "INSERT INTO task_instance (dag_run_id, task_id, map_index, state, pool, pool_slots, queue, priority_weight, operator) VALUES ($1, 't0', -1, 'success', 'default_pool', 1, 'default', 1, 'task')",
    [first],
  );
  await sql(
    "INSERT INTO xcom (dag_run_id, task_id, map_index, key, object_id) VALUES ($1, 't0', -1, 'return_value', $2)",
    [first, object?.id],
  );

  for (const run of [first, staying]) {
    const folder = join(home, "logs", "a", String(run));
    await mkdir(folder, { recursive: true });
    await utimes(folder, new Date(0), new Date(0));
  }
}

it("counts what the same call deletes, including rows that only the runs referenced", async () => {
  const expected = {
    ...NOTHING,
    runs: 3,
    backfill_dates: 2,
    backfills: 1,
    signals: 4,
    asset_events: 2,
    jobs: 1,
    versions: 1,
    bundles: 1,
    shared_chunks: 1,
    files: 1,
    outputs: 1,
    logs: 1,
  };
  expect(await cleaned(true)).toEqual(expected);
  expect(await cleaned(false)).toEqual(expected);
  expect(await cleaned(true)).toEqual(NOTHING);
});

it("counts what the same call deletes when the runs are kept", async () => {
  const only = CLEANABLE.filter((name) => name !== "runs");
  const expected = { ...NOTHING, signals: 1 };
  expect(await cleaned(true, only)).toEqual(expected);
  expect(await cleaned(false, only)).toEqual(expected);
});

it("counts nothing for an empty selection", async () => {
  expect(await cleaned(true, [])).toEqual(NOTHING);
});
