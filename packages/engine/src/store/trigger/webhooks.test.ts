import { beforeEach, expect, it } from "vitest";
import { waitingForLock } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import type { Connection, Database } from "../database/database.ts";
import { listSignals } from "../signal/signals-list.ts";
import { recordWebhook } from "./webhooks.ts";

let db: Database;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  return () => test.close();
});

function record(tx: Connection, name: string, body: number) {
  return recordWebhook(tx, { name, sender: "s", value: { body, headers: {} } });
}

it("serializes the calls of one webhook: versions are in commit order", async () => {
  const held = Promise.withResolvers<void>();
  const stored = Promise.withResolvers<number>();
  const first = db.transaction(async (tx) => {
    stored.resolve((await record(tx, "orders", 1)).id);
    await held.promise;
  });
  const id = await stored.promise;
  // Another webhook is not blocked.
  await db.transaction((tx) => record(tx, "payments", 0));
  let isSecond = false;
  const second = db
    .transaction((tx) => record(tx, "orders", 2))
    .then((row) => {
      isSecond = true;
      return row;
    });
  await waitingForLock(db);
  expect(isSecond).toBe(false);
  held.resolve();
  await first;
  expect((await second).id).toBeGreaterThan(id);
  const rows = await listSignals(db, { namespace: "webhook", keys: ["orders"], limit: 10 });
  expect(rows.map(({ value }) => (value as { body: number }).body)).toEqual([1, 2]);
});
