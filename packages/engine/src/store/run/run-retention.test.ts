/** Which rows retention keeps regardless of age, and how it deletes large runs. */
import { beforeEach, describe, expect, it } from "vitest";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { CLEAN_KINDS, type CleanCounts, cleanHistory } from "./history.ts";

let db: Database;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  return () => test.close();
});

const DAY = 86_400_000;
const clean = (more: object = {}) =>
  cleanHistory(db, { olderThanMs: 30 * DAY, dryRun: false, batch: 1_000, ...more });
const sql = <R = object>(text: string, values: unknown[] = []) => db.rows<R>(adhoc(text), values);
const count = async (table: string) =>
  Number((await sql<{ n: number }>(`SELECT count(*) AS n FROM ${table}`))[0]?.n);

/** Runs a day apart, the last one ended 40 days ago; returns their ids, oldest first. */
async function dated(dagId: string, amount: number): Promise<number[]> {
  const ids = await seedRuns(db, dagId, { count: amount, state: "success", ageMs: 40 * DAY });
  await sql(
    `UPDATE dag_run r SET logical_date = now() - interval '40 days' - ($2 - u.place) * interval '1 day'
     FROM unnest($1::bigint[]) WITH ORDINALITY AS u(id, place) WHERE r.id = u.id`,
    [ids, amount],
  );
  return ids;
}

describe("runs that are needed", () => {
  it("include the newest of a DAG by date, unless its file is deleted", async () => {
    await seedDag(db, "a");
    await dated("a", 3);
    await seedDag(db, "gone");
    await dated("gone", 3);
    await sql("UPDATE dag SET is_stale = true WHERE dag_id = 'gone'");
    expect(await clean()).toMatchObject({ runs: 5 });
    expect(await sql("SELECT dag_id FROM dag_run")).toEqual([{ dag_id: "a" }]);
  });

  it("include the previous run by date of an unfinished run", async () => {
    await seedDag(db, "a");
    const [first, asked, asking, last] = await dated("a", 4);
    await sql("UPDATE dag_run SET state = 'queued', ended_at = NULL WHERE id = $1", [asking]);
    expect(await clean()).toMatchObject({ runs: 1 });
    expect(await sql("SELECT id FROM dag_run ORDER BY id")).toEqual(
      [asked, asking, last].map((id) => ({ id })),
    );
    expect(first).toBeLessThan(asked ?? 0);
  });

  it("include runs of an open backfill, and runs with a pending callback", async () => {
    await seedDag(db, "a");
    const [own, kept, called] = await seedRuns(db, "a", { count: 3, state: "success", ageMs: 40 * DAY });
    const backfill = await openBackfill("a", "running");
    await sql("UPDATE dag_run SET backfill_id = $2 WHERE id = $1", [own, backfill]);
    await sql(
      `INSERT INTO backfill_date (backfill_id, ordinal, logical_date, action, dag_run_id)
       VALUES ($1, 0, now(), 'created', $2), ($1, 1, now(), 'kept', $3)`,
      [backfill, own, kept],
    );
    await sql("INSERT INTO callback (id, dag_run_id, event) VALUES (gen_random_uuid(), $1, 'success')", [
      called,
    ]);
    expect(await clean()).toMatchObject({ runs: 0, backfills: 0 });
    await sql("UPDATE backfill SET state = 'done', ended_at = now() - interval '35 days'");
    await sql("DELETE FROM callback");
    expect(await clean()).toMatchObject({ runs: 3, backfill_dates: 2, backfills: 1 });
  });
});

it("keeps the events of a run, and the newest event of each asset", async () => {
  await seedDag(db, "a");
  const [run] = await seedRuns(db, "a");
  for (let n = 0; n < 4; n++)
    await sql(
      `INSERT INTO signal (namespace, key, value, sender, created_at)
       VALUES ('asset', 's3://orders', '{}', 's', now() - interval '40 days')`,
    );
  const events = await sql<{ id: number }>("SELECT id FROM asset_event ORDER BY id");
  await sql("INSERT INTO asset_event_run (dag_run_id, event_id) VALUES ($1, $2)", [run, events[1]?.id]);
  expect(await clean()).toMatchObject({ signals: 4, asset_events: 2 });
  expect(await sql("SELECT id FROM asset_event ORDER BY id")).toEqual([events[1], events[3]]);
});

async function openBackfill(dagId: string, state: string, versionId: number | null = null): Promise<number> {
  const [row] = await sql<{ id: number }>(
    `INSERT INTO backfill (dag_id, schedule, from_date, to_date, reprocess, is_reverse, max_active, stop_on_failure,
                           state, total_runs, version_id)
     VALUES ($1, '{}', now(), now(), 'none', false, 1, false, $2, 1, $3) RETURNING id`,
    [dagId, state, versionId],
  );
  return row!.id;
}

it("empties a large run in batches, and deletes small ones together", async () => {
  await seedDag(db, "a");
  const [large, ...small] = await seedRuns(db, "a", { count: 21, state: "success", ageMs: 40 * DAY });
  await sql(
    `INSERT INTO task_instance (dag_run_id, task_id, map_index, state, pool, pool_slots, queue, priority_weight, operator)
     SELECT r, 't', i, 'success', 'default_pool', 1, 'default', 1, 'task'
     FROM (SELECT $1::bigint AS r, 330 AS n UNION ALL SELECT unnest($2::bigint[]), 3) AS w, generate_series(1, w.n) AS i`,
    [large, small],
  );
  await sql(`INSERT INTO xcom (dag_run_id, task_id, map_index, key, value)
             SELECT dag_run_id, task_id, map_index, 'return_value', '1' FROM task_instance`);
  const sizes: number[] = [];
  const left = async () => (await count("task_instance")) + (await count("xcom"));
  let before = await left();
  // Every batch is a separate transaction, visible to another connection.
  const watched = new Promise<CleanCounts>((resolve, reject) => {
    let looking = Promise.resolve();
    clean({
      batch: 50,
      onProgress: () => {
        looking = looking.then(async () => {
          const now = await left();
          sizes.push(before - now);
          before = now;
        });
      },
    }).then((counts) => looking.then(() => resolve(counts)), reject);
  });
  expect(await watched).toMatchObject({ runs: 21 });
  expect(sizes.length).toBeGreaterThan(13);
  expect([await count("dag_run"), await left()]).toEqual([0, 0]);
});

