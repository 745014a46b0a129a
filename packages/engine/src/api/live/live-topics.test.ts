/** Each topic receives what the API, another process or a service changes, from the transaction that changes it. */
import { beforeAll, beforeEach, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { LiveBrowser } from "../../../test/api/live-browser.ts";
import { type LiveServer, liveServer, send } from "../../../test/api/live-server.ts";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { WakeUps } from "../../job/wake-up.ts";
import { recordImportError, removeFiles } from "../../store/dag/dag-catalogue.ts";
import { endJob, registerJob } from "../../store/job/job-lease.ts";

let tw: Installation;
let server: LiveServer;

beforeAll(async () => {
  tw = await Installation.open();
  const schedule = { kind: "interval", everyMs: 86_400_000, style: "trigger" } as const;
  await tw.addDag(manifestOf("etl", [{ taskId: "a" }], { schedule, start: "2025-01-01T00:00:00Z" }));
});

beforeEach(async () => {
  server = await liveServer(tw);
});

const open = (...topics: string[]) => LiveBrowser.open(server, topics);

async function ok(method: string, path: string, body?: unknown): Promise<void> {
  expect([path, await send(server, method, path, body)]).toEqual([
    path,
    expect.toSatisfy((status: number) => status < 300),
  ]);
}

it("settings: pools with their use, connections and variables, also when they are deleted", async () => {
  const browser = await open("settings", "audit");
  const settings = () => browser.of("settings");
  await ok("POST", "/pools", { name: "gpu", slots: 3 });
  await browser.reach(() =>
    settings().some(({ pools }) => pools.some(({ name, slots }) => name === "gpu" && slots === 3)),
  );
  await tw.sql("UPDATE pool SET occupied = 2 WHERE name = 'gpu'");
  tw.wakeUps.send("moves");
  await browser.reach(() => settings().some(({ pools }) => pools.some(({ occupied }) => occupied === 2)));
  await tw.sql("UPDATE pool SET occupied = 0 WHERE name = 'gpu'");
  await ok("DELETE", "/pools/gpu");
  await browser.reach(() => settings().some(({ deleted_pools }) => deleted_pools.includes("gpu")));
  await ok("POST", "/variables", { key: "region/eu", value: "x" });
  await browser.reach(() => settings().some(({ variables }) => variables.includes("region/eu")));
  await ok("POST", "/connections", { connection_id: "db", conn_type: "http", host: "localhost" });
  await browser.reach(() => settings().some(({ connections }) => connections.includes("db")));
  expect(browser.of("audit").length).toBeGreaterThan(0);
});

it("dags and dag: pauses, versions, deletions", async () => {
  const browser = await open("dags", "dag:etl", "dag:other");
  await ok("PATCH", "/dags/etl", { is_paused: true });
  await browser.reach(() => browser.of("dag:etl").some(({ dag }) => dag?.is_paused === true));
  expect(browser.of("dags").at(-1)).toEqual({
    topic: "dags",
    dags: [{ dag_id: "etl", version: 1, is_paused: true, is_stale: false }],
    ...{ deleted: [], import_errors: [], imported: [], more: false },
  });
  await seedDag(tw.database, "other");
  tw.wakeUps.send("dags");
  await browser.reach(() => browser.of("dag:other").some(({ dag }) => dag?.version === 1));
  await ok("DELETE", "/dags/other");
  await browser.reach(() => browser.of("dag:other").some(({ is_deleted }) => is_deleted));
  expect(browser.of("dags").at(-1)).toMatchObject({ deleted: ["other"] });
});

it("dags and errors: import errors that appear, change and go, from the processor's transaction", async () => {
  const browser = await open("dags", "errors", "home");
  const dags = () => browser.of("dags");
  await recordImportError(tw.database, "broken.ts", "Unexpected token");
  await browser.reach(() => dags().some(({ import_errors }) => import_errors.includes("broken.ts")));
  await browser.reach(() => browser.of("errors").some(({ import_errors }) => import_errors === 1));
  const before = dags().length;
  await recordImportError(tw.database, "broken.ts", "Unexpected end");
  await browser.reach(() => dags().length > before);
  expect(dags().at(-1)).toMatchObject({ import_errors: ["broken.ts"] });
  await removeFiles(tw.database, ["broken.ts"]);
  await browser.reach(() => dags().some(({ imported }) => imported.includes("broken.ts")));
  await browser.reach(() => browser.of("errors").some(({ import_errors }) => import_errors === 0));
  const parts = () => browser.of("home").flatMap((message) => message.parts);
  await browser.reach(() => ["dags", "errors"].every((part) => parts().includes(part as never)));
});

it("backfills: progress and the end", async () => {
  const browser = await open("backfills", "home");
  await ok("POST", "/backfills", {
    dag_id: "etl",
    from_date: "2026-01-01T00:00:00Z",
    to_date: "2026-01-05T00:00:00Z",
  });
  const found = () => browser.of("backfills").flatMap(({ backfills }) => backfills);
  await browser.reach(() => found().some(({ handled, state }) => state === "running" && handled === 0));
  const { id } = found()[0]!;
  await tw.sql("UPDATE backfill SET next_ordinal = 2 WHERE id = $1", [id]);
  tw.wakeUps.send("ended");
  await browser.reach(() => found().some(({ handled }) => handled === 2));
  await ok("PUT", `/backfills/${id}/pause`);
  await browser.reach(() => found().some(({ state }) => state === "paused"));
  await tw.sql("UPDATE backfill SET state = 'cancelled', ended_at = now() WHERE id = $1", [id]);
  tw.wakeUps.send("backfills");
  await browser.reach(() => found().some(({ state }) => state === "cancelled"));
});

it("jobs: services that start, end and die", async () => {
  const browser = await open("jobs");
  const who = { hostname: "h", pid: 1, version: "1" };
  const scheduler = await registerJob(tw.database, { kind: "scheduler", ...who }, 60_000);
  const api = await registerJob(tw.database, { kind: "api", ...who }, 60_000);
  const states = (id: number) =>
    browser
      .of("jobs")
      .flatMap(({ jobs }) => jobs.filter((job) => job.id === id))
      .map(({ is_alive, state }) => `${state} ${is_alive}`);
  await browser.reach(() => states(api.id).length > 0);
  await endJob(tw.database, api.id);
  await browser.reach(() => states(api.id).includes("stopped false"));
  // No other process declares it dead: only its lease expires.
  await tw.sql("UPDATE job SET lease_until = now() WHERE id = $1", [scheduler.id]);
  await browser.reach(() => states(scheduler.id).includes("running false"));
  expect(states(scheduler.id)).toEqual(["running true", "running false"]);
});

it("signals: how many arrived in each namespace, without their values", async () => {
  const browser = await open("signals", "assets");
  const signals = Array.from({ length: 3 }, (_, n) => ({ key: `k${n}`, value: "secret" }));
  await ok("POST", "/signals", { signals });
  const count = () =>
    browser.of("signals").reduce((sum, { namespaces }) => sum + (namespaces.default ?? 0), 0);
  await browser.reach(() => count() === 3);
  const [newest] = await tw.sql<{ id: number; at: string }>(
    "SELECT id, tx || '-' || id AS at FROM signal WHERE namespace = 'default' ORDER BY id DESC LIMIT 1",
  );
  expect(browser.of("signals").at(-1)).toMatchObject({ newest: newest!.id, position: newest!.at });
  expect(JSON.stringify(browser.events)).not.toContain("secret");
  await tw.sql("INSERT INTO signal (namespace, key, sender) VALUES ('asset', 's3://a/b', 'test')");
  tw.wakeUps.send("signals");
  await browser.reach(() => browser.of("assets").some(({ assets }) => assets.includes("s3://a/b")));
});

it("waiting: waits that begin and end, in another process", async () => {
  const browser = await open("waiting", "home");
  const other = new WakeUps(tw.database);
  for (const topic of ["triggers", "fired", "unwaited"] as const) {
    const before = browser.of("waiting").length;
    other.send(topic);
    await browser.reach(() => browser.of("waiting").length > before);
  }
  await browser.reach(() => browser.of("home").some(({ parts }) => parts.includes("waiting")));
  await other.close();
});

it("runs: created through the API, and deleted", async () => {
  const browser = await open("runs", "dag:etl", "run:etl/one", "home");
  await ok("POST", "/dags/etl/dagRuns", { dag_run_id: "one", logical_date: null });
  const runs = () => browser.of("runs").flatMap((message) => message.runs);
  await browser.reach(() => runs().some(({ run_id, state }) => run_id === "one" && state === "queued"));
  await ok("DELETE", "/dags/etl/dagRuns/one");
  await browser.reach(() => runs().some(({ run_id, state }) => run_id === "one" && state === null));
  await browser.reach(() => browser.of("home").some(({ parts }) => parts.includes("runs")));
});

it("deadlines: a missed one, for its run and for the first page", async () => {
  const browser = await open("run:etl/late", "home");
  await tw.addRun("etl", { runId: "late" });
  await tw.sql(
    "INSERT INTO signal (namespace, key, value, sender) VALUES ('deadline', 'etl/late', '{}', 'test')",
  );
  tw.wakeUps.send("signals");
  await browser.reach(() => browser.of("run:etl/late").some(({ parts }) => parts.includes("deadlines")));
  await browser.reach(() => browser.of("home").some(({ parts }) => parts.includes("deadlines")));
});
