/** Who may call the task execution API, on every route of it, and what a worker's token opens elsewhere. */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import type { InjectOptions, LightMyRequestResponse } from "fastify";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { attemptToken, launchToken, readGrant } from "../../secret/attempt-token.ts";
import { SecretBox } from "../../secret/secret-box.ts";
import { createToken, deleteToken, type TokenRole } from "../../store/access/tokens.ts";
import { adhoc } from "../../store/database/database.ts";
import { insertAssignments } from "../../store/execute/assignments.ts";

const TEXT = JSON.stringify("x".repeat(100));
const SHA256 = createHash("sha256").update(TEXT).digest("hex");
const HOUR = 3_600_000;

interface Caller {
  /** The bearer token. */
  readonly token: string | null;
  readonly worker: number;
  /** The attempt token. */
  readonly attempt: string;
  readonly assignment: string;
  readonly object: number;
  readonly grant: string;
}

type Request = Pick<InjectOptions, "headers"> & { readonly url?: string; readonly payload?: string | object };

const facts = { name: "w", hostname: "h", pid: 1, version: "0", protocol: 1, slots: 1 };

/** A valid request for each route. A new route fails the test until it is here. */
const REQUESTS: Readonly<Record<string, (of: Caller) => Request>> = {
  "POST /execution/v1/workers": () => ({ payload: facts }),
  "POST /execution/v1/workers/{worker_id}/heartbeat": ({ worker }) => ({
    url: `/execution/v1/workers/${worker}/heartbeat`,
    // A superseded assignment: the answer is not held.
    payload: { assignments: [randomUUID()] },
  }),
  "DELETE /execution/v1/workers/{worker_id}": ({ worker }) => ({ url: `/execution/v1/workers/${worker}` }),
  "POST /execution/v1/claims": ({ assignment, worker }) => ({ payload: { worker, ids: [assignment] } }),
  "POST /execution/v1/requests": ({ attempt, worker }) => ({
    payload: { worker, requests: [{ token: attempt, request: { what: "recall" }, ago_ms: 0 }] },
  }),
  "POST /execution/v1/logs": ({ attempt, worker }) => ({
    payload: { worker, logs: [{ token: attempt, offset: null, text: "" }] },
  }),
  "POST /execution/v1/reports": ({ attempt, worker }) => ({
    payload: { worker, reports: [{ token: attempt, type: "started", content: { pid: 1 }, ago_ms: 0 }] },
  }),
  "POST /execution/v1/outputs": ({ attempt, worker }) => ({
    url: `/execution/v1/outputs?worker=${worker}&bytes=${TEXT.length}&sha256=${SHA256}`,
    headers: { "content-type": "application/octet-stream", "tradewind-attempt": attempt },
    payload: TEXT,
  }),
  "GET /execution/v1/outputs/{object_id}": ({ attempt, grant, object, worker }) => ({
    url: `/execution/v1/outputs/${object}?worker=${worker}&grant=${grant}`,
    headers: { "tradewind-attempt": attempt },
  }),
  "GET /execution/v1/bundles/{hash}": () => ({ url: `/execution/v1/bundles/${BUNDLE}` }),
  "GET /execution/v1/bundles/{hash}/files/{file_hash}": () => ({
    url: `/execution/v1/bundles/${BUNDLE}/files/${"0".repeat(64)}`,
  }),
};
/** Of a required file, which this bundle does not have. */
const FOUND_NOTHING = "GET /execution/v1/bundles/{hash}/files/{file_hash}";
const BUNDLE = randomBytes(16).toString("hex");
const ROUTES = Object.keys(REQUESTS);
const WITH_WORKER = ROUTES.filter((route) => !/bundles|\/workers$/.test(route));
/** How each route with attempt tokens answers to one that is not current. */
const SUPERSEDED: Readonly<Record<string, (response: LightMyRequestResponse, of: Caller) => void>> = {
  "POST /execution/v1/requests": (response) =>
    expect(response.json().answers).toEqual([expect.objectContaining({ code: "TASK_ATTEMPT_SUPERSEDED" })]),
  "POST /execution/v1/logs": (response) =>
    expect(response.json().answers).toEqual([expect.objectContaining({ code: "TASK_ATTEMPT_SUPERSEDED" })]),
  "POST /execution/v1/reports": (response, { assignment }) =>
    expect(response.json()).toEqual({ superseded: [assignment] }),
  "POST /execution/v1/outputs": (response) => isRefused(response, 410, "TASK_ATTEMPT_SUPERSEDED"),
  "GET /execution/v1/outputs/{object_id}": (response) => isRefused(response, 410, "TASK_ATTEMPT_SUPERSEDED"),
};
const WITH_ATTEMPT = Object.keys(SUPERSEDED);

