/**
 * Everything in one process, on one machine: database, DAG processor, scheduler with local executor, triggerer, API. The
 * same parts as in production, joined by function calls where a cluster has wake-ups.
 *
 * Killed at any moment, the next start finds all it needs under the home folder; the embedded PostgreSQL may even
 * have survived and is adopted.
 */
import { rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { requireAddress } from "../api/server/api-server.ts";
import { DagFolder } from "../bundle/dag-files.ts";
import { DagProcessor } from "../bundle/dag-processor.ts";
import { WakeUps } from "../job/wake-up.ts";
import { planNext } from "../model/calendar/planner.ts";
import { SecretBox } from "../secret/secret-box.ts";
import type { Config } from "../service/config.ts";
import { ensureToken, lockHome, openHome } from "../service/home.ts";
import { createLogger } from "../service/logger.ts";
import { startAll } from "../service/service.ts";
import { ensureAdminToken } from "../store/access/tokens.ts";
import { migrate } from "../store/database/migrate.ts";
import { createApi } from "./api.ts";
import { createBackfillHost } from "./backfill.ts";
import { JobHeartbeat } from "./job-heartbeat.ts";
import { createNoticeHost } from "./notices.ts";
import { openDatabase } from "./open-database.ts";
import { createScheduler } from "./scheduler.ts";
import { stopServices } from "./service-parts.ts";
import { createSignalBridge } from "./signal-bridge.ts";
import { createSignalServer } from "./signal-server.ts";
import { warnOfUnreadable } from "./stored-secrets.ts";
import { createTriggerer } from "./triggerer.ts";
import { prepareUserCode } from "./user-code.ts";

/** No other scheduler goes on with its runs: nothing is gained by a longer drain. */
const DRAIN_MS = 5_000;

export interface Standalone {
  readonly url: string;
  readonly token: string;
  /** Calls with the topic of every wake-up, whoever sent it; with "" when some may have been missed. */
  watch(onTopic: (topic: string) => void): Promise<{ close(): Promise<void> }>;
  stop(): Promise<void>;
}

export interface StandaloneStart {
  /** Gives up the start between two of its steps, and undoes what it has done. */
  readonly signal?: AbortSignal;
  /** Called before each step that takes time, with what it does. */
  readonly onStep?: (step: string) => void;
}

export async function startStandalone(
  config: Config,
  { signal, onStep }: StandaloneStart = {},
): Promise<Standalone> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  // What a user is most likely to have got wrong comes first: before a home is made, a database takes its seconds.
  await new DagFolder(config.dags).requireReadable();
  const home = await openHome(config.home);
  const lock = await lockHome(home);
  const undo: (() => Promise<void>)[] = [() => lock.release()];
  try {
    await requireAddress(config);
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
    const token = await ensureToken(home);
    await ensureAdminToken(database, token);
    const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
    await warnOfUnreadable({ database, logger, secretBox });
    const wakeUps = new WakeUps(database);
    undo.push(() => wakeUps.close());
    const drained = { ...config, drainMs: config.drainMs ?? DRAIN_MS };
    const parts = { config: drained, database, home, logger, secretBox, wakeUps, user };
    const scheduler = createScheduler(parts);
    const triggererDatabase = connect("tradewind triggerer");
    undo.push(() => triggererDatabase.close());
    const triggerer = createTriggerer({ ...parts, database: triggererDatabase });
    const apiDatabase = connect("tradewind api");
    undo.push(() => apiDatabase.close());
    const { api, close, signals } = await createApi({ ...parts, database: apiDatabase });
    undo.push(close);
    const bridged = await createSignalBridge(parts);
    if (bridged) undo.push(() => bridged.close());
    const processor = new DagProcessor({
      database,
      folder: config.dags,
      logger: logger.child({ component: "dag-processor" }),
      plan: planNext,
      isPausedAtCreation: false,
      onChange: () => wakeUps.send("dags"),
      ledgerPath: join(home.path, "dag-files.json"),
      user,
    });
    const services = [
      api,
      ...(await createSignalServer({ config, database: apiDatabase, logger, signals })),
      scheduler,
      createBackfillHost(parts),
      createNoticeHost(parts, scheduler),
      triggerer,
      processor,
      ...(bridged ? [bridged.bridge] : []),
      new JobHeartbeat("dag_processor", database, logger),
      new JobHeartbeat("api", database, logger),
    ];
    await startAll(services, logger);
    undo.push(() => stopServices(services, parts));
    signal?.throwIfAborted();
    await lock.describe({ url: api.url });
    const address = join(home.path, "standalone.json");
    await writeFile(
      address,
      JSON.stringify({
        url: api.url,
        pid: process.pid,
        outputStore: config.outputStore,
        dags: resolve(config.dags),
      }),
    );
    undo.push(() => rm(address, { force: true }));
    return { url: api.url, token, watch: (onTopic) => watch(wakeUps, onTopic), stop: () => unwind(undo) };
  } catch (error) {
    await unwind(undo).catch(() => {});
    throw error;
  }
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

/** In reverse order, each step even if a former one failed. */
async function unwind(steps: (() => Promise<void>)[]): Promise<void> {
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
