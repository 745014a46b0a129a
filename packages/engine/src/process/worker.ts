/** `tradewind worker`: runs assignments of the queue executor on this machine. It reaches the API and Redis only. */
import { hostname } from "node:os";
import { BundleCache } from "../code/bundle-cache.ts";
import { LocalExecutor } from "../execute/local/local-executor.ts";
import { QueueConsumer } from "../execute/queue/queue-consumer.ts";
import { fetchRemoteBundle } from "../execute/worker/bundle-fetch.ts";
import { ExecutionClient } from "../execute/worker/execution-client.ts";
import { Worker } from "../execute/worker/worker.ts";
import { WorkerCalls } from "../execute/worker/worker-calls.ts";
import type { Config } from "../service/config.ts";
import { openHome } from "../service/home.ts";
import { createLogger } from "../service/logger.ts";
import { VERSION } from "../version.ts";
import type { DrainingProcess } from "./service-parts.ts";
import { prepareUserCode } from "./user-code.ts";

export interface WorkerStart {
  /** The address of the API, and a token of the role worker. */
  readonly url: string;
  readonly token: string;
  readonly ca?: string | undefined;
  /** The address of Redis. */
  readonly redisUrl: string;
  readonly queues: readonly string[];
  readonly slots: number;
  readonly name?: string | undefined;
  readonly labels?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** As of a scheduler: with the grace period it fits the 30 s of Kubernetes between SIGTERM and SIGKILL. */
const DRAIN_MS = 20_000;

/** `finished` resolves when a user has removed the worker. */
export async function startWorker(
  config: Config,
  start: WorkerStart,
): Promise<DrainingProcess & { readonly finished: Promise<void> }> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const removed = Promise.withResolvers<void>();
  const home = await openHome(config.home);
  const user = await prepareUserCode({ config, home, logger });
  const client = new ExecutionClient(start);
  const calls: WorkerCalls = new WorkerCalls({
    client,
    worker: () => worker.id,
    isWanted: () => worker.isWanted,
    onRetry: (error) => logger.debug("call repeated", { error: error.message }),
  });
  const bundles = new BundleCache(home.bundles, (hash) => fetchRemoteBundle(client, hash), [process.cwd()]);
  const executor = new LocalExecutor({
    parallelism: start.slots,
    graceMs: config.stopGraceMs,
    answer: (of, ask, agoMs) => calls.request(worker.claimOf(of.id), ask, agoMs),
    bundles,
    logs: { open: () => ({ append: () => {}, close: async () => {} }) },
    logger: logger.child({ component: "executor" }),
    user,
  });
  bundles.onOtherPackages(() => executor.replaceUsed());
  const worker: Worker = new Worker({
    client,
    calls,
    executor,
    identity: {
      name: start.name ?? `${hostname()}-${process.pid}`,
      hostname: hostname(),
      pid: process.pid,
      version: VERSION,
      slots: start.slots,
      queues: start.queues,
      labels: start.labels ?? {},
    },
    logger: logger.child({ component: "worker" }),
    onRemoved: () => removed.resolve(),
    onDraining: (isDraining) => void (isDraining ? consumer.pause() : consumer.resume()),
  });
  const consumer = new QueueConsumer({
    url: start.redisUrl,
    queues: start.queues,
    room: () => worker.room,
    logger: logger.child({ component: "queue" }),
    run: (id) => worker.run(id),
  });
  await worker.start(start.signal);
  consumer.start();
  const ended = Promise.withResolvers<void>();
  return {
    finished: removed.promise,
    stop: async () => {
      await consumer.pause();
      await Promise.race([worker.drain(config.drainMs ?? DRAIN_MS), ended.promise]);
      await worker.stop(config.stopGraceMs);
      client.close();
    },
    endDrain: () => {
      ended.resolve();
      return true;
    },
  };
}