let tw: Installation;
/** Workers of two tokens. */
let own: { readonly token: string; readonly worker: number };
let other: { readonly token: string; readonly worker: number };
let run: number;
let me: Caller;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("etl", [{ taskId: "t" }]), undefined, BUNDLE);
  run = await tw.addRun("etl", { runId: "r1" });
});

beforeEach(async () => {
  own = await newWorker(await newToken("worker"));
  other = await newWorker(await newToken("worker"));
  me = await claimed(own);
});

async function newToken(role: TokenRole, expiresInMs: number | null = null): Promise<string> {
  const token = `tw_${randomBytes(32).toString("base64url")}`;
  const expiresAt = expiresInMs === null ? null : new Date(Date.now() + expiresInMs);
  await createToken(tw.database, { name: "t", token, role, expiresAt });
  return token;
}

async function newWorker(token: string): Promise<{ token: string; worker: number }> {
  const response = await call("POST /execution/v1/workers", { ...me, token });
  return { token, worker: response.json().worker as number };
}

/** An attempt that is running, and its assignment. */
async function newAssignment(): Promise<string> {
  const id = randomUUID();
  await tw.sql("DELETE FROM task_instance");
  await tw.addInstance(run, "t", { state: "running", tryNumber: 1, attempt: id });
  await insertAssignments(tw.database, [
    {
      ...{ id, kind: "attempt", dagRunId: run, taskId: "t", mapIndex: -1 },
      ...{ executor: "queue", queue: "default", priority: 0, config: null },
      content: {
        ...{ kind: "attempt", id, dagRunId: run, taskId: "t", mapIndex: -1, tryNumber: 1 },
        ...{ run: { dagId: "etl", runId: "r1" }, logKey: `etl/${run}/t/-1/1-${id}.log`, queue: "default" },
      },
    },
  ]);
  return id;
}

async function claimed({ token, worker }: { token: string; worker: number }): Promise<Caller> {
  const assignment = await newAssignment();
  const blank = { token, worker, assignment, attempt: "", object: 0, grant: "" };
  const answer = await call("POST /execution/v1/claims", blank);
  const attempt = answer.json().claimed[0].token as string;
  const stored = await call("POST /execution/v1/outputs", { ...blank, attempt });
  const object = stored.json().id as number;
  return { ...blank, attempt, object, grant: readGrant(tw.options.secretBox, assignment, object) };
}

function call(route: string, of: Caller): Promise<LightMyRequestResponse> {
  const [method = "GET", path = "/"] = route.split(" ");
  const { headers, payload, url = path } = REQUESTS[route]!(of);
  return tw.app.inject({
    method: method as "GET",
    url,
    headers: { ...headers, ...(of.token !== null && { authorization: `Bearer ${of.token}` }) },
    ...(payload !== undefined && { payload }),
  });
}

function isRefused(response: LightMyRequestResponse, status: number, code: string): void {
  expect([response.statusCode, response.json().code]).toEqual([status, code]);
}

function isServed(route: string, response: LightMyRequestResponse): void {
  const expected = route === FOUND_NOTHING ? [404] : [200, 201, 204];
  expect(expected, response.body).toContain(response.statusCode);
}

