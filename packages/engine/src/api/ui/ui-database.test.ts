/** The state of the database, with a transaction that another session keeps open. */
import { beforeAll, expect, test } from "vitest";
import { Installation } from "../../../test/api/installation.ts";
import { adhoc } from "../../store/database/database.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
});

test("shows the oldest open transaction, its size and its connections", async () => {
  const before = (await tw.call("GET", "/ui/database")).json();
  expect(before).toEqual({
    latency_ms: expect.any(Number),
    version: expect.stringMatching(/^\d+/),
    size_bytes: expect.any(Number),
    connections: expect.any(Number),
    max_connections: expect.any(Number),
    oldest_transaction: null,
  });
  expect(before.size_bytes).toBeGreaterThan(1_000_000);
  expect(before.connections).toBeGreaterThan(0);
  expect(before.connections).toBeLessThanOrEqual(before.max_connections);
  await tw.database.transaction(async (tx) => {
    const [own] = await tx.rows<{ pid: number }>(adhoc("SELECT pg_backend_pid() AS pid"));
    const { oldest_transaction: oldest } = (await tw.call("GET", "/ui/database")).json();
    expect(oldest).toMatchObject({ pid: own!.pid, state: "idle in transaction" });
    expect(oldest.age_seconds).toBeGreaterThan(0);
  });
});
