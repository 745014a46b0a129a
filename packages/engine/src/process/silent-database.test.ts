import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { pgProxy } from "../../test/support/pg-proxy.ts";
import { testDatabase } from "../../test/support/test-database.ts";
import { type Config, resolveConfig } from "../service/config.ts";
import { Collector } from "../signal/conformance/conformance.ts";
import { SignalClient } from "../signal/grpc/client.ts";
import { sendSignals } from "../store/signal/signals.ts";
import { startApi } from "./api.ts";
import { startBackfillRunner } from "./backfill.ts";
import { startDagProcessor } from "./dag-processor.ts";
import { startScheduler } from "./scheduler.ts";
import { startSignalServer } from "./signal-server.ts";
import { startTriggerer } from "./triggerer.ts";

const SERVICES = {
  startApi,
  startBackfillRunner,
  startDagProcessor,
  startScheduler,
  startSignalServer,
  startTriggerer,
};

/** The database behind a proxy, and the settings of a service that uses it. */
async function behindProxy() {
  const { db, url } = await testDatabase();
  const proxy = await pgProxy(url);
  const root = await mkdtemp(join(tmpdir(), "tradewind-silent-"));
  onTestFinished(async () => {
    proxy.set({ kind: "cut" });
    await proxy.close();
    await rm(root, { recursive: true, force: true });
  });
  await mkdir(join(root, "dags"));
  const config = (home: string) =>
    resolveConfig(
      {
        ...{ home: join(root, home), dags: join(root, "dags") },
        ...{ port: 0, signalsPort: 0, databaseUrl: proxy.url, logLevel: "error" },
      },
      { TRADEWIND_STOP_GRACE_MS: "1000" },
    );
  return { config, db, proxy };
}

/** The signal server with two listening clients, one of them named, that have received a signal. */
async function signalServer(config: Config) {
  const server = await startSignalServer(config);
  const token = (await readFile(join(config.home, "token"), "utf8")).trim();
  const client = SignalClient.connect(server.url, { token });
  onTestFinished(() => client.close());
  const listeners = [new Collector(), new Collector()] as const;
  await client.listen("mailer", { key: "k" }, listeners[0]);
  await client.listen(null, { key: "k" }, listeners[1]);
  const received = (value: number) =>
    vi.waitFor(
      () => {
        for (const { values } of listeners) expect(values).toContain(value);
      },
      { timeout: 30_000, interval: 20 },
    );
  await client.send([{ key: "k", value: 1 }]);
  await received(1);
  return { client, received, stop: () => server.stop() };
}

it("the signal server serves again within 10 s after its connections become half-open", async () => {
  const { config, db, proxy } = await behindProxy();
  const { client, received, stop } = await signalServer(config("signals"));
  const seconds = async (work: Promise<unknown>) => {
    const began = performance.now();
    await work;
    return (performance.now() - began) / 1_000;
  };
  proxy.set({ kind: "half-open" });
  // Another process stores a signal directly, without a wake-up for the server.
  await sendSignals(db, [{ namespace: "default", key: "k", value: 2, sender: "test" }]);
  const took = await Promise.all([seconds(received(2)), seconds(client.send([{ key: "k", value: 3 }]))]);
  expect(Math.max(...took)).toBeLessThan(10);
  await received(3);
  expect((await client.list({ key: "k" })).signals.map(({ value }) => value)).toEqual([1, 2, 3]);
  await stop();
});

it.each(["hang", "half-open"] as const)(
  "the signal server stops within its grace period with calls in progress: %s",
  async (kind) => {
    const { config, proxy } = await behindProxy();
    const { client, stop } = await signalServer(config("signals"));
    proxy.set({ kind });
    const calls = Promise.allSettled([client.list({ key: "k" }), client.position("start")]);
    await vi.waitFor(() => expect(proxy.withheld).toBeGreaterThanOrEqual(2), {
      timeout: 10_000,
      interval: 5,
    });
    const began = performance.now();
    await stop();
    expect(performance.now() - began).toBeLessThan(8_000);
    await calls;
  },
);

/** All at once: each takes its full time to notice that the database is silent. */
it.each(["hang", "half-open"] as const)(
  "every service stops within its grace period when the database is silent: %s",
  async (kind) => {
    const { config, proxy } = await behindProxy();
    const running = [];
    for (const [name, start] of Object.entries(SERVICES))
      running.push({ name, ...(await start(config(name))) });
    proxy.set({ kind });
    const late = await Promise.all(
      running.map(async ({ name, stop }) => {
        const began = performance.now();
        await stop().catch(() => {});
        return { name, ms: Math.round(performance.now() - began) };
      }),
    );
    expect(late.filter(({ ms }) => ms > 8_000)).toEqual([]);
  },
);
