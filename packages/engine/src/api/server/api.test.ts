/** Rules of the whole API: authentication, error format, and secrets in responses. */
import { once } from "node:events";
import { connect } from "node:net";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { routesOf } from "../../../test/api/routes.ts";
import { Database } from "../../store/database/database.ts";
import { createApi } from "./api.ts";
import { ApiServer } from "./api-server.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("sales", [{ taskId: "extract" }, { taskId: "load", upstream: ["extract"] }]));
});

describe("authentication", () => {
  const OPEN = ["GET /*", "GET /api/v2/version", "GET /api/v2/monitor/health", "POST /ui/session"];

  test("rejects calls without a valid token on every route except pages, version, health and sign-in", async () => {
    const all = routesOf(tw.app);
    expect(all.length).toBeGreaterThan(60);
    const answers = await Promise.all(
      all.flatMap(({ method, url }) =>
        [undefined, "Bearer", "Bearer wrong", "Basic YWRtaW46YWRtaW4=", `Bearer ${tw.token}x`, "cookie"].map(
          async (authorization) => {
            const response = await tw.app.inject({
              method,
              url,
              headers:
                authorization === undefined
                  ? {}
                  : authorization === "cookie"
                    ? { cookie: `tradewind_session=${"x".repeat(43)}`, "x-tradewind-csrf": "1" }
                    : { authorization },
            });
            return {
              route: `${method} ${url}`,
              status: response.statusCode,
              challenge: response.headers["www-authenticate"],
            };
          },
        ),
      ),
    );
    const open = answers.filter((answer) => answer.status !== 401);
    expect(new Set(open.map((answer) => answer.route))).toEqual(new Set(OPEN));
    expect(answers.filter((answer) => answer.status === 401 && answer.challenge === undefined)).toEqual([]);
  });

  test("requires a token for unknown paths", async () => {
    expect((await tw.app.inject("/api/v2/nothing")).statusCode).toBe(401);
    expect((await tw.call("GET", "/nothing")).statusCode).toBe(404);
  });

  test("rejects expired and deleted tokens at once", async () => {
    const { token } = tw;
    await tw.sql("UPDATE api_token SET expires_at = now() - interval '1 second'");
    expect((await tw.call("GET", "/dags")).statusCode).toBe(401);
    await tw.sql("UPDATE api_token SET expires_at = NULL");
    expect((await tw.call("GET", "/dags")).statusCode).toBe(200);
    expect(
      (await tw.sql<{ sha256: Buffer }>("SELECT sha256 FROM api_token"))[0]!.sha256.toString("utf8"),
    ).not.toContain(token);
  });

  test("explains a 401 as problem+json", async () => {
    const response = await tw.app.inject("/api/v2/dags");
    expect(response.headers["content-type"]).toBe("application/problem+json");
    expect(response.headers["www-authenticate"]).toBe('Bearer realm="tradewind"');
    expect(response.json()).toMatchObject({
      status: 401,
      title: "Unauthorized",
      detail: expect.stringContaining("Bearer"),
    });
  });
});

