import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";
import { Database, type DatabaseOptions } from "../../src/store/database.ts";
import { afterFile } from "./after-file.ts";
import type {} from "./global-setup.ts";

export interface TestDatabase {
  readonly db: Database;
  readonly url: string;
  close(): Promise<void>;
}

/** A fresh, migrated database, dropped after the test file. `empty`: without the schema. */
export async function testDatabase(
  options: DatabaseOptions & { readonly empty?: boolean } = {},
): Promise<TestDatabase> {
  const { adminUrl, template } = inject("testPostgres");
  const name = `tw_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  const from = options.empty ? "template0" : template;
  // Files are copied by the system, and not page by page by way of the log.
  await onServer(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${from} STRATEGY FILE_COPY`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  const db = Database.connect(url.href, options);
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= db.close().then(() => onServer(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    return closing;
  };
  opened.push(close);
  return { db, url: url.href, close };
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});

async function onServer(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
