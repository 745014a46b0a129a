/** `PATCH` on `/connections`, `/pools` and `/variables`: many objects, all or nothing. */
import { beforeAll, describe, expect, test } from "vitest";
import { Installation } from "../../../test/api/installation.ts";
import { openConnection } from "../../store/settings/connections.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
});

function put(path: string, entities: readonly object[], query = "") {
  const action = { action: "create", action_on_existence: "overwrite", entities };
  return tw.call("PATCH", `${path}${query}`, { actions: [action] });
}

async function names(path: string, key: string): Promise<string[]> {
  const list = (await tw.call("GET", path)).json()[path.slice(1)] as Record<string, string>[];
  return list.map((each) => each[key] as string);
}

describe("bulk requests", () => {
  test("creates and changes objects, and reports the changed fields", async () => {
    const first = await put("/variables", [
      { key: "b", value: { n: 1 } },
      { key: "a", value: "1", description: "one" },
    ]);
    expect(first.statusCode).toBe(200);
    expect(first.json()).toEqual({
      create: { success: ["a", "b"], errors: [] },
      update: null,
      delete: null,
      changes: [
        { key: "a", change: "created", fields: ["value", "description"] },
        { key: "b", change: "created", fields: ["value"] },
      ],
    });
    const second = await put("/variables", [
      { key: "a", value: "1" },
      { key: "b", value: { n: 2 }, description: "two" },
      { key: "c", value: "3" },
    ]);
    expect(second.json().changes).toEqual([
      { key: "a", change: "unchanged", fields: [] },
      { key: "b", change: "changed", fields: ["value", "description"] },
      { key: "c", change: "created", fields: ["value"] },
    ]);
    expect((await tw.call("GET", "/variables/a")).json()).toMatchObject({ value: "1", description: "one" });
    expect((await tw.call("GET", "/variables/b")).json()).toMatchObject({ value: '{"n":2}' });
    const [event] = (await tw.call("GET", "/eventLogs?order_by=-id&limit=1")).json().event_logs;
    expect(event).toMatchObject({ event: "bulk_variables" });
    expect(JSON.parse(event.extra)).toEqual({ changed: ["b"], created: ["c"] });
  });

  test("changes nothing if an entry is invalid, and names every invalid entry", async () => {
    const answer = await put("/connections", [
      { connection_id: "good", conn_type: "http" },
      { connection_id: "no spaces", conn_type: "http" },
      { connection_id: "far", conn_type: "http", port: 99_999 },
    ]);
    expect(answer.statusCode).toBe(422);
    expect(answer.json().detail).toMatchObject([
      { loc: ["body", "actions", 0, "entities", 1, "connection_id"] },
      { loc: ["body", "actions", 0, "entities", 2, "port"] },
    ]);
    const actions = [
      { action: "create", entities: [{ name: "p1", slots: 1 }] },
      { action: "create", entities: [{ name: "default_pool", slots: 1 }] },
      { action: "delete", entities: ["none", { name: "none2" }] },
      { action: "update", entities: [{ name: "none3", slots: 4 }] },
    ];
    const refused = await tw.call("PATCH", "/pools", { actions });
    expect(refused.statusCode).toBe(422);
    expect(refused.json().detail).toMatchObject([
      { loc: ["body", "actions", 1, "entities", 0], msg: '"default_pool" already exists' },
      { loc: ["body", "actions", 2, "entities", 0], msg: '"none" does not exist' },
      { loc: ["body", "actions", 2, "entities", 1], msg: '"none2" does not exist' },
      { loc: ["body", "actions", 3, "entities", 0], msg: '"none3" does not exist' },
    ]);
    const twice = await put("/pools", [
      { name: "p2", slots: 1 },
      { name: "p2", slots: 2 },
    ]);
    expect(twice.json().detail).toMatchObject([{ msg: '"p2" occurs twice' }]);
    expect(await names("/connections", "connection_id")).toEqual([]);
    expect(await names("/pools", "name")).toEqual(["default_pool"]);
  });

  test("reports the changes of a dry run without applying them", async () => {
    const before = (await tw.call("GET", "/eventLogs")).json().total_entries;
    const entities = [
      { name: "default_pool", slots: 7 },
      { name: "gpu", slots: 2 },
    ];
    const dry = await put("/pools", entities, "?dry_run=true");
    expect(dry.json().changes).toEqual([
      { key: "default_pool", change: "changed", fields: ["slots"] },
      { key: "gpu", change: "created", fields: ["slots"] },
    ]);
    expect(await names("/pools", "name")).toEqual(["default_pool"]);
    expect((await tw.call("GET", "/eventLogs")).json().total_entries).toBe(before);
  });

  test("updates, deletes and skips objects", async () => {
    await put("/pools", [
      { name: "gpu", slots: 2, include_deferred: true },
      { name: "old", slots: 1 },
    ]);
    const answer = await tw.call("PATCH", "/pools", {
      actions: [
        {
          action: "update",
          entities: [{ name: "gpu", slots: 3, description: "not this" }],
          update_mask: ["slots"],
        },
        { action: "delete", entities: ["absent", "old"], action_on_non_existence: "skip" },
        {
          action: "create",
          entities: [{ name: "default_pool", slots: 1 }],
          action_on_existence: "skip",
        },
      ],
    });
    expect(answer.json().changes).toEqual([
      { key: "absent", change: "skipped", fields: [] },
      { key: "default_pool", change: "skipped", fields: [] },
      { key: "gpu", change: "changed", fields: ["slots"] },
      { key: "old", change: "deleted", fields: [] },
    ]);
    expect((await tw.call("GET", "/pools/gpu")).json()).toMatchObject({
      slots: 3,
      description: null,
      include_deferred: true,
    });
    const protectedPool = await tw.call("PATCH", "/pools", {
      actions: [{ action: "delete", entities: ["default_pool"] }],
    });
    expect(protectedPool.json().detail).toMatchObject([
      { msg: expect.stringContaining("cannot be deleted") },
    ]);
  });

  test("keeps omitted secrets and compares given ones", async () => {
    const secret = { password: "s3cret", extra: '{"a":1}' };
    const open = { connection_id: "db", conn_type: "postgres", host: "db.example", port: 5432 };
    await put("/connections", [{ ...open, ...secret }]);
    const again = await put("/connections", [{ ...open, ...secret }]);
    expect(again.json().changes).toEqual([{ key: "db", change: "unchanged", fields: [] }]);
    const moved = await put("/connections", [{ ...open, host: "db2.example", password: null, extra: null }]);
    expect(moved.json().changes).toEqual([{ key: "db", change: "changed", fields: ["host"] }]);
    const other = await put("/connections", [{ ...open, host: "db2.example", password: "other" }]);
    expect(other.json().changes).toEqual([{ key: "db", change: "changed", fields: ["password"] }]);
    expect(other.body).not.toContain("other");
    expect(await openConnection(tw.database, tw.options.secretBox, "db")).toMatchObject({
      host: "db2.example",
      password: "other",
      extra: { a: 1 },
    });
  });
});
