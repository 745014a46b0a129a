/** Pools, variables and connections; secrets never appear in a response or in the database. */
import { randomBytes } from "node:crypto";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { SecretBox } from "../../secret/secret-box.ts";
import { createConnection, openConnection } from "../../store/settings/connections.ts";
import { createVariable, findVariable } from "../../store/settings/variables.ts";
import { createApi } from "../server/api.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
});

describe("pools", () => {
  test("are created, read, changed and deleted", async () => {
    const created = await tw.call("POST", "/pools", {
      name: "gpu",
      slots: 4,
      description: "cards",
      include_deferred: true,
    });
    expect(created.statusCode).toBe(201);
    expect(created.json()).toEqual({
      name: "gpu",
      slots: 4,
      description: "cards",
      include_deferred: true,
      occupied_slots: 0,
      running_slots: 0,
      queued_slots: 0,
      scheduled_slots: 0,
      open_slots: 4,
      deferred_slots: 0,
      team_name: null,
    });
    expect((await tw.call("POST", "/pools", { name: "gpu", slots: 1 })).statusCode).toBe(409);
    expect(
      (await tw.call("PATCH", "/pools/gpu?update_mask=slots", { slots: 8, description: "not this" })).json(),
    ).toMatchObject({ slots: 8, description: "cards" });
    expect((await tw.call("PATCH", "/pools/gpu", { description: null })).json()).toMatchObject({
      slots: 8,
      description: null,
      include_deferred: true,
    });
    expect((await tw.call("PATCH", "/pools/gpu", { pool: "cpu" })).statusCode).toBe(422);
    expect((await tw.call("GET", "/pools?pool_name_pattern=GP")).json().total_entries).toBe(1);
    expect((await tw.call("DELETE", "/pools/gpu")).statusCode).toBe(204);
    expect((await tw.call("GET", "/pools/gpu")).statusCode).toBe(404);
    expect((await tw.call("PATCH", "/pools/gpu", { slots: 1 })).statusCode).toBe(404);
  });

  test("show their usage, and cannot be deleted while in use or if default", async () => {
    await tw.addDag(manifestOf("etl", [{ taskId: "a" }]));
    const run = await tw.addRun("etl");
    await tw.call("POST", "/pools", { name: "busy", slots: 3 });
    await tw.addInstance(run, "a", { state: "running", pool: "busy" });
    await tw.addInstance(run, "b", { state: "queued", pool: "busy" });
    await tw.addInstance(run, "c", { state: "scheduled", pool: "busy" });
    await tw.sql("UPDATE pool SET occupied = 2 WHERE name = 'busy'");
    expect((await tw.call("GET", "/pools/busy")).json()).toMatchObject({
      occupied_slots: 2,
      running_slots: 1,
      queued_slots: 1,
      scheduled_slots: 1,
      open_slots: 1,
    });
    expect((await tw.call("DELETE", "/pools/busy")).statusCode).toBe(409);
    expect((await tw.call("DELETE", "/pools/default_pool")).statusCode).toBe(400);
    expect((await tw.call("PATCH", "/pools/default_pool", { slots: 64 })).json().slots).toBe(64);
  });

  test("hide internal counters", async () => {
    await tw.sql("INSERT INTO pool (name, slots) VALUES ('@etl/a', 1)");
    expect((await tw.call("GET", "/pools")).body).not.toContain("@etl");
    for (const method of ["GET", "PATCH", "DELETE"] as const) {
      expect(
        (
          await tw.call(
            method,
            `/pools/${encodeURIComponent("@etl/a")}`,
            method === "PATCH" ? { slots: 9 } : undefined,
          )
        ).statusCode,
      ).toBe(404);
    }
    expect((await tw.call("POST", "/pools", { name: "@mine", slots: 1 })).statusCode).toBe(422);
  });

  test.each([
    [{ name: "", slots: 1 }, "name"],
    [{ name: "x", slots: 1.5 }, "slots"],
    [{ name: "x", slots: -2 }, "slots"],
    [{ name: "x", slots: 1e12 }, "slots"],
    [{ name: "x".repeat(300), slots: 1 }, "name"],
    [{ name: "x", slots: 1, include_deferred: "no" }, "include_deferred"],
  ])("rejects %j at %s", async (body, field) => {
    const response = await tw.call("POST", "/pools", body);
    expect(response.statusCode).toBe(422);
    // Each error is reported once.
    expect(response.json().detail).toMatchObject([{ loc: ["body", field] }]);
  });

  test("is created once per Idempotency-Key", async () => {
    const post = () =>
      tw.call("POST", "/pools", { name: "once", slots: 1 }, { "idempotency-key": "pool-once" });
    const [first, again] = [await post(), await post()];
    expect([first.statusCode, again.statusCode, again.headers["idempotency-replayed"]]).toEqual([
      201,
      201,
      "true",
    ]);
  });
});