describe("bodies", () => {
  const post = (payload: string | Buffer, type = "application/json") =>
    tw.app.inject({
      method: "POST",
      url: "/api/v2/pools",
      headers: { authorization: `Bearer ${tw.token}`, "content-type": type },
      payload,
    });

  test.each([
    ["malformed JSON", "{", "json_invalid"],
    ["a bare word", "nope", "json_invalid"],
    ["bytes that are not UTF-8", Buffer.from('{"name":"p\xff","slots":1}', "latin1"), "utf8_invalid"],
    ["__proto__", '{"name":"p","slots":1,"__proto__":{"x":1}}', "key_forbidden"],
    ["constructor", '{"name":"p","slots":1,"constructor":{"prototype":{"x":1}}}', "key_forbidden"],
    ["deep nesting", `{"name":${"[".repeat(5000)}${"]".repeat(5000)}}`, "json_too_deep"],
    ["NUL", '{"name":"p\\u0000","slots":1}', "string_nul"],
    ["half a character", '{"name":"p","slots":1,"description":"\\ud800"}', "string_surrogate"],
    ["half a character in a key", '{"name":"p","slots":1,"\\udc00":"x"}', "string_surrogate"],
    ["an unknown field", '{"name":"p","slots":1,"colour":"red"}', "extra_forbidden"],
    ["a missing field", '{"name":"p"}', "missing"],
    ["a wrong type", '{"name":"p","slots":"many"}', "invalid_type"],
    ["an array", "[]", "invalid_type"],
    ["null", "null", "invalid_type"],
    ["nothing", "", "invalid_type"],
  ])("rejects %s with a 422 that names the field", async (_, payload, type) => {
    const response = await post(payload);
    expect(response.statusCode).toBe(422);
    const [first] = response.json().detail;
    expect(first).toMatchObject({ loc: expect.arrayContaining(["body"]), msg: expect.any(String), type });
  });

  test("rejects lone surrogates anywhere and names their place", async () => {
    const body = { dag_id: "a", dag_run_conf: { a: ["ok", { b: "x\ud800" }] } };
    const response = await tw.call("POST", "/backfills", body);
    expect(response.statusCode).toBe(422);
    expect(response.json().detail).toEqual([
      {
        loc: ["body", "dag_run_conf", "a", 1, "b"],
        msg: "Text must be valid Unicode, without lone surrogates",
        type: "string_surrogate",
      },
    ]);
    // A complete character has two surrogates.
    const emoji = await post('{"name":"p","slots":1,"description":"\\ud83d\\ude00"}');
    expect([emoji.statusCode, emoji.json().description]).toEqual([201, "\u{1f600}"]);
  });

  test("rejects an undecodable URL with a 400", async () => {
    expect((await tw.call("GET", "/dags/%E0%A4")).json()).toMatchObject({ status: 400, code: "BAD_REQUEST" });
  });

  test("rejects more than 1 MB with a 413 and other content types with a 415", async () => {
    const answer = async (...given: Parameters<typeof post>) => {
      const response = await post(...given);
      return [response.statusCode, response.json().code];
    };
    expect(await answer(`{"name":"${"x".repeat(1_100_000)}"}`)).toEqual([413, "BODY_TOO_LARGE"]);
    const unsupported = [415, "CONTENT_TYPE_UNSUPPORTED"];
    expect(await answer("name=p", "application/x-www-form-urlencoded")).toEqual(unsupported);
    expect(await answer("<p/>", "text/xml")).toEqual(unsupported);
  });
});

