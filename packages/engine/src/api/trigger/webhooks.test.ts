/** Webhooks over a real socket: authentication, stored data and wake-ups. */
import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { beforeAll, describe, expect, test } from "vitest";
import { Installation } from "../../../test/api/installation.ts";
import { WakeUps } from "../../job/wake-up.ts";
import { passOn } from "../../process/api.ts";
import { SecretBox } from "../../secret/secret-box.ts";
import { createApi } from "../server/api.ts";

let tw: Installation;
let base: string;

beforeAll(async () => {
  tw = await Installation.open();
  base = await tw.app.listen({ host: "127.0.0.1", port: 0 });
});

async function signedUrl(name: string): Promise<string> {
  return `${base}${(await tw.call("GET", `/webhooks/${name}`)).json().path}`;
}

/** Without the admin token. */
function post(url: string, body?: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) {
  return fetch(url, { method: "POST", headers, ...(body === undefined ? {} : { body }) });
}

async function signals(name: string) {
  return tw.sql<{ id: number; value: { body: unknown; headers: object }; sender: string }>(
    "SELECT id, value, sender FROM signal WHERE namespace = 'webhook' AND key = $1 ORDER BY id",
    [name],
  );
}

const JSON_TYPE = { "content-type": "application/json" };

describe("authentication", () => {
  test("accepts the signed URL, which only token holders can read", async () => {
    const asked = await fetch(`${base}/api/v2/webhooks/orders`, {
      headers: { authorization: `Bearer ${tw.token}` },
    });
    const { name, path } = (await asked.json()) as Record<string, string>;
    const url = `${base}${path}`;
    expect(name).toBe("orders");
    const answer = await post(url, '{"id":1}', JSON_TYPE);
    expect(answer.status).toBe(202);
    const [signal] = await signals("orders");
    expect(await answer.json()).toEqual({
      name: "orders",
      position: signal!.id,
      received_at: expect.any(String),
    });
    expect(signal).toMatchObject({ value: { body: { id: 1 } }, sender: "webhook" });
    expect((await fetch(`${base}/api/v2/webhooks/orders`)).status).toBe(401);
    expect((await fetch(url)).status).toBe(401);
  });

  test("builds the URL from the configured public URL, never from the request's Host", async () => {
    const ask = async (app: FastifyInstance) => {
      const headers = { authorization: `Bearer ${tw.token}`, host: "evil.example" };
      return (await app.inject({ url: "/api/v2/webhooks/orders", headers })).json();
    };
    const { path, url } = await ask(tw.app);
    expect(url).toBeNull();
    const config = { ...tw.options.config, publicUrl: "https://flows.example.com/tw" };
    const app = await createApi({ ...tw.options, config });
    expect(await ask(app)).toMatchObject({ path, url: `https://flows.example.com/tw${path}` });
    await app.close();
  });

  test("accepts a token without a signature or with any", async () => {
    for (const query of ["", "?signature=wrong"]) {
      const answer = await tw.call("POST", `/webhooks/by-token${query}`, { query });
      expect([query, answer.statusCode]).toEqual([query, 202]);
    }
    expect((await signals("by-token")).map(({ sender }) => sender)).toEqual(["admin", "admin"]);
  });

  test("rejects a missing signature, and one of another name or key", async () => {
    const other = new URL(await signedUrl("another")).searchParams.get("signature");
    const foreign = new SecretBox([randomBytes(32)]).sign("closed", "webhook");
    const own = new URL(await signedUrl("closed")).searchParams.get("signature")!;
    const forged = [
      "",
      "?signature=",
      "?signature=x",
      `?signature=${other}`,
      `?signature=${foreign}`,
      `?signature=${own.slice(0, -1)}`,
      `?signature=${own}&signature=${own}`,
      `?signature=${"x".repeat(5000)}`,
    ];
    for (const query of forged) {
      const answer = await post(`${base}/api/v2/webhooks/closed${query}`, "{}", JSON_TYPE);
      expect([query, answer.status, (await answer.json()) as object]).toEqual([
        query,
        401,
        expect.objectContaining({ code: "UNAUTHENTICATED" }),
      ]);
    }
    expect(await signals("closed")).toEqual([]);
  });

  test("accepts the signature only for its webhook", async () => {
    const { search } = new URL(await signedUrl("orders"));
    expect((await post(`${base}/api/v2/pools${search}`, '{"name":"p","slots":1}', JSON_TYPE)).status).toBe(
      401,
    );
    expect((await fetch(`${base}/api/v2/dags${search}`)).status).toBe(401);
    // The internal row of webhook idempotency keys is not a valid token either.
    for (const token of ["", "\0".repeat(32), "webhook"]) {
      const answer = await tw.app.inject({
        url: "/api/v2/dags",
        headers: { authorization: `Bearer ${token}` },
      });
      expect(answer.statusCode).toBe(401);
    }
  });
});