it("has a test for every route", async () => {
  const { paths } = (await tw.call("GET", "/openapi.json")).json() as { paths: Record<string, object> };
  const routes = Object.entries(paths)
    .filter(([path]) => path.startsWith("/execution/"))
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`));
  expect(routes.sort()).toEqual([...ROUTES].sort());
  for (const [path, methods] of Object.entries(paths))
    for (const operation of path.startsWith("/execution/") ? Object.values(methods) : [])
      expect(operation).toMatchObject({ tags: ["Task execution"], summary: expect.any(String) });
});

describe.each(ROUTES)("%s", (route) => {
  it("serves a worker with its own token, and an admin", async () => {
    isServed(route, await call(route, me));
    const admin = await newWorker(tw.token);
    isServed(route, await call(route, await claimed(admin)));
  });

  it("refuses a caller without a valid token", async () => {
    const revoked = await newToken("worker");
    await tw.database.transaction(async (tx) => {
      const [row] = await tx.rows<{ id: number }>(NEWEST_TOKEN);
      await deleteToken(tx, row!.id);
    });
    const foreignBox = new SecretBox([randomBytes(32)]);
    const tokens = [
      null,
      `tw_${randomBytes(32).toString("base64url")}`,
      revoked,
      await newToken("worker", -HOUR),
      // An attempt token opens nothing by itself.
      me.attempt,
      launchToken(foreignBox, me.assignment),
      launchToken(tw.options.secretBox, me.assignment).slice(0, -2),
    ];
    for (const token of tokens) isRefused(await call(route, { ...me, token }), 401, "UNAUTHENTICATED");
    const ended = launchToken(tw.options.secretBox, randomUUID());
    isRefused(await call(route, { ...me, token: ended }), 410, "ASSIGNMENT_ENDED");
  });
});

it.each([
  [0, "update the worker"],
  [2, "update the server"],
])("registers no worker of protocol %i, and says: %s", async (protocol, remedy) => {
  const response = await tw.app.inject({
    method: "POST",
    url: "/execution/v1/workers",
    headers: { authorization: `Bearer ${own.token}` },
    payload: { ...facts, protocol },
  });
  isRefused(response, 409, "WORKER_VERSION");
  expect(response.json().detail).toContain(remedy);
});

it("refuses the heartbeat of a worker that an older server has registered with an older protocol", async () => {
  const beat = "POST /execution/v1/workers/{worker_id}/heartbeat";
  isServed(beat, await call(beat, me));
  await tw.sql("UPDATE job SET facts = '{\"protocol\": 0}' WHERE id = $1", [me.worker]);
  const response = await call(beat, me);
  isRefused(response, 409, "WORKER_VERSION");
  expect(response.json().detail).toContain("update the worker");
});

it("refuses a worker whose token was revoked while it was in use", async () => {
  const token = await newToken("worker");
  const [row] = await tw.database.rows<{ id: number }>(NEWEST_TOKEN);
  const worker = await newWorker(token);
  const mine = await claimed(worker);
  isServed(ROUTES[1]!, await call(ROUTES[1]!, mine));
  await tw.database.transaction((tx) => deleteToken(tx, row!.id));
  const until = performance.now() + 5_000;
  while ((await call(ROUTES[1]!, mine)).statusCode !== 401) expect(performance.now()).toBeLessThan(until);
});

describe.each(WITH_WORKER)("%s", (route) => {
  it("refuses a worker that was registered with another token, or by a pod", async () => {
    isRefused(await call(route, { ...me, token: other.token }), 403, "WORKER_FOREIGN");
    isRefused(await call(route, { ...me, token: tw.token }), 403, "WORKER_FOREIGN");
    const pod = launchToken(tw.options.secretBox, me.assignment);
    isRefused(await call(route, { ...me, token: pod }), 403, "WORKER_FOREIGN");
  });
});

describe.each(WITH_ATTEMPT)("%s", (route) => {
  it("refuses attempt tokens that are forged or of another worker", async () => {
    const foreign = await claimed(other);
    const mine = await claimed(own);
    const [id, worker, signed = ""] = mine.attempt.split(".");
    const foreignBox = new SecretBox([randomBytes(32)]);
    const forged = [
      "",
      "x",
      `${id}.${worker}.`,
      `${id}.${worker}.${signed.slice(0, -1)}`,
      `${id}.${worker}.${signed.startsWith("A") ? "B" : "A"}${signed.slice(1)}`,
      // The signature of another assignment.
      `${foreign.assignment}.${worker}.${signed}`,
      attemptToken(foreignBox, mine.assignment, own.worker),
      foreign.attempt,
      launchToken(tw.options.secretBox, mine.assignment),
    ];
    for (const attempt of forged)
      isRefused(await call(route, { ...mine, attempt }), 403, "ATTEMPT_TOKEN_INVALID");
  });

  it("refuses the token of an attempt that is not current any more", async () => {
    await tw.sql("DELETE FROM assignment WHERE id = $1", [me.assignment]);
    SUPERSEDED[route]!(await call(route, me), me);
  });
});

it.each([
  "POST /execution/v1/requests",
  "POST /execution/v1/outputs",
  "GET /execution/v1/outputs/{object_id}",
])("refuses a call for an attempt that was replaced while its worker still has it: %s", async (route) => {
  await tw.sql("UPDATE task_instance SET attempt = $1", [randomUUID()]);
  SUPERSEDED[route]!(await call(route, me), me);
});

it("takes the log of a replaced attempt until its worker has stopped it", async () => {
  await tw.sql("UPDATE task_instance SET attempt = $1", [randomUUID()]);
  expect((await call("POST /execution/v1/logs", me)).json()).toEqual({ answers: [{ size: 0 }] });
});

describe("a pod", () => {
  const box = () => tw.options.secretBox;

  it("acts for its own assignment only", async () => {
    const [mine, another] = [await newAssignment(), randomUUID()];
    const pod = await newWorker(launchToken(box(), mine));
    isRefused(
      await call("POST /execution/v1/claims", { ...me, ...pod, assignment: another }),
      403,
      "ASSIGNMENT_FOREIGN",
    );
    const answer = await call("POST /execution/v1/claims", { ...me, ...pod, assignment: mine });
    const attempt = answer.json().claimed[0].token as string;
    for (const route of ROUTES.filter((each) => !each.startsWith("DELETE")))
      isServed(route, await call(route, await withOutput({ ...me, ...pod, assignment: mine, attempt })));
    // The worker of the same pod, but not of another one.
    await newAssignment();
    const next = launchToken(box(), (await claimed(own)).assignment);
    isRefused(await call("POST /execution/v1/logs", { ...me, ...pod, token: next }), 403, "WORKER_FOREIGN");
  });

  it("can sign off after its assignment has ended, and nothing more after that", async () => {
    const mine = await newAssignment();
    const pod = await newWorker(launchToken(box(), mine));
    await tw.sql("DELETE FROM assignment WHERE id = $1", [mine]);
    const off = "DELETE /execution/v1/workers/{worker_id}";
    expect((await call(off, { ...me, ...pod })).statusCode).toBe(204);
    for (const route of ROUTES) isRefused(await call(route, { ...me, ...pod }), 410, "ASSIGNMENT_ENDED");
  });
});

describe("large outputs", () => {
  const READ = "GET /execution/v1/outputs/{object_id}";

  it("can be read by an assignment that received the reference, and by no other", async () => {
    expect((await call(READ, me)).body).toBe(TEXT);
    const elsewhere = await claimed(other);
    const box = tw.options.secretBox;
    const grants = [
      "",
      "x",
      me.grant.slice(0, -1),
      elsewhere.grant,
      // Of another assignment, and of this one for another object.
      readGrant(box, elsewhere.assignment, me.object),
      readGrant(box, me.assignment, elsewhere.object),
      readGrant(new SecretBox([randomBytes(32)]), me.assignment, me.object),
    ];
    const mine = await tw.sql("SELECT FROM task_instance WHERE attempt = $1", [me.assignment]);
    if (mine.length === 0) await tw.sql("UPDATE task_instance SET attempt = $1", [me.assignment]);
    for (const grant of grants) isRefused(await call(READ, { ...me, grant }), 403, "OUTPUT_FOREIGN");
    isRefused(await call(READ, { ...me, object: elsewhere.object }), 403, "OUTPUT_FOREIGN");
  });

  it("are reported only by the attempt that has stored them, with the facts of the database", async () => {
    const { assignment: _, ...elsewhere } = await claimed(other);
    const mine = await claimed(own);
    const report = (stored: object) =>
      tw.app.inject({
        method: "POST",
        url: "/execution/v1/reports",
        headers: { authorization: `Bearer ${own.token}` },
        payload: {
          worker: own.worker,
          reports: [
            {
              ...{ token: mine.attempt, type: "ended", ago_ms: 0 },
              content: { outcome: { kind: "success", skip: [], stored }, started: null },
            },
          ],
        },
      });
    const stored = { id: mine.object, store: "s3://theirs", key: "k", bytes: 1, sha256: "", items: 7 };
    isRefused(await report({ ...stored, id: elsewhere.object }), 403, "OUTPUT_FOREIGN");
    expect((await report(stored)).json()).toEqual({ superseded: [] });
    const [row] = await tw.sql<{ content: { outcome: object } }>(
      "SELECT content FROM report WHERE assignment_id = $1",
      [mine.assignment],
    );
    expect(row?.content.outcome).toMatchObject({
      stored: { id: mine.object, store: "file:", bytes: TEXT.length, sha256: SHA256, items: null, run: "r1" },
    });
  });

  it("are refused if they exceed the limit, are not what was announced, or are no JSON", async () => {
    const post = (payload: string, { bytes = payload.length, sha256 = "" } = {}) =>
      tw.app.inject({
        method: "POST",
        url: `/execution/v1/outputs?worker=${me.worker}&bytes=${bytes}&sha256=${sha256 || createHash("sha256").update(payload).digest("hex")}`,
        headers: {
          authorization: `Bearer ${me.token}`,
          "content-type": "application/octet-stream",
          "tradewind-attempt": me.attempt,
        },
        payload,
      });
    isRefused(await post("[]", { bytes: 4 * 1024 * 1024 + 1 }), 413, "OUTPUT_TOO_LARGE");
    isRefused(await post("x".repeat(5 * 1024 * 1024), { bytes: 7 }), 503, "OUTPUT_NOT_STORED");
    isRefused(await post(TEXT, { sha256: "0".repeat(64) }), 503, "OUTPUT_NOT_STORED");
    isRefused(await post("{"), 503, "OUTPUT_NOT_STORED");
    // The attempt has stored another one.
    isRefused(await post("[]"), 503, "OUTPUT_NOT_STORED");
    expect((await post(TEXT)).json().id).toBe(me.object);
  });
});

describe("elsewhere", () => {
  it("the token of a worker opens no other route, and that of a pod neither", async () => {
    const { paths } = (await tw.call("GET", "/openapi.json")).json() as { paths: Record<string, object> };
    const routes = Object.entries(paths)
      .filter(([path]) => !path.startsWith("/execution/"))
      .flatMap(([path, methods]) => Object.keys(methods).map((method) => ({ method, path })));
    expect(routes.length).toBeGreaterThan(100);
    const pod = launchToken(tw.options.secretBox, me.assignment);
    const open: string[] = [];
    for (const { method, path } of routes) {
      const url = path.replaceAll(/\{\w+\}/g, "x");
      const as = (token?: string) =>
        tw.app.inject({
          method: method.toUpperCase() as "GET",
          url,
          headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        });
      if ((await as()).statusCode !== 401) {
        open.push(`${method} ${path}`);
        continue;
      }
      isRefused(await as(own.token), 403, "FORBIDDEN");
      isRefused(await as(pod), 401, "UNAUTHENTICATED");
    }
    // A sign-in carries its token in the body, and rejects that of a worker.
    expect(open.sort()).toEqual(["get /api/v2/monitor/health", "get /api/v2/version", "post /ui/session"]);
  });
});

const NEWEST_TOKEN = adhoc("SELECT max(id) AS id FROM api_token");

/** Stores the output of the attempt, which a route may need. */
async function withOutput(of: Caller): Promise<Caller> {
  const object = (await call("POST /execution/v1/outputs", of)).json().id as number;
  return { ...of, object, grant: readGrant(tw.options.secretBox, of.assignment, object) };
}
