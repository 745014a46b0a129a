/** Sessions of browsers: sign-in by token and by link, the cookie, requests of other sites, and their end. */
import type { LightMyRequestResponse } from "fastify";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { routesOf } from "../../../test/api/routes.ts";
import { CLEANABLE, clean } from "../../process/clean.ts";
import { resolveConfig } from "../../service/config.ts";
import { createApi } from "../server/api.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("sales", [{ taskId: "extract" }]));
});

const signIn = (payload: object, headers: Record<string, string> = {}) =>
  tw.app.inject({ method: "POST", url: "/ui/session", payload, headers });

/** The cookie as a browser sends it back. */
function cookieOf(response: LightMyRequestResponse): string {
  return String(response.headers["set-cookie"]).split(";")[0]!;
}

const asked = async (cookie: string, url = "/api/v2/dags") =>
  (await tw.app.inject({ url, headers: { cookie } })).statusCode;

const send = (method: "DELETE" | "POST", url: string, headers: Record<string, string>) =>
  tw.app.inject({ method, url, headers: { "x-tradewind-csrf": "1", ...headers } });

const newToken = async (body: object) =>
  (await tw.call("POST", "/tokens", body)).json() as { id: number; token: string };

const linkCode = async () =>
  new URL((await tw.call("POST", "/ui/sign-in-links")).json().url).hash.replace("#code=", "");

