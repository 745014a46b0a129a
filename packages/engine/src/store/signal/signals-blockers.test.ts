/** Transactions that hold back the signal log. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import { privatePostgres } from "../../../test/support/private-postgres.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, Database } from "../database/database.ts";
import { sendSignals } from "./signals.ts";
import { blockerRemedy, describeBlocker, type SignalBlocker, signalBlockers } from "./signals-blockers.ts";

const SEND = "INSERT INTO signal (namespace, key, value, sender) VALUES ('default', 'a', '1', 'psql')";

async function openTransaction(url: string, ...statements: string[]) {
  const client = new pg.Client({ connectionString: url, application_name: "psql" });
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.end());
  for (const sql of ["BEGIN", ...statements]) await client.query(sql);
  const { rows } = await client.query("SELECT pg_backend_pid() AS pid, current_user AS user");
  return { client, pid: rows[0].pid as number, user: rows[0].user as string };
}

async function blockersOf(db: Database, count = 1): Promise<SignalBlocker[]> {
  for (;;) {
    const found = await signalBlockers(db);
    if (found.length >= count) return found;
    await sleep(20);
  }
}

it("reports a session that has sent signals and not committed for a second", async () => {
  const { db, url } = await testDatabase();
  const { db: other, url: otherUrl } = await testDatabase();
  const { client, pid, user } = await openTransaction(url, SEND);
  // Neither holds back signals: one is in another database, the other has written to another table.
  await openTransaction(otherUrl, SEND);
  await openTransaction(url, "SELECT pg_current_xact_id()");
  const [blocker, ...more] = await blockersOf(db);
  expect(more).toEqual([]);
  const database = new URL(url).pathname.slice(1);
  expect(blocker).toMatchObject({ pid, gid: null, database, user, application: "psql", isolation: null });
  expect(blocker).toMatchObject({
    state: "idle in transaction",
    query: expect.stringMatching(/^SELECT pg_b/),
  });
  expect(blocker!.age_seconds).toBeGreaterThanOrEqual(1);
  expect(describeBlocker(blocker!)).toMatch(
    new RegExp(
      `^session ${pid} \\(application psql, user ${user}, database ${database}, idle in transaction, last query SELECT .* …\\) has sent signals and not committed, for \\d+ s$`,
    ),
  );
  expect(blockerRemedy(blocker!)).toContain(`SELECT pg_terminate_backend(${pid})`);
  await client.query("COMMIT");
  expect(await signalBlockers(db)).toEqual([]);
  expect((await blockersOf(other)).map(({ database }) => database)).toEqual([
    new URL(otherUrl).pathname.slice(1),
  ]);
});

it("reports every open transaction if the default isolation makes readers stop at each", async () => {
  const { db, url } = await testDatabase();
  const name = new URL(url).pathname.slice(1);
  await db.rows(adhoc(`ALTER DATABASE ${name} SET default_transaction_isolation = 'repeatable read'`));
  const strict = Database.connect(url);
  onTestFinished(() => strict.close());
  const { url: otherUrl } = await testDatabase();
  const { pid } = await openTransaction(otherUrl, "SELECT pg_current_xact_id()");
  for (;;) {
    const blocker = (await blockersOf(strict)).find((each) => each.pid === pid);
    if (blocker === undefined) continue;
    expect(blocker.isolation).toBe("repeatable read");
    expect(describeBlocker(blocker)).toMatch(
      /is open, for \d+ s, and default_transaction_isolation is repeatable read$/,
    );
    expect(blockerRemedy(blocker)).toMatch(/^set default_transaction_isolation of Tradewind's database/);
    break;
  }
});

it("reports a session of another role without its age if our role may not see it", async () => {
  const { db, url } = await testDatabase();
  const role = `tw_reader_${process.pid}`;
  await db.rows(adhoc(`CREATE ROLE ${role} LOGIN PASSWORD 'x'`));
  await db.rows(adhoc(`GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`));
  await db.rows(adhoc(`GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO ${role}`));
  const limited = new URL(url);
  limited.username = role;
  limited.password = "x";
  const reader = Database.connect(limited.href);
  onTestFinished(async () => {
    await reader.close();
    await db.rows(adhoc(`DROP OWNED BY ${role}`));
    await db.rows(adhoc(`DROP ROLE ${role}`));
  });
  const { pid, user } = await openTransaction(url, SEND);
  // Its age is unknown, and no signal has waited for it: it may have just begun.
  await blockersOf(db);
  expect(await signalBlockers(reader)).toEqual([]);
  await sendSignals(db, [{ namespace: "default", key: "b", value: 2, sender: "test" }]);
  const [blocker] = await blockersOf(reader);
  expect(blocker).toMatchObject({
    pid,
    user,
    application: "psql",
    state: null,
    age_seconds: null,
    query: null,
  });
  expect(describeBlocker(blocker!)).toMatch(/\) has sent signals and not committed$/);
  expect(blockerRemedy(blocker!)).toMatch(/^GRANT pg_monitor .*pg_terminate_backend/);
});

it("reports a prepared transaction, which has no session", async () => {
  const { url } = await privatePostgres({ settings: { max_prepared_transactions: 2 } });
  const db = Database.connect(url);
  onTestFinished(() => db.close());
  const { client } = await openTransaction(url, "SAVEPOINT one", SEND);
  await client.query("PREPARE TRANSACTION 'bob''s'");
  const [blocker, ...more] = await blockersOf(db);
  expect(more).toEqual([]);
  expect(blocker).toMatchObject({ pid: null, gid: "bob's", state: "prepared", database: "tradewind" });
  expect(describeBlocker(blocker!)).toMatch(/^prepared transaction 'bob''s' \(user /);
  expect(blockerRemedy(blocker!)).toBe(
    "in database tradewind: COMMIT PREPARED 'bob''s' or ROLLBACK PREPARED 'bob''s'",
  );
  await db.rows(adhoc("ROLLBACK PREPARED 'bob''s'"));
  expect(await signalBlockers(db)).toEqual([]);
});
