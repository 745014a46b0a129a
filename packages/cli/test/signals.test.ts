/** Commands about signals, against a real server; `serve` as a separate process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SignalClient } from "@tradewind/engine/signals";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { type Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { pgProxy } from "../../engine/test/support/pg-proxy.ts";
import { testDatabase } from "../../engine/test/support/test-database.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));

let server: Installation;
let tw: ServedInstallation["tw"];

beforeAll(async () => {
  ({ server, tw } = await servedInstallation());
});

describe("signals", () => {
  it("sends signals, once per idempotency key, and lists them", async () => {
    const sent = await tw("signals", "send", "model.updated", '{"accuracy":0.9}');
    expect(sent).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/Signal model.updated sent: version \d+/),
    });
    const keyed = ["signals", "send", "once", "--idempotency-key", "k1", "--json"];
    const first = JSON.parse((await tw(...keyed)).stdout) as { version: number };
    expect(JSON.parse((await tw(...keyed)).stdout)).toMatchObject({ version: first.version });
    await tw("signals", "send", "model.updated", "7", "--namespace", "team", "--sender", "job");
    const { stdout } = await tw("signals", "list", "*");
    expect(stdout).toMatch(/^VERSION +NAMESPACE +KEY +SENT +SENDER +VALUE$/m);
    expect(stdout).toMatch(/^ *\d+ +default +model.updated +\d+ s ago +admin +\{"accuracy":0.9\}$/m);
    expect(stdout.match(/once/g)).toHaveLength(1);
    const team = JSON.parse((await tw("signals", "list", "model.*", "--namespace", "team", "--json")).stdout);
    expect(team).toMatchObject([{ key: "model.updated", value: 7, sender: "job" }]);
    const none = await tw("signals", "list", "--since", "2999-01-01");
    expect(none).toMatchObject({ code: 0, stdout: "", stderr: expect.stringContaining("No signals match") });
    for (let n = 0; n < 3; n++) await tw("signals", "send", "n", String(n));
    const two = JSON.parse((await tw("signals", "list", "n", "--limit", "2", "--json")).stdout) as {
      value: number;
    }[];
    expect(two.map(({ value }) => value)).toEqual([1, 2]);
  });

  it("shows what a signal is from and what it has caused", async () => {
    const sent = JSON.parse((await tw("signals", "send", "order.paid", '{"order":7}', "--json")).stdout);
    const version = String((sent as { version: number }).version);
    const alone = await tw("signals", "show", version);
    expect(alone).toMatchObject({ code: 0, stderr: expect.stringContaining("No effect") });
    expect(alone.stdout).toMatch(/^from +client admin$/m);
    await server.addDag(manifestOf("shop", [{ taskId: "book" }]));
    await server.addRun("shop", { runId: "monday", state: "running" });
    await server.sql(
      `INSERT INTO signal_effect (signal_id, dag_run_id, task_id, try_number, kind)
       SELECT $1, id, 'book', 2, 'start' FROM dag_run`,
      [version],
    );
    const { stdout } = await tw("signals", "show", version);
    expect(stdout).toMatch(/^ *AFTER +EFFECT +DAG +RUN +TASK +TRY +STATE$/m);
    expect(stdout).toMatch(/started task +shop +monday +book +2 +\S+$/m);
    expect((await tw("signals", "show", "999999999")).code).toBe(3);
  });

  it("rejects invalid signals with a reason", async () => {
    expect(await tw("signals", "send", "k", "{")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("not valid JSON"),
    });
    expect(await tw("signals", "send", "a*")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the key "a*" must have'),
    });
  });

  it("follows signals from a position", async () => {
    await tw("signals", "send", "live", "1");
    const [first] = JSON.parse((await tw("signals", "list", "live", "--json")).stdout) as {
      version: number;
      position: string;
    }[];
    await tw("signals", "send", "live", "2");
    const values = async (from: string, count: number) => {
      const { code, stdout } = await tw(
        "signals",
        "listen",
        "li*",
        "--from",
        from,
        "--count",
        String(count),
        "--json",
      );
      expect(code).toBe(0);
      return stdout
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { value: number }).value);
    };
    expect(await values("start", 2)).toEqual([1, 2]);
    expect(await values(String(first!.version), 1)).toEqual([2]);
    expect(await values(first!.position, 1)).toEqual([2]);
    expect(await values("2020-01-01", 2)).toEqual([1, 2]);
    const { stdout } = await tw("signals", "listen", "live", "--from", "start", "--count", "1");
    expect(stdout).toMatch(/^\d{4}-\d\d-\d\d \S+ {2}live {2}\d+ {2}1$/m);
    expect(await tw("signals", "listen", "live", "--from", "yesterday")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--from.*yesterday.*Give start, now, a version/s),
    });
  });

  it("shows listeners, and retries and deletes dead letters", async () => {
    await server.sql(
      `INSERT INTO signal_listener (name, tx, signal_id, filter, seen_at)
       VALUES ('sink', '1', 0, '{"namespace":"*","keys":["a","b.*"],"sender":null}', now() - interval '3 hours')`,
    );
    await server.sql(
      `INSERT INTO signal_dead_letter (listener, signal_id, tx, namespace, key, value, sender, sent_at, error, attempts)
       SELECT 'sink', i, '5', 'default', 'mail', '1', 'ada', now(), 'no such address', 5 FROM generate_series(1, 2) AS i`,
    );
    // Like the listener of the scheduler: without a host name.
    await server.sql(
      `INSERT INTO signal_listener (name, tx, signal_id, filter, holder, lease_until)
       VALUES ('dag:feed', '1', 0, '{"namespace":"default","keys":["a"],"sender":null}', gen_random_uuid(), now() + interval '1 hour')`,
    );
    const { stdout } = await tw("signals", "listeners", "list");
    expect(stdout).toMatch(/^dag:feed +a +yes +\d+ +0 +0 +0$/m);
    await server.sql("DELETE FROM signal_listener WHERE name = 'dag:feed'");
    expect(stdout).toMatch(/^sink +\*: a, b\.\* +last 3 h ago +\d+ +0 +0 +2$/m);
    const letters = await tw("signals", "dead-letters", "list", "--listener", "sink");
    expect(letters.stdout).toMatch(/^ *\d+ +sink +mail +1 +\d+ s ago +5 +no such address$/m);
    const [one, two] = JSON.parse((await tw("signals", "dead-letters", "list", "--json")).stdout) as {
      id: number;
    }[];
    expect((await tw("signals", "dead-letters", "retry", String(one!.id))).stderr).toContain(
      "Listener sink retries mail",
    );
    expect((await tw("signals", "dead-letters", "list")).stdout).toContain("retry pending");
    expect((await tw("signals", "dead-letters", "delete", String(two!.id), "--yes")).code).toBe(0);
    expect((await tw("signals", "dead-letters", "delete", String(two!.id), "--yes")).code).toBe(3);
    expect((await tw("signals", "listeners", "delete", "sink", "--yes")).stderr).toContain("deleted");
    expect((await tw("signals", "listeners", "list")).stderr).toContain("No named listeners");
  });
});

/** `signals serve` as a process, and a client. */
async function serveSignals(databaseUrl: string, env: NodeJS.ProcessEnv = {}) {
  const home = await mkdtemp(join(tmpdir(), "tw-signals-"));
  const child = spawn(
    process.execPath,
    ["--conditions=source", MAIN, "signals", "serve", "--port", "0", "--home", home],
    {
      env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl, ...env },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await rm(home, { recursive: true, force: true });
  });
  let said = "";
  const address = await new Promise<string>((resolve, reject) => {
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const found = /Serving signals on (grpc:\S+)\./.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", () => reject(new Error(said)));
  });
  const token = (await readFile(join(home, "token"), "utf8")).trim();
  return { child, client: SignalClient.connect(address, { token }) };
}

it("serves gRPC with the token of its home, and stops gracefully", async () => {
  const { child, client } = await serveSignals((await testDatabase()).url);
  await client.send([{ key: "k", value: [1] }]);
  expect((await client.list({})).signals).toMatchObject([{ key: "k", value: [1], sender: "admin" }]);
  await client.close();
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

it("exits soon after SIGTERM although its database connections are half-open", async () => {
  const proxy = await pgProxy((await testDatabase()).url);
  onTestFinished(() => proxy.close());
  const { child, client } = await serveSignals(proxy.url, { TRADEWIND_STOP_GRACE_MS: "1000" });
  await client.listen(null, {}, { process: () => {} });
  proxy.set({ kind: "half-open" });
  const call = client.list({}).catch(() => {});
  await vi.waitFor(() => expect(proxy.withheld).toBeGreaterThan(0), { timeout: 10_000, interval: 5 });
  const began = performance.now();
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
  expect(performance.now() - began).toBeLessThan(8_000);
  await Promise.all([call, client.close()]);
});
