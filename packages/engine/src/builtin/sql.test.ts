import type { SqlArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import type { ConnectionFacts } from "@tradewind/sdk/program";
import { beforeAll, describe, expect, it } from "vitest";
import { type PgProxy, pgProxy } from "../../test/support/pg-proxy.ts";
import { postgresFacts } from "../../test/support/postgres-facts.ts";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { callOf, expectPromptStop, startTrigger, TestHost } from "../../test/support/trigger-host.ts";
import { adhoc } from "../store/database/database.ts";
import { openConnection } from "./connection.ts";
import { checkBuiltin } from "./index.ts";
import { holdPool } from "./sql-pool.ts";

const KIND = "tradewind.sql";
/** Other tests share the machine. */
const PATIENT = { timeout: 20_000, interval: 20 };
let database: TestDatabase;
let proxy: PgProxy;
/** The fields of a stored connection. */
let facts: Partial<ConnectionFacts>;

beforeAll(async () => {
  database = await testDatabase({ empty: true });
  proxy = await pgProxy(database.url);
  facts = postgresFacts(proxy.url);
  await database.db.rows(adhoc("CREATE TABLE sale (day text, rows int)"));
  return () => proxy.close();
});

const args = (query: string, parameters: Json[] = [], settings: Partial<SqlArgs> = {}): Json => ({
  connection: "warehouse",
  query,
  parameters,
  intervalMs: 20,
  ...settings,
});

const look = (query: string, parameters: Json[] = []) =>
  checkBuiltin(callOf(KIND, args(query, parameters)), new TestHost({ warehouse: facts }));

/** Number of sessions of triggers at the server. */
async function sessions(): Promise<number> {
  const row = await database.db.one<{ count: number }>(
    adhoc(
      "SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'tradewind trigger'",
    ),
  );
  return row?.count ?? 0;
}

describe("a row", () => {
  it("fires when it appears, not before", async () => {
    const host = new TestHost({ warehouse: facts });
    const query = "SELECT count(*) AS loads, max(rows) AS most FROM sale WHERE day = $1";
    const pending = (await startTrigger(KIND, args(query, ["monday"]), host)).begin();
    await host.morePolls(3);
    expect(pending.hasFired).toBe(false);
    await database.db.rows(adhoc("INSERT INTO sale VALUES ('monday', 7)"));
    expect(await pending.outcome).toMatchObject({ kind: "event", payload: { row: { loads: 1, most: 7 } } });
  });

  it("counts if its first column is truthy", async () => {
    for (const value of ["NULL", "false", "0", "0::numeric", "0.00", "''", "'0'", "0::float8"]) {
      expect(await look(`SELECT ${value} AS v`), value).toBeUndefined();
    }
    expect(await look("SELECT 1 WHERE false")).toBeUndefined();
    for (const value of ["true", "1", "0.01", "'x'", "'00'", "'{}'::jsonb", "now()"]) {
      expect(await look(`SELECT ${value} AS v`), value).toBeDefined();
    }
  });

  it("is JSON, with other types as text", async () => {
    const query = `SELECT 1::int2 AS small, 9007199254740993 AS big, 1.50::numeric AS exact, 'NaN'::float8 AS nan, 0.5::float8 AS half,
      true AS yes, NULL AS none, '{"a":[1]}'::jsonb AS doc, DATE '2026-01-31' AS day, '\\x00ff'::bytea AS raw`;
    expect(await look(query)).toEqual({
      row: {
        small: 1,
        big: "9007199254740993",
        exact: "1.50",
        nan: "NaN",
        half: 0.5,
        yes: true,
        none: null,
        doc: { a: [1] },
        day: "2026-01-31",
        raw: "\\x00ff",
      },
    });
    expect(await look("SELECT $1::jsonb AS doc, $2::text AS text", [{ a: [1] }, "x"])).toEqual({
      row: { doc: { a: [1] }, text: "x" },
    });
  });

  it("is the only row that is fetched", async () => {
    expect(await look("SELECT generate_series(1, 100000000) AS n")).toEqual({ row: { n: 1 } });
  });

  it("is polled in few sessions, shared by all triggers of a connection and closed with the last", async () => {
    const hosts = Array.from({ length: 12 }, () => new TestHost({ warehouse: facts }));
    const triggers = [];
    for (const host of hosts) {
      const trigger = await startTrigger(KIND, args("SELECT false"), host);
      triggers.push({ trigger, ...trigger.begin() });
      await host.morePolls(1);
    }
    await Promise.all(hosts.map((host) => host.morePolls(2)));
    expect(await sessions()).toBeGreaterThan(0);
    expect(await sessions()).toBeLessThanOrEqual(4);
    await Promise.all(triggers.map(({ trigger }) => trigger.stop()));
    await expect.poll(sessions, PATIENT).toBe(0);
  });

  it("survives an outage of its server", async () => {
    const host = new TestHost({ warehouse: facts });
    const pending = (
      await startTrigger(KIND, args("SELECT 1 FROM sale WHERE day = 'tuesday'"), host)
    ).begin();
    await host.morePolls(2);
    proxy.set({ kind: "cut" });
    await host.logged(/; attempt 2 of 10/);
    await database.db.rows(adhoc("INSERT INTO sale VALUES ('tuesday', 1)"));
    expect(pending.hasFired).toBe(false);
    proxy.set({ kind: "pass" });
    expect(await pending.outcome).toMatchObject({ kind: "event" });
    await host.logged(/poll succeeded again/);
  });

  it("survives the end of a session between two statements of a poll", async () => {
    const connection = await openConnection(new TestHost({ warehouse: facts }), "warehouse", () => {});
    const pool = holdPool(connection);
    const client = await pool.client.connect();
    const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    const end = new Promise((resolve) => client.once("end", resolve));
    await database.db.rows(adhoc("SELECT pg_terminate_backend($1)"), [rows[0]?.pid]);
    await end;
    client.release(true);
    expect((await pool.client.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
    pool.release();
  });

  it("fails at once with the reason if retrying would not help, without secrets", async () => {
    const cases: [Json, Partial<ConnectionFacts>, string, RegExp][] = [
      [args("SELEKT 1"), {}, "TRIGGER_REFUSED", /syntax error/],
      [args("SELECT 1 FROM missing"), {}, "TRIGGER_REFUSED", /"missing" does not exist/],
      [args("SELECT $1::int", ["x"]), {}, "TRIGGER_REFUSED", /invalid input syntax/],
      [args("SELECT 1; SELECT 2"), {}, "TRIGGER_REFUSED", /multiple commands/],
      [args("SELECT 1", [], { connection: "none" }), {}, "TRIGGER_CONNECTION_MISSING", /none/],
      [args("SELECT 1"), { type: "mysql" }, "TRIGGER_CONNECTION_INVALID", /mysql/],
      [args("SELECT 1"), { host: null }, "TRIGGER_CONNECTION_INVALID", /no host/],
      [args("SELECT 1"), { extra: { sslmode: "perhaps" } }, "TRIGGER_CONNECTION_INVALID", /sslmode/],
      [args("SELECT 1"), { schema: "no_such_database" }, "TRIGGER_REFUSED", /no_such_database/],
      [args("SELECT 1"), { password: "wrong-horse" }, "TRIGGER_REFUSED", /password authentication/],
    ];
    for (const [given, change, code, message] of cases) {
      const host = new TestHost({ warehouse: { ...facts, ...change } });
      const error = await (await startTrigger(KIND, given, host)).next().catch((thrown: Error) => thrown);
      expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
      expect(`${(error as Error).stack}${host.text}`).not.toContain("wrong-horse");
      expect(`${(error as Error).stack}${host.text}`).not.toContain(facts.password as string);
      expect(host.polls).toBeLessThanOrEqual(1);
    }
  });

  it("cannot be polled with a statement that writes", async () => {
    await database.db.rows(
      adhoc(
        `CREATE FUNCTION sneak() RETURNS int LANGUAGE sql AS $$ INSERT INTO sale VALUES ('x', 1) RETURNING 1 $$`,
      ),
    );
    for (const query of ["SELECT sneak()", "INSERT INTO sale VALUES ('y', 1)"]) {
      await expect(look(query)).rejects.toMatchObject({ code: "TRIGGER_REFUSED" });
    }
    expect(await look("SELECT 1 FROM sale WHERE day IN ('x', 'y')")).toBeUndefined();
  });

  it("stops at the abort within 100 ms, and ends the session of its query", { retry: 2 }, async () => {
    const trigger = await startTrigger(
      KIND,
      args("SELECT pg_sleep(600)"),
      new TestHost({ warehouse: facts }),
    );
    const { outcome } = trigger.begin();
    await expect.poll(sessions, PATIENT).toBe(1);
    await expectPromptStop(trigger, outcome);
  });
});
