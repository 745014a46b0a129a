/**
 * Everything in one process, on one machine: database, DAG processor, scheduler with local executor, triggerer, API. The
 * same parts as in production, connected by function calls where a cluster has wake-ups.
 *
 * It may be killed at any moment: the next start finds everything under the home folder. An embedded PostgreSQL that
 * survived is adopted.
 */
import { rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type ApiServer, requireAddress } from "../api/server/api-server.ts";
import { DagFolder } from "../bundle/dag-files.ts";
import { WakeUps } from "../job/wake-up.ts";
import { SecretBox } from "../secret/secret-box.ts";
import type { Config } from "../service/config.ts";
import { ensureToken, lockHome, openHome } from "../service/home.ts";
import { createLogger } from "../service/logger.ts";
import { type Service, startAll } from "../service/service.ts";
import { ensureAdminToken } from "../store/access/tokens.ts";
import { migrate } from "../store/database/migrate.ts";
import { createApi } from "./api.ts";
import { createBackfillHost } from "./backfill.ts";
import { createDagProcessor } from "./dag-processor.ts";
import { createNoticeHost } from "./notices.ts";
import { JobHeartbeat } from "./parts/job-heartbeat.ts";
import { openLogs } from "./parts/log-store.ts";
import { type OpenedDatabase, openDatabase } from "./parts/open-database.ts";
import { type ServiceParts, stopServices } from "./parts/service-parts.ts";
import { warnOfUnreadable } from "./parts/stored-secrets.ts";
import { prepareUserCode } from "./parts/user-code.ts";
import { createRunDriver } from "./run-driver.ts";
import { createScheduler } from "./scheduler.ts";
import { createSignalBridge } from "./signal-bridge.ts";
import { createSignalServer } from "./signal-server.ts";
import { createTriggerer } from "./triggerer.ts";

/** No other scheduler continues its runs, so a longer drain has no benefit. */
const DRAIN_MS = 5_000;

export interface Standalone {
  readonly url: string;
  readonly token: string;
  /** Calls with the topic of every wake-up of any process; with "" if some may have been missed. */
  watch(onTopic: (topic: string) => void): Promise<{ close(): Promise<void> }>;
  stop(): Promise<void>;
}

export interface StandaloneStart {
  /** Cancels the start between two of its steps, and undoes the completed steps. */
  readonly signal?: AbortSignal;
  /** Called before each slow step, with its description. */
  readonly onStep?: (step: string) => void;
}

/** The steps that undo the start, in the order of the start. */
type Undo = (() => Promise<void>)[];

export async function startStandalone(config: Config, start: StandaloneStart = {}): Promise<Standalone> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  // The most likely mistake is checked first, before the home is created and the database takes seconds to start.
  await new DagFolder(config.dags).requireReadable();
  const home = await openHome(config.home);
  const lock = await lockHome(home);
  const undo: Undo = [() => lock.release()];
  try {
    await requireAddress(config);
    const { parts, connect } = await openParts({ config, home, logger }, start, undo);
    const { database, wakeUps } = parts;
    const token = await ensureToken(home);
    await ensureAdminToken(database, token);
    const { api, services } = await createServices(parts, connect, undo);
    await startAll(services, logger);
    undo.push(() => stopServices(services, parts));
    start.signal?.throwIfAborted();
    await lock.describe({ url: api.url });
    undo.push(await publishAddress(parts, api.url));
    return { url: api.url, token, watch: (onTopic) => watch(wakeUps, onTopic), stop: () => unwind(undo) };
  } catch (error) {
    await unwind(undo).catch(() => {});
    throw error;
  }
}

