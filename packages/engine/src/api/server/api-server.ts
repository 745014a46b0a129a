/** The API as a service: listens, deletes old idempotency keys, and closes without waiting for streams. */
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { EngineError, messageOf } from "../../service/errors.ts";
import type { Service } from "../../service/service.ts";
import { purgeKeys } from "../../store/access/idempotency.ts";
import { createApi } from "./api.ts";
import type { ApiOptions } from "./context.ts";

const TIDY_MS = 3_600_000;
const GRACE_MS = 5_000;

export class ApiServer implements Service {
  readonly name = "api";
  readonly #options: ApiOptions;
  #app: FastifyInstance | null = null;
  #tidy: NodeJS.Timeout | null = null;
  #url: string | null = null;

  constructor(options: ApiOptions) {
    this.#options = options;
  }

  /** The address it listens on, with the actual port. */
  get url(): string {
    if (this.#url === null)
      throw new EngineError("API_NOT_STARTED", "The API has no address before it is started.");
    return this.#url;
  }

  async start(): Promise<void> {
    const { config, database, logger } = this.#options;
    const app = await createApi(this.#options);
    try {
      this.#url = await app.listen({ host: config.host, port: config.port });
    } catch (error) {
      await app.close();
      throw listenError(error, config.host, config.port);
    }
    this.#app = app;
    this.#tidy = setInterval(() => {
      purgeKeys(database).catch((error: unknown) =>
        logger.warn("could not delete old idempotency keys", { error: messageOf(error) }),
      );
    }, TIDY_MS);
    this.#tidy.unref();
    logger.info("API server is listening", { url: this.#url });
  }

  async stop(): Promise<void> {
    if (this.#tidy !== null) clearInterval(this.#tidy);
    const app = this.#app;
    this.#app = null;
    this.#url = null;
    if (app === null) return;
    const closed = app.close();
    // A client that neither reads nor disconnects must not keep the process alive.
    const grace = new AbortController();
    await Promise.race([
      app.inFlight.over(),
      sleep(GRACE_MS, undefined, { signal: grace.signal }).catch(() => {}),
    ]);
    grace.abort();
    app.server.closeAllConnections();
    await closed;
  }
}

/** Throws the address error of `start` early, for a process that does other work first. */
export async function requireAddress({ host, port }: { host: string; port: number }): Promise<void> {
  const probe = createServer();
  try {
    probe.listen({ host, port, exclusive: true });
    await once(probe, "listening");
  } catch (error) {
    throw listenError(error, host, port);
  }
  probe.close();
  await once(probe, "close");
}

function listenError(error: unknown, host: string, port: number): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (!["EADDRINUSE", "EACCES", "EADDRNOTAVAIL", "ENOTFOUND"].includes(code ?? "")) return error;
  const why =
    code === "EADDRINUSE"
      ? "is in use by another process"
      : code === "EACCES"
        ? "needs privileges this process lacks"
        : "is not an address of this machine";
  return new EngineError(
    "API_ADDRESS",
    `The API cannot listen on ${host}:${port}: it ${why}. Choose another address with --host and --port.`,
    { cause: error },
  );
}
