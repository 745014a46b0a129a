import { beforeAll, expect, onTestFinished, test } from "vitest";
import { Installation } from "../../../test/api/installation.ts";
import { createApi } from "../server/api.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
});

const asked = async (token: string) =>
  (await tw.app.inject({ url: "/api/v2/dags", headers: { authorization: `Bearer ${token}` } })).statusCode;

test("are created, shown once, listed without their secrets, and revoked at once", async () => {
  const made = await tw.call("POST", "/tokens", { name: "ci" });
  expect(made.statusCode).toBe(201);
  const { id, token } = made.json();
  expect(made.json()).toMatchObject({ name: "ci", expires_at: null, last_used_at: null, is_current: false });
  expect(token).toMatch(/^tw_[\w-]{43}$/);
  expect(await asked(token)).toBe(200);

  const listed = await tw.call("GET", "/tokens?order_by=-id");
  expect(listed.json()).toMatchObject({
    tokens: [
      { id, name: "ci", last_used_at: expect.any(String), is_current: false },
      { name: "admin", is_current: true },
    ],
    total_entries: 2,
  });
  expect(listed.body).not.toContain(token);

  expect((await tw.call("DELETE", `/tokens/${id}`)).statusCode).toBe(204);
  expect(await asked(token)).toBe(401);
  expect((await tw.call("DELETE", `/tokens/${id}`)).statusCode).toBe(404);
  const deeds = (await tw.call("GET", "/eventLogs?order_by=-id&limit=2")).json();
  expect(deeds.event_logs.map((each: { event: string }) => each.event)).toEqual([
    "delete_token",
    "create_token",
  ]);
  expect(JSON.stringify(deeds)).not.toContain(token);
});

test("close their open streams within 5 s of being revoked", async () => {
  const app = await createApi(tw.options);
  onTestFinished(() => app.close());
  const url = await app.listen({ port: 0 });
  const { id, token } = (await tw.call("POST", "/tokens", { name: "stream" })).json();
  const open = async (bearer: string) => {
    const headers = { authorization: `Bearer ${bearer}`, accept: "text/event-stream" };
    const response = await fetch(`${url}/api/v2/signals/listen?key=x`, { headers });
    const reader = response.body!.getReader();
    await reader.read();
    return reader;
  };
  const [revoked, kept] = [await open(token), await open(tw.token)];
  await tw.call("DELETE", `/tokens/${id}`);
  const at = performance.now();
  while (!(await revoked.read()).done);
  expect(performance.now() - at).toBeLessThan(5_000);
  let isKeptOver = false;
  const next = kept.read().then(({ done }) => {
    isKeptOver = done;
  });
  await tw.call("POST", "/signals", { key: "x", value: 1 });
  await next;
  expect(isKeptOver).toBe(false);
  await kept.cancel();
});

test("cannot revoke themselves", async () => {
  const [own] = (await tw.call("GET", "/tokens")).json().tokens;
  const refused = await tw.call("DELETE", `/tokens/${own.id}`);
  expect([refused.statusCode, refused.json().code]).toEqual([409, "CONFLICT"]);
  expect(await asked(tw.token)).toBe(200);
});

test("do not include the internal row for callers without a token", async () => {
  const [row] = await tw.sql<{ id: number }>(
    "INSERT INTO api_token (name, sha256, expires_at) VALUES ('nobody', $1, 'epoch') RETURNING id",
    [Buffer.alloc(32)],
  );
  expect((await tw.call("GET", "/tokens")).body).not.toContain("nobody");
  expect((await tw.call("DELETE", `/tokens/${row!.id}`)).statusCode).toBe(404);
});

test("may have an expiry in the future, and are never stored for an Idempotency-Key", async () => {
  const soon = new Date(Date.now() + 3_600_000).toISOString();
  const headers = { "idempotency-key": "token-1" };
  const first = await tw.call("POST", "/tokens", { name: "short", expires_at: soon }, headers);
  expect(first.json().expires_at).toBe(soon);
  const second = await tw.call("POST", "/tokens", { name: "short", expires_at: soon }, headers);
  expect(second.json().token).not.toBe(first.json().token);
  expect(await tw.sql("SELECT 1 FROM idempotency_key")).toEqual([]);
  await tw.sql("UPDATE api_token SET expires_at = now() WHERE id = $1", [first.json().id]);
  expect(await asked(first.json().token)).toBe(401);
  const past = await tw.call("POST", "/tokens", { name: "late", expires_at: "2020-01-01" });
  expect([past.statusCode, past.json().detail[0].loc]).toEqual([422, ["body", "expires_at"]]);
});