describe("queries and paths", () => {
  test.each([
    "/dags?limit=-1",
    "/dags?limit=many",
    "/dags?offset=-5",
    "/dags?offset=99999999999999999999",
    "/dags?order_by=password",
    "/dags?order_by=dag_id;drop table dag",
    "/dags?paused=perhaps",
    "/dags?dag_id_pattern=%00",
    "/dags/a%00b",
    `/dags/${"x".repeat(300)}`,
    "/dags/~/dagRuns?state=lost",
    "/dags/~/dagRuns?run_after_gte=yesterday",
    "/dags/~/dagRuns?run_after_gte=2026-02-30",
    "/dags/~/dagRuns?run_after_gte=0000-01-01",
    "/dags/~/dagRuns?run_after_gte=99999-01-01",
    "/dags/~/dagRuns?duration_gte=NaN",
    "/dags/~/dagRuns/~/taskInstances?map_index=-2147483649",
    "/dags/sales/dagVersions/one",
    "/importErrors/-1",
    "/importErrors/1.5",
    "/eventLogs/99999999999999999999999",
    "/dags/sales/dagRuns/r/taskInstances/extract/logs/0",
    "/dags/sales/dagRuns/r/taskInstances/extract/logs/1?token=-3",
  ])("rejects %s with a 422", async (path) => {
    const response = await tw.call("GET", path);
    expect([path, response.statusCode]).toEqual([path, 422]);
    expect(response.json().detail[0].loc[0]).toMatch(/^(query|path)$/);
  });

  test.each([
    ["/dags/~/dagRuns?state=lost", ["query", "state"], "Must be one of: queued, running, success, failed"],
    ["/dags/~/dagRuns?state=failed&state=lost", ["query", "state", 1], "Must be one of: queued, running"],
    ["/dags?tags_match_mode=some", ["query", "tags_match_mode"], "Must be one of: any, all"],
    ["/dags?paused=perhaps", ["query", "paused"], "Must be one of: true, 1, yes"],
    ["/dags?limit=abc", ["query", "limit"], "Must be a whole number"],
    ["/dags?limit=1.5", ["query", "limit"], "Must be a whole number"],
    ["/dags/~/dagRuns?duration_gte=long", ["query", "duration_gte"], "Must be a number"],
    ["/dags?order_by=password", ["query", "order_by"], "Can order by: dag_id"],
  ])("names the allowed values for %s", async (path, loc, msg) => {
    const { detail } = (await tw.call("GET", path)).json();
    expect(detail).toEqual([{ loc, msg: expect.stringContaining(msg), type: expect.any(String) }]);
  });

  test("validates a body value with two possible forms against the closest form", async () => {
    const body = { dag_run_id: "r", task_ids: [["extract", "first"]] };
    const { detail } = (await tw.call("POST", "/dags/sales/clearTaskInstances", body)).json();
    expect(detail).toMatchObject([
      { loc: ["body", "task_ids", 0, 1], msg: expect.stringContaining("number") },
    ]);
    const state = { new_state: "running" };
    const marked = await tw.call("PATCH", "/dags/sales/dagRuns/r/taskInstances/extract", state);
    expect(marked.json().detail[0].msg).toBe("Must be one of: success, failed, skipped");
  });

  test("rejects broken percent-encoding with a 400", async () => {
    expect((await tw.call("GET", "/dags/%E0%A4%A")).statusCode).toBe(400);
  });

  test("treats a quote in a name as data, not SQL", async () => {
    const response = await tw.call("GET", `/dags/${encodeURIComponent("x' OR '1'='1")}`);
    expect(response.statusCode).toBe(404);
    expect(response.json().detail).toBe(`DAG "x' OR '1'='1" does not exist`);
    expect((await tw.call("GET", "/dags?dag_id_pattern=%25%5C")).statusCode).toBe(200);
  });

  test("caps large limits, and returns only the count for 0", async () => {
    expect((await tw.call("GET", "/dags?limit=1000000")).json().dags).toHaveLength(1);
    expect((await tw.call("GET", "/dags?limit=0")).json()).toEqual({ dags: [], total_entries: 1 });
  });
});

test.each([
  ["run_after_gte=yesterday", "Must be an ISO 8601 date-time"],
  ["run_after_gte=2026-02-30", "Must be an ISO 8601 date-time"],
  ["run_after_gte=0001-01-01T00:00:00Z", "Out of range: must be between 0002-01-01 and 9998-12-31"],
  ["run_after_gte=9999-01-01T00:00:00Z", "Out of range: must be between 0002-01-01 and 9998-12-31"],
  // 0001-12-31 in UTC.
  ["run_after_gte=0002-01-01T00:00:00%2B01:00", "Out of range"],
])("names the error in the date of %s", async (query, msg) => {
  const { detail } = (await tw.call("GET", `/dags/~/dagRuns?${query}`)).json();
  expect(detail).toMatchObject([{ msg: expect.stringContaining(msg) }]);
});

test.each(["0002-01-01T00:00:00Z", "9998-12-31T23:59:59.999Z"])("accepts the date %s", async (date) => {
  expect((await tw.call("GET", `/dags/~/dagRuns?run_after_gte=${date}`)).statusCode).toBe(200);
});

