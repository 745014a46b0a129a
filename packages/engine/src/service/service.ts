import { EngineError, messageOf } from "./errors.ts";
import { type Logger, silentLogger } from "./logger.ts";

/** Something that runs until it is stopped. `stop` may be called at any time, more than once, and ends what `start` began. */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  /** Before a stop: takes no further work, and gives what is under way a limited time to end. */
  drain?(): Promise<void>;
  /** Ends a drain that is under way: what still runs is asked to stop. False: there is none. */
  endDrain?(): boolean;
  stop(): Promise<void>;
}

/** Starts in the order given. When one fails, those already started are stopped, last first, and its error is thrown. */
export async function startAll(services: readonly Service[], logger: Logger = silentLogger): Promise<void> {
  const started: Service[] = [];
  for (const service of services) {
    // Counted before it has started: a start that fails halfway may have something to stop too.
    started.push(service);
    try {
      await service.start();
      logger.debug("service started", { service: service.name });
    } catch (error) {
      // An error with a code says all there is to say, to whoever gets it; a stack in the log would only hide that.
      const level = error instanceof EngineError ? "debug" : "error";
      logger[level]("service failed to start", { service: service.name, error });
      await stopAll(started, logger).catch(() => {});
      throw error;
    }
  }
}

/** Stops in reverse order, all of them even when some fail; then throws what failed. */
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
