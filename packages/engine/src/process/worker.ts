/** `tradewind worker`: runs assignments of the queue executor on this machine. It reaches the API and Redis only. */
import { hostname } from "node:os";
import { BundleCache } from "../code/bundle-cache.ts";
import { LocalExecutor } from "../execute/local/local-executor.ts";
import { QueueConsumer } from "../execute/queue/queue-consumer.ts";
import { fetchRemoteBundle } from "../execute/worker/bundle-fetch.ts";
import { ExecutionClient } from "../execute/worker/execution-client.ts";
import { RemoteLogs } from "../execute/worker/remote-logs.ts";
import { RemoteOutputs } from "../execute/worker/remote-outputs.ts";
import type { Repeats } from "../execute/worker/repeated-call.ts";
import { Worker } from "../execute/worker/worker.ts";
import { WorkerCalls } from "../execute/worker/worker-calls.ts";
import { cleanScratch } from "../output/output-retention.ts";
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
/** Longer than any lease: an API that is away for that long gets neither the log nor the end. */
const LOG_PATIENCE_MS = 600_000;

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
  const repeats: Repeats = {
    isWanted: () => worker.isWanted,
    onRetry: (error) => logger.debug("call repeated", { error: error.message }),
  };
  const calls: WorkerCalls = new WorkerCalls({ ...repeats, client, worker: () => worker.id });
  await cleanScratch(home.outputs);
  const outputs: RemoteOutputs = new RemoteOutputs({
    client,
    repeats,
    claimOf: (assignment) => worker.claimOf(assignment),
    folder: home.outputs,
  });
  const bundles = new BundleCache(home.bundles, (hash) => fetchRemoteBundle(client, hash, repeats), [
    process.cwd(),
  ]);
  const executor = new LocalExecutor({
    parallelism: start.slots,
    graceMs: config.stopGraceMs,
    answer: (of, ask, agoMs) => calls.request(worker.claimOf(of.id), ask, agoMs),
    bundles,
    outputs,
    logs: new RemoteLogs({ calls, claimOf: (key) => worker.claimOfLog(key) }),
    // The API does not accept the log of an attempt that has ended.
    logPatienceMs: LOG_PATIENCE_MS,
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
    onRegistered: ({ outputLimits }) => {
      outputs.limits = outputLimits;
    },
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