describe("HEAD", () => {
  test("responds on every path like GET, without a body", async () => {
    // A GET of the live stream does not end by itself.
    const paths = routesOf(tw.app).filter(({ method, url }) => method === "GET" && url !== "/ui/stream");
    expect(paths.length).toBeGreaterThan(40);
    for (const { url } of paths) {
      const ask = (method: "GET" | "HEAD", headers: Record<string, string>) =>
        tw.app.inject({ method, url: `${url}?timeout=0`, headers });
      for (const headers of [{} as Record<string, string>, { authorization: `Bearer ${tw.token}` }]) {
        const [get, head] = [await ask("GET", headers), await ask("HEAD", headers)];
        expect([url, head.statusCode, head.headers["content-type"], head.body]).toEqual([
          url,
          get.statusCode,
          get.headers["content-type"],
          "",
        ]);
      }
    }
  });

  test("returns the content type of a stream or log and ends", async () => {
    const run = await tw.addRun("sales", { runId: "headed", state: "running" });
    await tw.addInstance(run, "extract", { state: "running", tryNumber: 1 });
    const server = new ApiServer(tw.options);
    await server.start();
    onTestFinished(() => server.stop());
    const head = async (path: string, accept = "*/*") => {
      const headers = { authorization: `Bearer ${tw.token}`, accept };
      const {
        body,
        headers: got,
        status,
      } = await fetch(`${server.url}${path.startsWith("/ui/") ? path : `/api/v2${path}`}`, {
        method: "HEAD",
        headers,
        signal: AbortSignal.timeout(10_000),
      });
      return [status, got.get("content-type"), got.get("content-length"), body];
    };
    const logs = "/dags/sales/dagRuns/headed/taskInstances/extract/logs/1";
    expect(await head(`${logs}/stream`)).toEqual([200, "text/event-stream", null, null]);
    expect(await head(logs, "application/x-ndjson")).toEqual([200, "application/x-ndjson", null, null]);
    expect(await head("/dags/sales/dagRuns/headed/wait")).toEqual([200, "application/x-ndjson", null, null]);
    expect(await head("/signals/listen?key=x", "text/event-stream")).toEqual([
      200,
      "text/event-stream",
      null,
      null,
    ]);
    expect(await head("/ui/stream?topics=runs")).toEqual([200, "text/event-stream", null, null]);
    expect((await head("/signals/listen?key=x"))[0]).toBe(200);
    expect((await head(`${logs}9/stream`))[0]).toBe(404);
  });
});

test("sends headers against caching and content sniffing", async () => {
  for (const path of ["/version", "/dags", "/nothing"]) {
    const { headers } = await tw.call("GET", path);
    expect(headers).toMatchObject({ "x-content-type-options": "nosniff", "cache-control": "no-store" });
    expect(headers["x-request-id"]).toBeTruthy();
  }
});

