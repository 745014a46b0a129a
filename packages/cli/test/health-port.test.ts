/** The probes of services, asked while they wait for their database or API, run, and lose it. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { freePort } from "../../engine/test/support/free-port.ts";
import { pgProxy } from "../../engine/test/support/pg-proxy.ts";
import { testDatabase } from "../../engine/test/support/test-database.ts";
import { WorkerRig } from "../../engine/test/support/worker-rig.ts";
import { spawnCli } from "./support/standalone-process.ts";

interface Probed {
  readonly child: ChildProcess;
  said(): string;
  status(path: string): Promise<number | null>;
  read(path: string): Promise<Response>;
}

async function start(args: readonly string[], env: NodeJS.ProcessEnv, given?: number): Promise<Probed> {
  const port = given ?? (await freePort());
  const folder = await mkdtemp(join(tmpdir(), "tradewind-health-"));
  await mkdir(join(folder, "dags"));
  const child = spawnCli(
    [...args, "--home", join(folder, "home")],
    { ...env, TRADEWIND_HEALTH_PORT: `${port}` },
    folder,
  );
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  onTestFinished(async () => {
    if (child.exitCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    await rm(folder, { recursive: true });
  });
  return {
    child,
    said: () => said,
    read: (path) => fetch(`http://127.0.0.1:${port}${path}`),
    status: (path) =>
      fetch(`http://127.0.0.1:${port}${path}`).then(
        ({ status }) => status,
        () => null,
      ),
  };
}

const becomes = { timeout: 60_000, interval: 50 };

it.each(["scheduler", "triggerer", "dag-processor"])(
  "tells whether a %s holds its lease",
  async (service) => {
    const { url } = await testDatabase();
    const proxy = await pgProxy(url);
    onTestFinished(() => proxy.close());
    proxy.set({ kind: "cut" });
    const { said, status } = await start([service], { DATABASE_URL: proxy.url });
    await expect.poll(said, becomes).toContain("waiting for the database");
    expect([await status("/live"), await status("/ready"), await status("/other")]).toEqual([200, 503, 404]);
    proxy.set({ kind: "pass" });
    await expect.poll(() => status("/ready"), becomes).toBe(200);
    // Its lease is long.
    if (service === "dag-processor") return;
    proxy.set({ kind: "cut" });
    await expect.poll(() => status("/ready"), becomes).toBe(503);
    expect(await status("/live")).toBe(200);
    proxy.set({ kind: "pass" });
    await expect.poll(() => status("/ready"), becomes).toBe(200);
  },
  120_000,
);

it("tells whether a worker holds its lease, and serves the metrics of its process", async () => {
  const on = await WorkerRig.open();
  const { read, status } = await start(["worker"], {
    TRADEWIND_URL: on.proxy.url,
    TRADEWIND_TOKEN: on.workerToken,
    REDIS_URL: on.redisUrl,
  });
  await expect.poll(() => status("/ready"), becomes).toBe(200);
  const metrics = await read("/metrics");
  expect(metrics.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(await metrics.text()).toMatch(/^process_cpu_seconds_total [\d.]+$/m);
  await on.stopApi();
  await expect.poll(() => status("/ready"), becomes).toBe(503);
  expect(await status("/live")).toBe(200);
  await on.startApi();
  await expect.poll(() => status("/ready"), becomes).toBe(200);
}, 120_000);

it("does not start on a port that is in use", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const env = {
    TRADEWIND_URL: "http://127.0.0.1:1",
    TRADEWIND_TOKEN: "tw_",
    REDIS_URL: "redis://127.0.0.1:1",
  };
  const { child, said } = await start(["worker"], env, port);
  await expect.poll(() => child.exitCode, becomes).not.toBeNull();
  expect(said()).toContain(`TRADEWIND_HEALTH_PORT: cannot listen on 127.0.0.1:${port} (EADDRINUSE)`);
}, 60_000);
