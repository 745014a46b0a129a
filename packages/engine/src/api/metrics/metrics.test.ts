/** `GET /metrics`: its values, who may read it, and how often it reads the database. */
import { randomBytes } from "node:crypto";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { addAttempt, addWorker } from "../../../test/api/remote.ts";
import { createToken, type TokenRole } from "../../store/access/tokens.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
});

async function newToken(role: TokenRole): Promise<string> {
  const token = `tw_${randomBytes(32).toString("base64url")}`;
  await createToken(tw.database, { name: role, token, role, expiresAt: null });
  return token;
}

const scrape = (token = tw.token, of = tw) =>
  of.app.inject({ url: "/metrics", headers: { authorization: `Bearer ${token}` } });

/** The values of a fresh reading, by metric with labels. */
async function values(of: Installation): Promise<Record<string, number>> {
  const { body, statusCode } = await scrape(of.token, of);
  expect(statusCode, body).toBe(200);
  const lines = body.split("\n").filter((line) => line.startsWith("tradewind_"));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
  );
}

describe("GET /metrics", () => {
  it("is text for Prometheus, with the installation and the process", async () => {
    const { body, headers, statusCode } = await scrape();
    expect([statusCode, headers["content-type"]]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
    expect(body).toContain('tradewind_info{version="0.1.0-test"} 1\n');
    expect(body).toMatch(/^process_resident_memory_bytes \d+$/m);
    expect(body).toMatch(/^nodejs_eventloop_lag_p99_seconds [\d.e-]+$/m);
    expect(body.endsWith("\n")).toBe(true);
    // Each name is described once.
    const names = [...body.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it("is open for the roles admin and metrics only", async () => {
    const statuses = async (roles: readonly TokenRole[]) =>
      Promise.all(roles.map(async (role) => (await scrape(await newToken(role))).statusCode));
    expect(await statuses(["admin", "metrics", "worker"])).toEqual([200, 200, 403]);
    expect((await tw.app.inject({ url: "/metrics" })).statusCode).toBe(401);
  });

  it("is all that a token of the role metrics opens", async () => {
    const token = await newToken("metrics");
    const { paths } = (await tw.call("GET", "/openapi.json")).json() as {
      paths: Record<string, Record<string, unknown>>;
    };
    const open = ["/api/v2/monitor/health", "/api/v2/version", "/metrics", "/ui/session"];
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      open.includes(path) ? [] : Object.keys(methods).map((method) => [method.toUpperCase(), path] as const),
    );
    expect(routes.length).toBeGreaterThan(100);
    for (const [method, path] of routes) {
      const url = path.replaceAll(/\{[^}]+\}/g, "1");
      const response = await tw.app.inject({
        method: method as "GET",
        url,
        headers: { authorization: `Bearer ${token}` },
      });
      expect([method, path, response.statusCode]).toEqual([method, path, 403]);
    }
    const signIn = await tw.app.inject({ method: "POST", url: "/ui/session", payload: { token } });
    expect([signIn.statusCode, signIn.json().code]).toEqual([403, "FORBIDDEN"]);
  });

  it("shows work, services, queues, pools and what failed", async () => {
    const own = await Installation.open();
    await own.addDag(manifestOf("etl", [{ taskId: "a" }, { taskId: "b" }, { taskId: "c" }]));
    const run = await own.addRun("etl", { runId: "r1", state: "running" });
    await own.addInstance(run, "a", { state: "success" });
    await own.addInstance(run, "b", { state: "deferred" });
    await own.addRun("etl", { runId: "r2", state: "queued" });
    await own.addRun("etl", { runId: "r3", state: "success" });
    const worker = await addWorker(own, { queues: ["default", "gpu"] });
    await addAttempt(own, { dagRunId: run, taskId: "c", queue: "gpu", worker });
    const facts = {
      executors: [
        { name: "local", type: "local", slots: 8, active: 3, problem: null },
        { name: "queue", type: "queue", slots: null, active: 1, problem: "Redis does not answer" },
      ],
    };
    for (const text of [
      `INSERT INTO job (kind, hostname, pid, version, lease_until, heartbeat_at, facts)
       VALUES ('scheduler', 'h', 1, '0', now() + interval '1 minute', now() - interval '5 s', '${JSON.stringify(facts)}'),
              ('scheduler', 'h', 2, '0', now() - interval '1 minute', now() - interval '90 s', NULL)`,
      "INSERT INTO pool (name, slots, occupied) VALUES ('p\"q', 4, 6), ('wide', -1, 2), ('@etl/a', 1, 1)",
      "UPDATE dag SET next_run_after = now() - interval '100 s'",
      "UPDATE dag_run SET run_after = now() - interval '200 s' WHERE run_id = 'r2'",
      "INSERT INTO import_error (file, message) VALUES ('x.ts', 'no')",
      `INSERT INTO trigger (fingerprint, kind, args, queue, replicas, wake_at)
       VALUES ('a', 'k', '{}', 'default', 2, now() - interval '1 minute')`,
      `INSERT INTO signal_listener (name, tx, signal_id, holder, lease_until) VALUES ('l', '0', 0, 'h', now() + interval '1 minute')`,
      "INSERT INTO signal (namespace, key, sender, created_at) VALUES ('n', 'k', 's', now() - interval '30 s')",
    ])
      await own.sql(text);
    const found = await values(own);
    expect(found).toMatchObject({
      'tradewind_components{kind="scheduler"}': 1,
      'tradewind_components{kind="worker"}': 1,
      'tradewind_components{kind="triggerer"}': 0,
      'tradewind_component_heartbeat_age_seconds{kind="triggerer"}': 0,
      'tradewind_dag_runs{state="running"}': 1,
      'tradewind_dag_runs{state="queued"}': 1,
      'tradewind_task_instances{state="running"}': 1,
      'tradewind_task_instances{state="deferred"}': 1,
      'tradewind_task_instances{state="queued"}': 0,
      'tradewind_executor_slots{executor="local"}': 8,
      'tradewind_executor_free_slots{executor="local"}': 5,
      'tradewind_executor_tasks{executor="queue"}': 1,
      'tradewind_executor_failing_schedulers{executor="local"}': 0,
      'tradewind_executor_failing_schedulers{executor="queue"}': 1,
      'tradewind_queue_tasks{executor="queue",queue="gpu",state="running"}': 1,
      'tradewind_queue_tasks{executor="queue",queue="gpu",state="waiting"}': 0,
      'tradewind_queue_workers{queue="gpu"}': 1,
      'tradewind_queue_slots{queue="gpu"}': 4,
      'tradewind_queue_free_slots{queue="default"}': 3,
      'tradewind_pool_slots{pool="p\\"q"}': 4,
      'tradewind_pool_occupied_slots{pool="p\\"q"}': 6,
      'tradewind_pool_open_slots{pool="p\\"q"}': 0,
      'tradewind_pool_occupied_slots{pool="wide"}': 2,
      'tradewind_triggers{queue="default"}': 2,
      'tradewind_unclaimed_triggers{queue="default"}': 1,
      tradewind_import_errors: 1,
      tradewind_signal_dead_letters: 0,
      tradewind_dead_deliveries: 0,
    });
    const near = (name: string, seconds: number) => {
      expect(found[name], name).toBeGreaterThanOrEqual(seconds);
      expect(found[name], name).toBeLessThan(seconds + 60);
    };
    near('tradewind_component_heartbeat_age_seconds{kind="scheduler"}', 90);
    near("tradewind_schedule_delay_seconds", 100);
    near("tradewind_run_start_delay_seconds", 200);
    near("tradewind_signal_unread_age_seconds", 30);
    const names = Object.keys(found);
    expect(names.filter((name) => /_slots\{executor="queue"/.test(name))).toEqual([]);
    expect(names.filter((name) => /_(open_)?slots\{pool="wide"|pool="@/.test(name))).toEqual([
      'tradewind_pool_occupied_slots{pool="wide"}',
    ]);
    expect(names.filter((name) => /etl|r1|"l"/.test(name))).toEqual([]);
  });

  it("counts no delay of a paused DAG, and no listener that has gone", async () => {
    const own = await Installation.open();
    await own.addDag(manifestOf("etl", [{ taskId: "a" }]));
    await own.addRun("etl", { runId: "r1", state: "queued" });
    for (const text of [
      "UPDATE dag SET is_paused = true, next_run_after = now() - interval '1 hour'",
      "INSERT INTO signal_listener (name, tx, signal_id) VALUES ('gone', '0', 0)",
      "INSERT INTO signal (namespace, key, sender, created_at) VALUES ('n', 'k', 's', now() - interval '1 hour')",
    ])
      await own.sql(text);
    expect(await values(own)).toMatchObject({
      tradewind_schedule_delay_seconds: 0,
      tradewind_run_start_delay_seconds: 0,
      tradewind_signal_unread_age_seconds: 0,
    });
  });

  it("reads the database once for scrapes at the same time, and again after a failure", async () => {
    const own = await Installation.open();
    const rows = vi.spyOn(own.database, "rows");
    onTestFinished(() => rows.mockRestore());
    const reads = () => rows.mock.calls.filter(([{ name }]) => name === "metrics-active-runs").length;
    await own.sql("ALTER VIEW trigger_depth RENAME TO trigger_depth_away");
    expect((await scrape(own.token, own)).statusCode).toBe(500);
    await own.sql("ALTER VIEW trigger_depth_away RENAME TO trigger_depth");
    expect(reads()).toBe(1);
    const answers = await Promise.all(Array.from({ length: 10 }, () => scrape(own.token, own)));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 200));
    expect(reads()).toBe(2);
  });
});