test("describes every route in OpenAPI, and requires a token", async () => {
  const document = (await tw.call("GET", "/openapi.json")).json();
  expect(document.openapi).toMatch(/^3\.1/);
  const described = Object.entries<Record<string, unknown>>(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, "{}")}`),
  );
  expect(described).toContain("POST /api/v2/dags/{}/dagRuns");
  expect(described.length).toBe(
    routesOf(tw.app).filter(({ url }) => url !== "/*" && !url.endsWith("openapi.json")).length,
  );
  expect(document.components.schemas).toHaveProperty("DAGRunResponse");
  expect(
    (await tw.app.inject({ url: "/openapi.json", headers: { authorization: `Bearer ${tw.token}` } })).json(),
  ).toEqual(document);
});

test("returns an unexpected error as a 500 with a request id and without SQL", async () => {
  await tw.sql("ALTER TABLE import_error RENAME TO hidden");
  try {
    const response = await tw.call("GET", "/importErrors");
    expect(response.statusCode).toBe(500);
    expect(response.body).not.toMatch(/import_error|SELECT|relation/i);
    expect(response.json().request_id).toBe(response.headers["x-request-id"]);
  } finally {
    await tw.sql("ALTER TABLE hidden RENAME TO import_error");
  }
});

test("reports an unreachable database in health, and returns a retryable 503 elsewhere", async () => {
  const database = Database.connect("postgres://missing@127.0.0.1:1/none");
  const app = await createApi({ ...tw.options, database });
  try {
    const health = await app.inject("/api/v2/monitor/health");
    expect([health.statusCode, health.json().metadatabase.status]).toEqual([200, "unhealthy"]);
    const dags = await app.inject({ url: "/api/v2/dags", headers: { authorization: `Bearer ${tw.token}` } });
    expect([dags.statusCode, dags.headers["retry-after"], dags.json().code]).toEqual([
      503,
      "1",
      "DATABASE_AWAY",
    ]);
  } finally {
    await app.close();
    await database.close();
  }
});

test("returns a 503 with a code for a full disk, and reports it in health", async () => {
  const metadatabase = async () => (await tw.app.inject("/api/v2/monitor/health")).json().metadatabase.status;
  await tw.sql(`CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION 'could not extend file "base/1/2": No space left on device' USING ERRCODE = '53100'; END$$`);
  await tw.sql("CREATE TRIGGER no_space BEFORE INSERT ON pool EXECUTE FUNCTION no_space()");
  try {
    expect(await metadatabase()).toBe("healthy");
    const refused = await tw.call("POST", "/pools", { name: "full", slots: 1 });
    expect([refused.statusCode, refused.json().code, refused.headers["retry-after"]]).toEqual([
      503,
      "DATABASE_FULL",
      "30",
    ]);
    expect(refused.body).not.toContain("base/1/2");
    expect(await metadatabase()).toBe("degraded");
  } finally {
    await tw.sql("DROP FUNCTION no_space CASCADE");
  }
  expect((await tw.call("POST", "/pools", { name: "full", slots: 1 })).statusCode).toBe(201);
});

test("does not wait for idle connections or incomplete requests on stop", async () => {
  const server = new ApiServer(tw.options);
  await server.start();
  const port = Number(new URL(server.url).port);
  const head = `POST /api/v2/pools HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${tw.token}\r\n`;
  const body = "content-type: application/json\r\ncontent-length: 99\r\n\r\n{";
  const sockets = await Promise.all(
    ["", head, head + body].map(async (text) => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      await once(socket, "connect");
      socket.write(text);
      return socket;
    }),
  );
  const closed = Promise.all(
    sockets.map((socket) => new Promise((resolve) => socket.once("close", resolve))),
  );
  const began = performance.now();
  await server.stop();
  await closed;
  expect(performance.now() - began).toBeLessThan(4_000);
});

test("starts, responds, rejects a port in use, and stops with an open stream on a real socket", async () => {
  const server = new ApiServer(tw.options);
  await server.start();
  const { url } = server;
  expect((await fetch(`${url}/api/v2/monitor/health`)).status).toBe(200);
  expect((await fetch(`${url}/api/v2/dags`)).status).toBe(401);

  const port = Number(new URL(url).port);
  const second = new ApiServer({ ...tw.options, config: { ...tw.options.config, port } });
  await expect(second.start()).rejects.toMatchObject({
    code: "API_ADDRESS",
    message: expect.stringContaining(String(port)),
  });

  await tw.addRun("sales", { runId: "endless", state: "running" });
  const headers = { authorization: `Bearer ${tw.token}` };
  const stream = await fetch(`${url}/api/v2/dags/sales/dagRuns/endless/wait`, { headers });
  const reader = stream.body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('"state":"running"');
  const ended = (async () => {
    while (!(await reader.read()).done);
  })();
  await server.stop();
  await ended;
  await expect(fetch(`${url}/api/v2/version`)).rejects.toThrow();
  expect(() => server.url).toThrow(expect.objectContaining({ code: "API_NOT_STARTED" }));
});