describe("stored data", () => {
  test.each<[string, string | undefined, Record<string, string>, unknown]>([
    [
      "an object",
      '{"constructor":"Ferrari","n":[1,null]}',
      JSON_TYPE,
      { constructor: "Ferrari", n: [1, null] },
    ],
    ["a bare value", "42", JSON_TYPE, 42],
    ["vendors' JSON", '{"a":1}', { "content-type": "application/cloudevents+json; charset=utf-8" }, { a: 1 }],
    ["text", "hello, wörld", { "content-type": "text/plain" }, "hello, wörld"],
    ["a form", "a=1&b=2", { "content-type": "application/x-www-form-urlencoded" }, "a=1&b=2"],
    ["JSON without a JSON content type", '{"a":1}', { "content-type": "text/plain" }, '{"a":1}'],
    ["nothing", undefined, {}, null],
    ["nothing, as JSON", "", JSON_TYPE, null],
  ])("%s", async (what, body, headers, expected) => {
    const name = what.replaceAll(/\W/g, "-");
    const answer = await post(await signedUrl(name), body, headers);
    expect([answer.status, await answer.text()]).toEqual([202, expect.any(String)]);
    expect((await signals(name))[0]!.value.body).toEqual(expected);
  });

  test("keeps headers that describe the event, but no credentials", async () => {
    await post(await signedUrl("headers"), "{}", {
      ...JSON_TYPE,
      "x-github-event": "push",
      "ce-type": "order.paid",
      "x-hub-signature-256": "s3cret",
      "x-api-key": "s3cret",
      "x-gitlab-token": "s3cret",
      "x-auth-request-email": "s3cret",
      "x-forwarded-for": "s3cret",
      authorization: "Basic s3cret",
      cookie: "s3cret",
    });
    const [kept] = await signals("headers");
    expect(kept!.value.headers).toEqual({
      "content-type": "application/json",
      "user-agent": expect.any(String),
      "x-github-event": "push",
      "ce-type": "order.paid",
    });
  });

  test.each<[string, string | Uint8Array<ArrayBuffer>, number, Record<string, string>]>([
    ["invalid JSON", "{", 422, JSON_TYPE],
    ["__proto__", '{"__proto__":{}}', 422, JSON_TYPE],
    ["a thousand levels", "[".repeat(1000) + "]".repeat(1000), 422, JSON_TYPE],
    [
      "bytes that are not text",
      new Uint8Array([0xff, 0xfe]),
      422,
      { "content-type": "application/octet-stream" },
    ],
    ["NUL", "a\0b", 422, { "content-type": "text/plain" }],
    ["more than 1 MB", "x".repeat(1024 * 1024 + 1), 413, { "content-type": "text/plain" }],
  ])("rejects %s", async (_, body, status, headers) => {
    const answer = await post(await signedUrl("refused"), body, headers);
    expect([answer.status, await answer.text()]).toEqual([status, expect.any(String)]);
    expect(await signals("refused")).toEqual([]);
  });

  test("accepts a full megabyte", async () => {
    const body = "x".repeat(1024 * 1024);
    expect((await post(await signedUrl("large"), body, { "content-type": "text/plain" })).status).toBe(202);
  });

  test.each(["..", "a/b", "a b", "ä", "x".repeat(251), "a%00b"])("rejects the name %j", async (name) => {
    const path = `/webhooks/${name.includes("%") ? name : encodeURIComponent(name)}`;
    for (const method of ["GET", "POST"] as const) {
      const answer = await tw.call(method, path, method === "POST" ? {} : undefined);
      // A path of dots never reaches the route.
      expect([404, 422]).toContain(answer.statusCode);
      if (answer.statusCode === 422 && name.length <= 250)
        expect(answer.json().detail[0].msg).toContain("A-Z a-z 0-9");
    }
  });
});

describe("idempotency", () => {
  test("stores a webhook once per Idempotency-Key and name, with a signature or a token", async () => {
    const key = { ...JSON_TYPE, "idempotency-key": "delivery-1" };
    const url = await signedUrl("repeated");
    const [first, again] = [await post(url, "{}", key), await post(url, "{}", key)];
    expect([first.status, again.status, again.headers.get("idempotency-replayed")]).toEqual([
      202,
      202,
      "true",
    ]);
    expect(await again.json()).toEqual(await first.json());
    expect(await signals("repeated")).toHaveLength(1);
    const changed = await post(url, '{"other":1}', key);
    expect([changed.status, ((await changed.json()) as { code: string }).code]).toEqual([
      422,
      "IDEMPOTENCY_KEY_REUSED",
    ]);
    expect((await post(await signedUrl("repeated-2"), "{}", key)).headers.get("idempotency-replayed")).toBe(
      null,
    );
    expect(await signals("repeated-2")).toHaveLength(1);
    const byToken = () => tw.call("POST", "/webhooks/repeated", {}, { "idempotency-key": "delivery-1" });
    expect((await byToken()).headers["idempotency-replayed"]).toBeUndefined();
    expect((await byToken()).headers["idempotency-replayed"]).toBe("true");
    expect(await signals("repeated")).toHaveLength(2);
  });

  test("handles any number of concurrent first calls", async () => {
    await tw.sql("DELETE FROM api_token WHERE name = 'webhook'");
    const url = await signedUrl("crowd");
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(url, "{}", JSON_TYPE)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
    expect(await signals("crowd")).toHaveLength(20);
  });
});

test("wakes subscribers after the commit, and not for a repeated call", async () => {
  tw.changes.length = 0;
  const send = () => tw.call("POST", "/webhooks/wake", {}, { "idempotency-key": "wake" });
  await send();
  await send();
  expect(tw.changes).toEqual([{ kind: "signal_sent", key: "wake" }]);

  const others = new WakeUps(tw.database);
  const heard = Promise.withResolvers<string>();
  const listening = await others.listen((topic) => {
    if (topic !== "") heard.resolve(topic);
  });
  passOn(tw.changes[0]!, tw.wakeUps);
  expect(await heard.promise).toBe("fired");
  await listening.close();
  others.close();
});
