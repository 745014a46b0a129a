import { EngineError, messageOf } from "./errors.ts";
import { type Logger, silentLogger } from "./logger.ts";

/** A unit that runs until it is stopped. `stop` may be called at any time, more than once, and ends everything `start` began. */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  /** Before a stop: accepts no further work, and gives active work a limited time to end. */
  drain?(): Promise<void>;
  /** Ends a drain in progress: running work receives a stop request. False if there is no drain. */
  endDrain?(): boolean;
  stop(): Promise<void>;
}

/** Starts in the given order. If one fails, the started services are stopped, last first, and its error is thrown. */
export async function startAll(services: readonly Service[], logger: Logger = silentLogger): Promise<void> {
  const started: Service[] = [];
  for (const service of services) {
    // Added before it has started: a start that fails halfway may have something to stop too.
    started.push(service);
    try {
      await service.start();
      logger.debug("service started", { service: service.name });
    } catch (error) {
      // An error with a code is complete without a stack.
      const level = error instanceof EngineError ? "debug" : "error";
      logger[level]("service failed to start", { service: service.name, error });
      await stopAll(started, logger).catch(() => {});
      throw error;
    }
  }
}

/** Stops in reverse order, all of them even if some fail; then throws the failures. */
export async function stopAll(services: readonly Service[], logger: Logger = silentLogger): Promise<void> {
  const failures: unknown[] = [];
  for (const service of services.toReversed()) {
    try {
      await service.stop();
      logger.debug("service stopped", { service: service.name });
    } catch (error) {
      logger.error("service failed to stop", { service: service.name, error });
      failures.push(error);
    }
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, failures.map(messageOf).join("; "));
}
