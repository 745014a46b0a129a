import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { Database, type DatabaseOptions } from "../../src/store/database/database.ts";
import { afterFile } from "./after-file.ts";
import { givenServer, onServer, urlOf } from "./given-server.ts";
import type {} from "./global-setup.ts";

export interface TestDatabase {
  readonly db: Database;
  readonly url: string;
  close(): Promise<void>;
}

/** A new, migrated database, dropped after the test file. `empty`: without the schema. */
export async function testDatabase(
  options: DatabaseOptions & { readonly empty?: boolean } = {},
): Promise<TestDatabase> {
  const { adminUrl, template } = inject("testPostgres");
  const name = `tw_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  const from = options.empty ? "template0" : template;
  // Copies files instead of pages through the WAL: faster, but only with fsync off.
  const strategy = givenServer() === undefined ? "FILE_COPY" : "WAL_LOG";
  await onServer(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${from} STRATEGY ${strategy}`);
  const url = urlOf(adminUrl, name);
  const db = Database.connect(url, options);
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= db.close().then(async () => {
      await onServer(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    });
    return closing;
  };
  opened.push(close);
  return { db, url, close };
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});