/** Opens the database, updates its schema, and loads the parts that all services share. */
async function openParts(
  { config, home, logger }: Pick<ServiceParts, "config" | "home" | "logger">,
  { signal, onStep }: StandaloneStart,
  undo: Undo,
): Promise<{ readonly parts: ServiceParts; readonly connect: OpenedDatabase["connect"] }> {
  const user = await prepareUserCode({ config, home, logger, dags: config.dags });
  signal?.throwIfAborted();
  onStep?.("Starting the database");
  const { database, connect, stop } = await openDatabase(config, {
    applicationName: "tradewind standalone",
    supervise: logger.child({ component: "postgres" }),
    wait: { logger, signal },
  });
  undo.push(stop);
  signal?.throwIfAborted();
  onStep?.("Checking the schema");
  await migrate(database);
  signal?.throwIfAborted();
  onStep?.("Starting the services");
  const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
  await warnOfUnreadable({ database, logger, secretBox });
  const wakeUps = new WakeUps(database);
  undo.push(() => wakeUps.close());
  const logs = await openLogs(config);
  undo.push(() => logs.close());
  const drained = { ...config, drainMs: config.drainMs ?? DRAIN_MS };
  return { parts: { config: drained, database, home, logger, logs, secretBox, wakeUps, user }, connect };
}

/** Creates all services in the order of their start. Triggerer and API have connections of their own. */
async function createServices(
  parts: ServiceParts,
  connect: OpenedDatabase["connect"],
  undo: Undo,
): Promise<{ readonly api: ApiServer; readonly services: readonly Service[] }> {
  const { config, database, logger, wakeUps } = parts;
  const driver = createRunDriver(parts);
  // After the services, which are stopped before.
  undo.push(() => driver.stop());
  const scheduler = createScheduler({ ...parts, driver });
  const triggererDatabase = connect("tradewind triggerer");
  undo.push(() => triggererDatabase.close());
  const triggerer = createTriggerer({ ...parts, database: triggererDatabase });
  const apiDatabase = connect("tradewind api");
  undo.push(() => apiDatabase.close());
  const { api, close, signals } = await createApi({ ...parts, database: apiDatabase });
  undo.push(close);
  const bridged = await createSignalBridge(parts);
  if (bridged) undo.push(() => bridged.close());
  const processor = createDagProcessor(parts, {
    isPausedAtCreation: false,
    // The terminal of a standalone shows import errors itself.
    failureLevel: config.logFormat === "pretty" ? "debug" : "warn",
    onChange: () => wakeUps.send("dags"),
  });
  const services = [
    api,
    ...(await createSignalServer({ config, database: apiDatabase, logger, signals })),
    scheduler,
    createBackfillHost(parts, { driver }),
    createNoticeHost(parts, scheduler),
    triggerer,
    processor,
    ...(bridged ? [bridged.bridge] : []),
    new JobHeartbeat("dag_processor", database, logger),
    new JobHeartbeat("api", database, logger),
  ];
  return { api, services };
}

/** Writes the file by which other commands find this process. Returns its removal. */
async function publishAddress({ config, home }: ServiceParts, url: string): Promise<() => Promise<void>> {
  const path = join(home.path, "standalone.json");
  const { logStore, outputStore } = config;
  const dags = resolve(config.dags);
  await writeFile(path, JSON.stringify({ url, pid: process.pid, outputStore, logStore, dags }));
  return () => rm(path, { force: true });
}

async function watch(
  wakeUps: WakeUps,
  onTopic: (topic: string) => void,
): Promise<{ close(): Promise<void> }> {
  const offLocal = wakeUps.onLocal(onTopic);
  try {
    const listening = await wakeUps.listen(onTopic);
    return {
      close: async () => {
        offLocal();
        await listening.close();
      },
    };
  } catch (error) {
    offLocal();
    throw error;
  }
}

/** In reverse order, each step even if an earlier one failed. */
async function unwind(steps: Undo): Promise<void> {
  let failure: unknown;
  for (let step = steps.pop(); step; step = steps.pop()) {
    try {
      await step();
    } catch (error) {
      failure ??= error;
    }
  }
  if (failure !== undefined) throw failure;
}