describe("a sign-in", () => {
  test("with a token gives a cookie that scripts and other sites cannot use, and that every route accepts", async () => {
    const response = await signIn({ token: tw.token });
    expect([response.statusCode, response.body]).toEqual([204, ""]);
    expect(response.headers["set-cookie"]).toMatch(
      /^tradewind_session=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Strict$/,
    );
    const cookie = cookieOf(response);
    expect(await asked(cookie)).toBe(200);
    expect(await asked(`other=1; ${cookie}; last=2`)).toBe(200);
    const got = await tw.app.inject({ url: "/ui/session", headers: { cookie } });
    expect(got.json()).toEqual({
      user: "admin",
      role: "admin",
      signed_in_at: expect.any(String),
      expires_at: expect.any(String),
      version: "0.1.0-test",
      installation: expect.stringMatching(/^\w{16}$/),
    });
    const days = (Date.parse(got.json().expires_at) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(6.9);
    expect(days).toBeLessThan(7.1);
    expect((await tw.call("GET", "/ui/session")).json()).toMatchObject({ user: "admin", signed_in_at: null });
  });

  test("stores only hashes", async () => {
    const code = await linkCode();
    const cookie = cookieOf(await signIn({ token: tw.token }));
    const rows = await tw.sql<{ hash: string }>(
      "SELECT encode(sha256, 'escape') AS hash FROM web_session UNION ALL SELECT encode(sha256, 'escape') FROM sign_in_code",
    );
    const stored = JSON.stringify(rows);
    expect(stored).not.toContain(code);
    expect(stored).not.toContain(cookie.split("=")[1]!);
  });

  test("with a link works once, also for two browsers at the same moment", async () => {
    const code = await linkCode();
    const both = await Promise.all([signIn({ code }), signIn({ code })]);
    expect(both.map(({ statusCode }) => statusCode).sort()).toEqual([204, 401]);
    const refused = both.find(({ statusCode }) => statusCode === 401)!;
    expect(refused.json()).toMatchObject({
      code: "SIGN_IN_CODE_INVALID",
      detail: expect.stringContaining("tradewind open"),
    });
    expect(refused.headers["set-cookie"]).toBeUndefined();
    expect(await asked(cookieOf(both.find(({ statusCode }) => statusCode === 204)!))).toBe(200);
  });

  test("with a link fails after ten minutes, and when its token was deleted", async () => {
    const { expires_at } = (await tw.call("POST", "/ui/sign-in-links")).json();
    expect((Date.parse(expires_at) - Date.now()) / 60_000).toBeCloseTo(10, 0);
    const late = await linkCode();
    await tw.sql("UPDATE sign_in_code SET expires_at = now()");
    expect((await signIn({ code: late })).statusCode).toBe(401);
    const { id, token } = await newToken({ name: "gone" });
    const headers = { authorization: `Bearer ${token}` };
    const link = await tw.app.inject({ method: "POST", url: "/ui/sign-in-links", headers });
    await tw.call("DELETE", `/tokens/${id}`);
    expect((await signIn({ code: new URL(link.json().url).hash.slice(6) })).statusCode).toBe(401);
  });

  test("is rejected without a valid token, and for the token of a worker", async () => {
    expect((await signIn({ token: `${tw.token}x` })).json()).toMatchObject({
      status: 401,
      code: "UNAUTHENTICATED",
    });
    const { token } = await newToken({ name: "machine", role: "worker" });
    const worker = await signIn({ token });
    expect([worker.statusCode, worker.json().code]).toEqual([403, "FORBIDDEN"]);
    expect(worker.headers["set-cookie"]).toBeUndefined();
    const headers = { authorization: `Bearer ${token}` };
    for (const [method, url] of [
      ["POST", "/ui/sign-in-links"],
      ["GET", "/ui/session"],
    ] as const)
      expect((await tw.app.inject({ method, url, headers })).statusCode).toBe(403);
    for (const body of [
      {},
      { token: "" },
      { token: 1 },
      { code: "x", token: "y" },
      { code: "x".repeat(600) },
    ])
      expect((await signIn(body)).statusCode).toBe(422);
    const form = await tw.app.inject({
      method: "POST",
      url: "/ui/session",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      payload: `token=${tw.token}`,
    });
    expect(form.statusCode).toBe(415);
  });

  test("and a sign-out are in the audit log, without secrets", async () => {
    const code = await linkCode();
    const cookie = cookieOf(await signIn({ code }));
    expect((await send("DELETE", "/ui/session", { cookie })).statusCode).toBe(204);
    const events = await tw.call("GET", "/eventLogs?order_by=-id&limit=3");
    expect(
      events.json().event_logs.map(({ event, owner }: Record<string, string>) => [event, owner]),
    ).toEqual([
      ["sign_out", "admin"],
      ["sign_in", "admin"],
      ["create_sign_in_link", "admin"],
    ]);
    expect(events.body).not.toContain(code);
    expect(events.body).not.toContain(cookie.split("=")[1]!);
  });
});

describe("requests of other sites", () => {
  const FOREIGN = [
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: "http://localhost:81" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site", origin: "http://localhost:80" },
    { "sec-fetch-site": "none" },
  ];

  test("are rejected on every route that changes something, unless they have a bearer token", async () => {
    const cookie = cookieOf(await signIn({ token: tw.token }));
    const unsafe = routesOf(tw.app).filter(({ method, url }) => method !== "GET" && url !== "/ui/session");
    expect(unsafe.length).toBeGreaterThan(50);
    const accepted: string[] = [];
    const rejected: string[] = [];
    for (const { method, url } of unsafe) {
      const ask = async (headers: Record<string, string>) => {
        const response = await tw.app.inject({ method, url, headers });
        const isRefused = response.statusCode === 403 && response.json().code === "CROSS_SITE_REQUEST";
        return isRefused ? "refused" : response.statusCode === 401 ? "unauthenticated" : "accepted";
      };
      const name = `${method} ${url}`;
      if ((await ask({ cookie })) !== "refused") accepted.push(name);
      for (const foreign of FOREIGN)
        if (
          (await ask({ cookie, "x-tradewind-csrf": "1", ...foreign } as Record<string, string>)) !== "refused"
        )
          accepted.push(`${name} ${JSON.stringify(foreign)}`);
      const own: Record<string, string>[] = [
        { cookie, "x-tradewind-csrf": "1" },
        { cookie, "x-tradewind-csrf": "1", "sec-fetch-site": "same-origin" },
        { cookie, "x-tradewind-csrf": "1", origin: "http://localhost:80", host: "localhost:80" },
        { authorization: `Bearer ${tw.token}`, origin: "https://evil.example" },
        { authorization: `Bearer ${tw.token}`, cookie },
      ];
      for (const headers of own) if ((await ask(headers)) !== "accepted") rejected.push(name);
    }
    expect(accepted).toEqual([]);
    expect(rejected).toEqual([]);
  });

  test("cannot sign a browser in or out", async () => {
    const cookie = cookieOf(await signIn({ token: tw.token }));
    for (const foreign of FOREIGN as Record<string, string>[]) {
      expect((await signIn({ token: tw.token }, foreign)).json().code).toBe("CROSS_SITE_REQUEST");
      expect((await send("DELETE", "/ui/session", { cookie, ...foreign })).statusCode).toBe(403);
    }
    expect(
      (await tw.app.inject({ method: "DELETE", url: "/ui/session", headers: { cookie } })).statusCode,
    ).toBe(403);
    expect(await asked(cookie)).toBe(200);
  });

  test("get no permission to read or send with credentials", async () => {
    const cookie = cookieOf(await signIn({ token: tw.token }));
    const headers = { cookie, origin: "https://evil.example" };
    const read = await tw.app.inject({ url: "/api/v2/dags", headers });
    expect(Object.keys(read.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    const preflight = await tw.app.inject({ method: "OPTIONS", url: "/api/v2/pools", headers });
    expect(Object.keys(preflight.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});

describe("a session", () => {
  test("ends with a sign-out, and only this one", async () => {
    const [cookie, other] = [
      cookieOf(await signIn({ token: tw.token })),
      cookieOf(await signIn({ token: tw.token })),
    ];
    const out = await send("DELETE", "/ui/session", { cookie });
    expect(out.headers["set-cookie"]).toMatch(
      /^tradewind_session=; Path=\/; Max-Age=0; HttpOnly; SameSite=Strict$/,
    );
    expect([await asked(cookie), await asked(other)]).toEqual([401, 200]);
    expect((await tw.call("DELETE", "/ui/session")).json().code).toBe("CONFLICT");
  });

  test("ends when its token is deleted or expires", async () => {
    const deleted = await newToken({ name: "deleted" });
    const cookie = cookieOf(await signIn({ token: deleted.token }));
    await tw.call("DELETE", `/tokens/${deleted.id}`);
    expect(await asked(cookie)).toBe(401);
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const expiring = await newToken({ name: "expiring", expires_at: soon });
    const held = cookieOf(await signIn({ token: expiring.token }));
    const got = await tw.app.inject({ url: "/ui/session", headers: { cookie: held } });
    expect(got.json().expires_at).toBe(soon);
    await tw.sql("UPDATE api_token SET expires_at = now() WHERE id = $1", [expiring.id]);
    expect(await asked(held)).toBe(401);
  });

  test("ends a week after its last use, and a month after the sign-in", async () => {
    const signInAlone = async () => {
      await tw.sql("DELETE FROM web_session");
      return cookieOf(await signIn({ token: tw.token }));
    };
    const age = (days: number) =>
      tw.sql(
        `UPDATE web_session SET created_at = created_at - d.age, last_used_at = last_used_at - d.age,
           expires_at = expires_at - d.age FROM (SELECT $1 * interval '1 day' AS age) AS d`,
        [days],
      );
    const used = await signInAlone();
    for (const days of [6, 6, 6, 6, 5.99]) {
      await age(days);
      expect(await asked(used)).toBe(200);
    }
    await age(0.02);
    expect(await asked(used)).toBe(401);
    const unused = await signInAlone();
    await age(7.01);
    expect(await asked(unused)).toBe(401);
  });

  test("closes its open streams when it ends", async () => {
    const app = await createApi(tw.options);
    onTestFinished(() => app.close());
    const url = await app.listen({ port: 0 });
    const cookie = cookieOf(await signIn({ token: tw.token }));
    const headers = { cookie, accept: "text/event-stream" };
    const response = await fetch(`${url}/api/v2/signals/listen?key=x`, { headers });
    const reader = response.body!.getReader();
    await reader.read();
    await send("DELETE", "/ui/session", { cookie });
    const at = performance.now();
    while (!(await reader.read()).done);
    expect(performance.now() - at).toBeLessThan(5_000);
  });

  test("is deleted by `db clean` after its end", async () => {
    await tw.sql("DELETE FROM web_session");
    await tw.sql("DELETE FROM sign_in_code");
    const cookie = cookieOf(await signIn({ token: tw.token }));
    await signIn({ token: tw.token });
    await linkCode();
    await linkCode();
    await tw.sql(
      "UPDATE web_session SET expires_at = now() - interval '2 days' WHERE created_at = (SELECT max(created_at) FROM web_session)",
    );
    await tw.sql(
      "UPDATE sign_in_code SET expires_at = now() - interval '2 days' WHERE ctid = (SELECT min(ctid) FROM sign_in_code)",
    );
    const only = CLEANABLE.filter((name) => name === "web_sessions" || name === "sign_in_codes");
    const place = { config: resolveConfig({}, {}), database: tw.database };
    const options = { olderThanMs: 86_400_000, batch: 100, only };
    for (const dryRun of [true, false])
      expect(await clean(place, { ...options, dryRun })).toMatchObject({ web_sessions: 1, sign_in_codes: 1 });
    expect(await asked(cookie)).toBe(200);
  });
});

test("a server with a base path accepts requests with and without it, and limits its cookie to it", async () => {
  const publicUrl = "https://tradewind.example.com/flows";
  const app = await createApi({ ...tw.options, config: { ...tw.options.config, publicUrl } });
  onTestFinished(() => app.close());
  const payload = { token: tw.token };
  for (const url of ["/ui/session", "/flows/ui/session"]) {
    const origin = "https://tradewind.example.com";
    const response = await app.inject({ method: "POST", url, payload, headers: { origin } });
    expect(response.headers["set-cookie"]).toMatch(
      /; Path=\/flows; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/,
    );
  }
  const headers = { authorization: `Bearer ${tw.token}` };
  for (const url of ["/api/v2/dags", "/flows/api/v2/dags", "/flows/api/v2/variables?limit=1"])
    expect((await app.inject({ url, headers })).statusCode).toBe(200);
  expect((await app.inject({ url: "/flowsx/api/v2/dags", headers })).statusCode).toBe(404);
  const link = await app.inject({ method: "POST", url: "/ui/sign-in-links", headers });
  expect(link.json().url).toMatch(/^https:\/\/tradewind\.example\.com\/flows\/sign-in#code=[\w-]{43}$/);
});