it("stops when aborted, and continues with the rest at the next call", async () => {
  await seedDag(db, "a");
  await seedRuns(db, "a", { count: 100, state: "success", ageMs: 40 * DAY });
  const stop = new AbortController();
  const some = await clean({ batch: 20, signal: stop.signal, onProgress: () => stop.abort() });
  expect(some.runs).toBeGreaterThan(0);
  expect(some.runs).toBeLessThan(100);
  expect(await clean({ batch: 20 })).toMatchObject({ runs: 100 - some.runs });
});

it("cleans the selected kinds only", async () => {
  await seedDag(db, "a");
  await seedRuns(db, "a", { state: "success", ageMs: 40 * DAY });
  await sql(
    "INSERT INTO audit_event (at, actor, action) VALUES (now() - interval '40 days', 'ada', 'clear')",
  );
  await sql("INSERT INTO audit_event (actor, action) VALUES ('ada', 'clear')");
  const none = Object.fromEntries(CLEAN_KINDS.map((name) => [name, 0]));
  expect(await clean({ only: ["audit_events"] })).toEqual({ ...none, audit_events: 1 });
  expect([await count("audit_event"), await count("dag_run")]).toEqual([1, 1]);
});

it("deletes a job that died unnoticed, but no job that may be alive or owns rows", async () => {
  const [lost, owner, young] = [await seedJob(db), await seedJob(db), await seedJob(db)];
  await sql("UPDATE job SET lease_until = now() - interval '40 days' WHERE id = ANY($1)", [[lost, owner]]);
  await seedDag(db, "a");
  await seedRuns(db, "a", { state: "running", ownerJob: owner });
  expect(await clean({ dryRun: true })).toMatchObject({ jobs: 1 });
  expect(await clean()).toMatchObject({ jobs: 1 });
  expect(await sql("SELECT id FROM job ORDER BY id")).toEqual([{ id: owner }, { id: young }]);
});

it("keeps the version that an open backfill is pinned to", async () => {
  const pinned = await seedDag(db, "a");
  await seedDag(db, "a");
  await seedDag(db, "a");
  await sql("UPDATE dag_version SET created_at = now() - interval '40 days'");
  await sql("UPDATE bundle SET created_at = now() - interval '40 days'");
  const backfill = await openBackfill("a", "paused", pinned);
  expect(await clean()).toMatchObject({ versions: 1, bundles: 1 });
  expect(await sql("SELECT version_id FROM backfill WHERE id = $1", [backfill])).toEqual([
    { version_id: pinned },
  ]);
});

describe("signals", () => {
  const send = (age: string) =>
    sql(
      `INSERT INTO signal (namespace, key, sender, created_at) VALUES ('n', 'k', 's', now() - interval '${age}')`,
    );

  it("are kept for a signal-driven run that was never loaded, from the time it was queued", async () => {
    await seedDag(db, "plain");
    await seedDag(db, "driven", {
      stop: { kind: "signal", namespace: "n", key: "k", where: null, equals: null, inRun: false },
    });
    for (const age of ["60 days", "45 days", "35 days", "1 day"]) await send(age);
    const [plain] = await seedRuns(db, "plain");
    const [driven] = await seedRuns(db, "driven");
    await sql("UPDATE dag_run SET queued_at = now() - interval '90 days' WHERE id = $1", [plain]);
    await sql("UPDATE dag_run SET queued_at = now() - interval '50 days' WHERE id = $1", [driven]);
    expect(await clean()).toMatchObject({ signals: 1 });
    await sql("UPDATE dag_run SET state = 'failed', ended_at = now() WHERE id = $1", [driven]);
    expect(await clean({ dryRun: true })).toMatchObject({ signals: 2 });
    expect(await clean()).toMatchObject({ signals: 2 });
    expect(await count("signal")).toBe(1);
  });

  it("are kept for a task that waits for signals, from the time its run was queued", async () => {
    await seedDag(db, "a");
    for (const age of ["60 days", "45 days", "1 day"]) await send(age);
    const [run] = await seedRuns(db, "a", { state: "running", ownerJob: await seedJob(db) });
    await sql("UPDATE dag_run SET queued_at = now() - interval '50 days' WHERE id = $1", [run]);
    const [trigger] = await sql<{ id: number }>(
      `INSERT INTO trigger (fingerprint, kind, args, queue, replicas, wake_at)
       VALUES ('x', 'tradewind.all', '{"members":{"a":{"kind":"tradewind.signal"}}}', 'default', 1, now()) RETURNING id`,
    );
    await sql(
      `INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, waits_on, kind, kwargs,
                             on_timeout, on_failure)
       VALUES (gen_random_uuid(), $1, 't', -1, 1, $2, $2, 'tradewind.all', '{}', 'fail', 'fail')`,
      [run, trigger?.id],
    );
    expect(await clean()).toMatchObject({ signals: 1 });
    await sql("UPDATE deferral SET waits_on = NULL");
    expect(await clean()).toMatchObject({ signals: 1 });
  });
});
