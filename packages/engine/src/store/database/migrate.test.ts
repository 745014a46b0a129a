import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, Database } from "./database.ts";
import { migrate, migrationStatus, readMigrations, requireSchema } from "./migrate.ts";

let folder: string;
let db: Database;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tw-migrate-"));
  await write("0001_first.sql", "CREATE TABLE one (id int); CREATE TABLE two (id int);");
  await write("0002_second.sql", "INSERT INTO one VALUES (1);");
  ({ db } = await testDatabase({ empty: true }));
});
afterEach(() => rm(folder, { recursive: true }));

describe("migrate", () => {
  it("applies the packaged schema", async () => {
    const { db: own } = await testDatabase();
    const status = await migrationStatus(own);
    expect(status.pending).toEqual([]);
    expect(status.applied.map((each) => each.name)).toEqual(
      (await readMigrations()).map((each) => each.name),
    );
    expect(await own.rows(adhoc("SELECT name FROM pool"))).toEqual([{ name: "default_pool" }]);
  });

  it("applies each file once, in order, and reports progress", async () => {
    const seen: number[] = [];
    expect((await migrationStatus(db, { folder })).pending).toHaveLength(2);
    await migrate(db, { folder, onProgress: (migration) => seen.push(migration.version) });
    expect(seen).toEqual([1, 2]);
    expect(await migrate(db, { folder })).toEqual([]);
    expect(await db.rows(adhoc("SELECT id FROM one"))).toEqual([{ id: 1 }]);
  });

  it("applies each migration once in concurrent processes", async () => {
    const done = await Promise.all(Array.from({ length: 6 }, () => migrate(db, { folder })));
    expect(
      done
        .flat()
        .map((each) => each.version)
        .sort(),
    ).toEqual([1, 2]);
    expect(await db.rows(adhoc("SELECT id FROM one"))).toEqual([{ id: 1 }]);
  });

  it("rolls back a failed migration, and continues after it is fixed", async () => {
    await write("0003_third.sql", "CREATE TABLE three (id int); SELECT 1/0;");
    await expect(migrate(db, { folder })).rejects.toMatchObject({ code: "22012" });
    expect((await migrationStatus(db, { folder })).applied).toHaveLength(2);
    await write("0003_third.sql", "CREATE TABLE three (id int);");
    expect((await migrate(db, { folder })).map((each) => each.version)).toEqual([3]);
  });

  it("rejects a migration that was edited after it was applied", async () => {
    await migrate(db, { folder });
    await write("0001_first.sql", "CREATE TABLE one (id bigint);");
    await expect(migrate(db, { folder })).rejects.toMatchObject({ code: "MIGRATION_CHANGED" });
    await expect(migrationStatus(db, { folder })).rejects.toThrow(/Migration 1 \(first\)/);
  });

  it("ignores line endings in the checksum", async () => {
    await write("0002_second.sql", "INSERT INTO one\nVALUES (1);\n");
    await migrate(db, { folder });
    await write("0002_second.sql", "INSERT INTO one\r\nVALUES (1);\r\n");
    expect(await migrate(db, { folder })).toEqual([]);
  });

  it("accepts a newer database as long as its migrations only add", async () => {
    await write("0003_contract_one.sql", "DROP TABLE one;");
    const before = await mkdtemp(join(tmpdir(), "tw-migrate-before-"));
    onTestFinished(() => rm(before, { recursive: true }));
    await cp(join(folder, "0001_first.sql"), join(before, "0001_first.sql"));
    await cp(join(folder, "0002_second.sql"), join(before, "0002_second.sql"));
    await migrate(db, { folder: before });
    await rm(join(before, "0002_second.sql"));
    expect(await migrate(db, { folder: before })).toEqual([]);
    await requireSchema(db, { folder: before });
    await migrate(db, { folder });
    await expect(migrate(db, { folder: before })).rejects.toMatchObject({ code: "DATABASE_NEWER" });
    await expect(requireSchema(db, { folder: before })).rejects.toMatchObject({ code: "DATABASE_NEWER" });
  });

  it("rejects a database that lacks a migration in requireSchema, without changes", async () => {
    const refused = { code: "DATABASE_NOT_MIGRATED" };
    await expect(requireSchema(db, { folder })).rejects.toMatchObject(refused);
    await migrate(db, { folder });
    await requireSchema(db, { folder });
    await write("0003_third.sql", "CREATE TABLE three (id int);");
    await expect(requireSchema(db, { folder })).rejects.toThrow(/lacks migration 3 \(third\)/);
    expect(await db.one(adhoc("SELECT to_regclass('three') AS three"))).toEqual({ three: null });
  });

  it("names the missing privilege and the remedy, and needs no privilege when nothing is pending", async () => {
    const { url } = await testDatabase({ empty: true });
    const role = `worker_${crypto.randomUUID().slice(0, 8)}`;
    const owner = Database.connect(url);
    const address = Object.assign(new URL(url), { username: role, password: "secret" });
    const worker = Database.connect(address.href);
    onTestFinished(async () => {
      await worker.close();
      await owner.rows(adhoc(`DROP OWNED BY ${role}`));
      await owner.rows(adhoc(`DROP ROLE ${role}`));
      await owner.close();
    });
    await owner.rows(adhoc(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`));
    await expect(migrate(worker, { folder })).rejects.toMatchObject({
      code: "DATABASE_RIGHTS",
      message: expect.stringMatching(
        /permission denied for schema public.*GRANT USAGE, CREATE ON SCHEMA public/,
      ),
    });
    await migrate(owner, { folder });
    await owner.rows(adhoc(`GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`));
    expect(await migrate(worker, { folder })).toEqual([]);
  });

  it("rejects a gap in the numbers", async () => {
    await write("0004_late.sql", "SELECT 1;");
    await expect(migrate(db, { folder })).rejects.toMatchObject({ code: "MIGRATION_FILES" });
  });
});

function write(file: string, sql: string): Promise<void> {
  return writeFile(join(folder, file), sql);
}
