/** `tradewind worker`: runs assignments of the queue executor on this machine. It reaches the API and Redis only. */
import { hostname } from "node:os";
import { QueueConsumer } from "../execute/queue/queue-consumer.ts";
import type { Config } from "../service/config.ts";
import { createLogger } from "../service/logger.ts";
import type { DrainingProcess } from "./parts/service-parts.ts";
import { createWorker, WORKER_DRAIN_MS } from "./parts/worker-parts.ts";

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

/** `finished` resolves when a user has removed the worker. */
export async function startWorker(
  config: Config,
  start: WorkerStart,
): Promise<DrainingProcess & { readonly finished: Promise<void> }> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const removed = Promise.withResolvers<void>();
  const { client, worker } = await createWorker(config, logger, {
    ...start,
    name: start.name ?? `${hostname()}-${process.pid}`,
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
    isReady: () => worker.isReady(),
    stop: async () => {
      await consumer.pause();
      await Promise.race([worker.drain(config.drainMs ?? WORKER_DRAIN_MS), ended.promise]);
      await worker.stop(config.stopGraceMs);
      client.close();
    },
    endDrain: () => {
      ended.resolve();
      return true;
    },
  };
}