describe("variables", () => {
  test("are created, read, changed and deleted", async () => {
    const created = await tw.call("POST", "/variables", { key: "region", value: "eu", description: "where" });
    expect([created.statusCode, created.json()]).toEqual([
      201,
      { key: "region", value: "eu", description: "where", is_encrypted: true, team_name: null },
    ]);
    expect((await tw.call("POST", "/variables", { key: "region", value: "us" })).statusCode).toBe(409);
    expect(
      (await tw.call("POST", "/variables", { key: "limits", value: { max: [1, 2] } })).json().value,
    ).toBe('{"max":[1,2]}');
    expect((await tw.call("PATCH", "/variables/region", { value: "us" })).json()).toMatchObject({
      value: "us",
      description: "where",
    });
    expect(
      (
        await tw.call("PATCH", "/variables/region?update_mask=description", {
          key: "region",
          value: "mars",
          description: null,
        })
      ).json(),
    ).toMatchObject({ value: "us", description: null });
    expect((await tw.call("PATCH", "/variables/region", { key: "other", value: "x" })).statusCode).toBe(422);
    expect(
      (await tw.call("GET", "/variables?variable_key_pattern=gio&order_by=-key")).json().total_entries,
    ).toBe(1);
    expect(await findVariable(tw.database, tw.options.secretBox, "region")).toMatchObject({ value: "us" });
    expect((await tw.call("DELETE", "/variables/region")).statusCode).toBe(204);
    for (const method of ["GET", "DELETE"] as const)
      expect((await tw.call(method, "/variables/region")).statusCode).toBe(404);
    expect((await tw.call("PATCH", "/variables/region", { value: "x" })).statusCode).toBe(404);
  });

  test("lists other variables beside one encrypted with a lost key", async () => {
    await tw.call("POST", "/variables", { key: "readable", value: "yes" });
    await tw.sql("INSERT INTO variable (key, sealed) VALUES ('unreadable', '\\x00')");
    const { variables } = (await tw.call("GET", "/variables")).json();
    expect(variables).toContainEqual(expect.objectContaining({ key: "unreadable", value: null }));
    expect(variables).toContainEqual(expect.objectContaining({ key: "readable", value: "yes" }));
  });

  test("returns an error for an undecryptable value until it is set again", async () => {
    const other = new SecretBox([randomBytes(32)]);
    await createVariable(tw.database, other, { key: "sealed", value: "abc", description: "elsewhere" });
    const refused = {
      status: 409,
      code: "SECRET_UNREADABLE",
      detail: expect.stringMatching(/^The value of variable "sealed" was sealed with .* same secret key/),
    };
    expect((await tw.call("GET", "/variables/sealed")).json()).toMatchObject(refused);
    expect((await tw.call("PATCH", "/variables/sealed", { description: "x" })).json()).toMatchObject(refused);
    expect((await tw.call("PATCH", "/variables/sealed", { value: "again" })).json()).toMatchObject({
      value: "again",
      description: "elsewhere",
    });
    expect((await tw.call("GET", "/variables/sealed")).json().value).toBe("again");
  });

  test("rejects a stored response encrypted with another key without a 500", async () => {
    const call = {
      method: "POST",
      url: "/api/v2/variables",
      headers: { authorization: `Bearer ${tw.token}`, "idempotency-key": "two-keys" },
      payload: { key: "two", value: "keys" },
    } as const;
    expect((await tw.app.inject(call)).statusCode).toBe(201);
    const app = await createApi({ ...tw.options, secretBox: new SecretBox([randomBytes(32)]) });
    onTestFinished(() => app.close());
    expect((await app.inject(call)).json()).toMatchObject({
      status: 409,
      code: "SECRET_UNREADABLE",
      detail: expect.stringContaining('Idempotency-Key "two-keys"'),
    });
  });

  test("reports a missing value like any missing field", async () => {
    expect((await tw.call("POST", "/variables", { key: "k" })).json().detail).toEqual([
      { loc: ["body", "value"], msg: "Field required", type: "missing" },
    ]);
  });

  test.each([
    [{ key: "k" }],
    [{ value: "v" }],
    [{ key: "", value: "v" }],
    [{ key: "k", value: "v", team_name: "t" }],
    [{ key: 1, value: "v" }],
  ])("rejects %j with a 422", async (body) => {
    expect((await tw.call("POST", "/variables", body)).statusCode).toBe(422);
  });
});

