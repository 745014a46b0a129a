import { beforeEach, expect, it } from "vitest";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { markRun } from "../edit/end-run.ts";
import { CLEAN_KINDS, cleanHistory } from "./history.ts";

let db: Database;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  return () => test.close();
});

const DAY = 86_400_000;
const NOTHING = Object.fromEntries(CLEAN_KINDS.map((name) => [name, 0]));
const clean = (batch = 1_000, dryRun = false) => cleanHistory(db, { olderThanMs: 30 * DAY, dryRun, batch });

it("deletes old ended rows in batches, and then rows without references", async () => {
  await seedDag(db, "a");
  await seedRuns(db, "a", { count: 25, state: "success", ageMs: 40 * DAY });
  await seedDag(db, "a");
  await seedRuns(db, "a", { state: "failed", ageMs: 40 * DAY });
  const young = await seedRuns(db, "a", { state: "success", ageMs: 20 * DAY });
  const open = await seedRuns(db, "a", { state: "running", ownerJob: await seedJob(db), ageMs: 40 * DAY });
  const current = await seedDag(db, "a");
  await age("UPDATE dag_version SET created_at = now() - interval '35 days'");
  await age("UPDATE bundle SET created_at = now() - interval '35 days'");
  await db.rows(
    adhoc("INSERT INTO signal (namespace, key, sender, created_at) VALUES ('n', 'k', 's', '2020-01-01')"),
  );
  await db.rows(
    adhoc(`INSERT INTO signal_dead_letter
        (listener, signal_id, tx, namespace, key, sender, sent_at, error, attempts, created_at, retry_at)
      SELECT 'l', row_number() OVER (), '1', 'n', 'k', 's', now(), 'no', 5, now() - u.age, u.retry_at
      FROM (VALUES (interval '40 days', NULL), ('20 days', NULL), ('40 days', now())) AS u(age, retry_at)`),
  );

  const expected = { ...NOTHING, runs: 26, signals: 1, dead_letters: 1, versions: 1, bundles: 1 };
  expect(await clean(10, true)).toEqual(expected);
  expect(await clean(10)).toEqual(expected);
  expect(await ids("SELECT id FROM dag_run ORDER BY id")).toEqual([...young, ...open]);
  expect(await ids("SELECT signal_id AS id FROM signal_dead_letter ORDER BY 1")).toEqual([2, 3]);
  expect(await ids("SELECT id FROM dag_version ORDER BY id")).toEqual([expect.any(Number), current]);
  expect(await clean()).toEqual(NOTHING);
});

it("keeps an old version that was current until recently", async () => {
  const old = await seedDag(db, "a");
  await age("UPDATE dag_version SET created_at = now() - interval '90 days'");
  await age("UPDATE bundle SET created_at = now() - interval '90 days'");
  const current = await seedDag(db, "a");
  expect(await clean()).toMatchObject({ versions: 0, bundles: 0 });
  expect(await ids("SELECT id FROM dag_version ORDER BY id")).toEqual([old, current]);
});

it("deletes shared code with its last bundle", async () => {
  const long = "now() - interval '90 days'";
  await age(`INSERT INTO shared_chunk (hash, names, code, created_at) VALUES
    ('used', '{}', '', ${long}), ('unused', '{}', '', ${long}), ('young', '{}', '', now())`);
  await age(`INSERT INTO bundled_file (hash, content, created_at) VALUES
    ('used', '', ${long}), ('unused', '', ${long}), ('young', '', now())`);
  await age("INSERT INTO bundle (hash, shared_chunk_hash, code) VALUES ('b', 'used', '')");
  await age("INSERT INTO bundle_file (bundle_hash, file_hash) VALUES ('b', 'used')");
  expect(await clean()).toEqual({ ...NOTHING, shared_chunks: 1, files: 1 });
  await age(`UPDATE bundle SET created_at = ${long}`);
  expect(await clean()).toEqual({ ...NOTHING, bundles: 1, shared_chunks: 1, files: 1 });
  expect(await db.rows(adhoc("SELECT hash FROM shared_chunk"))).toEqual([{ hash: "young" }]);
  expect(await db.rows(adhoc("SELECT hash FROM bundled_file"))).toEqual([{ hash: "young" }]);
});

it("skips a locked run, and keeps it if it was cleared", async () => {
  await seedDag(db, "a");
  const [cleared] = await seedRuns(db, "a", { count: 3, state: "success", ageMs: 40 * DAY });
  if (cleared === undefined) throw new Error("no run");
  await db.transaction(async (tx) => {
    expect(await markRun(tx, cleared, "queued")).toMatchObject({ changed: true });
    expect(await clean()).toMatchObject({ runs: 2 });
  });
  expect(await clean()).toMatchObject({ runs: 0 });
  expect(await ids("SELECT id FROM dag_run WHERE state = 'queued'")).toEqual([cleared]);
});

async function age(sql: string): Promise<void> {
  await db.rows(adhoc(sql));
}

async function ids(sql: string): Promise<number[]> {
  return (await db.rows<{ id: number }>(adhoc(sql))).map((row) => row.id);
}