describe("connections", () => {
  const body = {
    connection_id: "db",
    conn_type: "postgres",
    host: "db.local",
    port: 5432,
    login: "ada",
    schema: "sales",
    password: "pw-1",
    extra: '{"ssl":true}',
  };

  test("are created, read, changed and deleted with write-only secrets", async () => {
    const created = await tw.call("POST", "/connections", body);
    expect([created.statusCode, created.json()]).toEqual([
      201,
      { ...body, description: null, password: null, extra: null, team_name: null },
    ]);
    expect((await tw.call("POST", "/connections", body)).statusCode).toBe(409);
    const opened = () => openConnection(tw.database, tw.options.secretBox, "db");
    expect(await opened()).toEqual({
      id: "db",
      type: "postgres",
      host: "db.local",
      port: 5432,
      login: "ada",
      schema: "sales",
      password: "pw-1",
      extra: { ssl: true },
    });

    // Read, edit, write back: masked values are kept.
    const shown = (await tw.call("GET", "/connections/db")).json();
    expect((await tw.call("PATCH", "/connections/db", { ...shown, host: "db2.local" })).json().host).toBe(
      "db2.local",
    );
    expect(await opened()).toMatchObject({ host: "db2.local", password: "pw-1", extra: { ssl: true } });
    await tw.call("PATCH", "/connections/db", { password: "pw-2" });
    expect(await opened()).toMatchObject({ password: "pw-2", extra: { ssl: true } });
    await tw.call("PATCH", "/connections/db?update_mask=password&update_mask=port", {
      password: null,
      port: null,
      host: "ignored",
    });
    expect(await opened()).toMatchObject({
      host: "db2.local",
      password: null,
      port: null,
      extra: { ssl: true },
    });
    expect((await tw.call("PATCH", "/connections/db", { connection_id: "other" })).statusCode).toBe(422);

    expect((await tw.call("GET", "/connections?connection_id_pattern=D")).json().total_entries).toBe(1);
    expect((await tw.call("DELETE", "/connections/db")).statusCode).toBe(204);
    expect((await tw.call("DELETE", "/connections/db")).statusCode).toBe(404);
    expect((await tw.call("PATCH", "/connections/db", { host: "x" })).statusCode).toBe(404);
  });

  test.each([
    [{ ...body, connection_id: "a b" }, "connection_id"],
    [{ ...body, connection_id: "x".repeat(201) }, "connection_id"],
    [{ ...body, port: 70_000 }, "port"],
    [{ ...body, port: "5432" }, "port"],
    [{ ...body, extra: { ssl: true } }, "extra"],
    [{ ...body, extra: "{not json" }, "extra"],
    [{ ...body, extra: "[1]" }, "extra"],
    [{ ...body, extra: '"text"' }, "extra"],
    [{ ...body, extra: "null" }, "extra"],
    [{ ...body, uri: "postgres://" }, "uri"],
  ])("rejects %j at %s", async (bad, field) => {
    const response = await tw.call("POST", "/connections", bad);
    expect([response.statusCode, response.json().detail[0].loc]).toEqual([422, ["body", field]]);
  });
});

describe("secrets of a connection", () => {
  const stored = { connType: "http", description: null, host: null, port: null, login: null, schema: null };

  test("do not block other fields if undecryptable, and can only be replaced as a whole", async () => {
    const other = new SecretBox([randomBytes(32)]);
    await createConnection(tw.database, other, { ...stored, connId: "sealed", password: "p", extra: "{}" });
    expect((await tw.call("GET", "/connections/sealed")).statusCode).toBe(200);
    expect((await tw.call("GET", "/connections")).statusCode).toBe(200);
    const patched = await tw.call("PATCH", "/connections/sealed", { password: "q" });
    expect(patched.json()).toMatchObject({
      status: 409,
      code: "SECRET_UNREADABLE",
      detail: expect.stringContaining('connection "sealed"'),
    });
    const both = { password: "q", extra: '{"a":1}' };
    expect((await tw.call("PATCH", "/connections/sealed", both)).statusCode).toBe(200);
    const opened = await openConnection(tw.database, tw.options.secretBox, "sealed");
    expect(opened).toMatchObject({ password: "q", extra: { a: 1 } });
  });

  test("reject extra that is not an object without repeating it, and treat empty as none", async () => {
    await createConnection(tw.database, tw.options.secretBox, { ...stored, connId: "plain" });
    const refused = await tw.call("PATCH", "/connections/plain", { extra: "{canary" });
    expect(refused.json().detail).toMatchObject([
      { loc: ["body", "extra"], msg: expect.stringContaining("JSON object") },
    ]);
    expect(refused.body).not.toContain("canary");
    expect((await tw.call("PATCH", "/connections/plain", { extra: "" })).statusCode).toBe(200);
    expect(await openConnection(tw.database, tw.options.secretBox, "plain")).toMatchObject({ extra: null });
  });
});

describe("secrets", () => {
  const CANARIES = [
    "canary-password-7f3a",
    "canary-extra-91cc",
    "canary-variable-5d2e",
    "canary-rejected-0b1f",
  ];

  test("appear in no response, audit record or table", async () => {
    const [password, extra, value, rejected] = CANARIES as [string, string, string, string];
    const answers = [
      await tw.call(
        "POST",
        "/connections",
        { connection_id: "vault", conn_type: "http", password, extra: JSON.stringify({ key: extra }) },
        { "idempotency-key": "canary-1" },
      ),
      await tw.call(
        "POST",
        "/connections",
        { connection_id: "vault", conn_type: "http", password, extra: JSON.stringify({ key: extra }) },
        { "idempotency-key": "canary-1" },
      ),
      await tw.call("POST", "/connections", { connection_id: "vault", conn_type: "http", password }),
      await tw.call("POST", "/variables", { key: "api_token", value }, { "idempotency-key": "canary-2" }),
      await tw.call("POST", "/variables", { key: "api_token", value }, { "idempotency-key": "canary-2" }),
      await tw.call("PATCH", "/variables/api_token", { value: `${value}-2` }),
      await tw.call("PATCH", "/connections/vault", { password: `${password}-2`, login: "ada" }),
      await tw.call("POST", "/connections", {
        connection_id: "bad",
        conn_type: "http",
        password: { nested: rejected },
      }),
      await tw.call("POST", "/connections", {
        connection_id: "bad",
        conn_type: "http",
        password: `${rejected}\0`,
      }),
    ];
    for (const path of [
      "/connections",
      "/connections/vault",
      "/variables",
      "/variables/api_token",
      "/eventLogs?limit=1000",
      "/pools",
      "/dags",
      "/jobs",
      "/openapi.json",
    ]) {
      answers.push(await tw.call("GET", path));
    }
    expect(answers.map((answer) => answer.statusCode)).toEqual([
      201,
      201,
      409,
      201,
      201,
      200,
      200,
      422,
      422,
      ...Array(9).fill(200),
    ]);
    for (const answer of answers)
      for (const canary of CANARIES)
        expect(`${answer.body}${JSON.stringify(answer.headers)}`).not.toContain(canary);

    const tables = await tw.sql<{ name: string }>(
      "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public'",
    );
    for (const { name } of tables) {
      const rows = JSON.stringify(await tw.sql(`SELECT t::text AS row FROM ${name} t`));
      for (const canary of CANARIES) {
        expect(rows).not.toContain(canary);
        expect(rows).not.toContain(Buffer.from(canary).toString("hex"));
      }
      expect(rows).not.toContain(tw.token);
    }
  });
});
