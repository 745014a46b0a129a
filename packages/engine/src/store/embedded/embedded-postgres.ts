import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Logger, silentLogger } from "../../service/logger.ts";
import { isRunning } from "../../service/process-identity.ts";
import { type DataFolder, openDataFolder } from "./data-folder.ts";
import { stopAtExit } from "./exit.ts";
import { ensureRunning, type RunningServer, type StopMode, serverUrl, stopServer } from "./server.ts";

export type { StopMode } from "./server.ts";

export interface EmbeddedPostgresOptions {
  /** The server's folder, created if missing; data-folder.ts describes its contents. */
  readonly dataDir: string;
  readonly logFile?: string;
  /** PostgreSQL settings that override the defaults. An adopted server keeps the settings it was started with. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Restart the server, on the same port, if it ends unexpectedly. */
  readonly respawn?: boolean;
  readonly logger?: Logger;
}

/**
 * An embedded PostgreSQL server: started, or adopted if it outlived a killed parent.
 *
 * It runs in a separate session, so it survives a kill of its parent. A parent that ends normally stops it: by `stop`, or
 * at the latest when the process exits.
 */
export class EmbeddedPostgres {
  readonly #folder: DataFolder;
  readonly #options: Required<EmbeddedPostgresOptions>;
  #server: RunningServer;
  #wanted = true;
  #forget: () => void;
  #watching = new AbortController();

  static async start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
    const dataDir = resolve(options.dataDir);
    await mkdir(dirname(dataDir), { recursive: true, mode: 0o700 });
    const folder = await openDataFolder(dataDir);
    const full = {
      ...options,
      dataDir,
      logFile: options.logFile ?? join(dataDir, "server.log"),
      settings: options.settings ?? {},
      respawn: options.respawn ?? false,
      logger: options.logger ?? silentLogger,
    };
    const server = await ensureRunning(folder, full);
    const postgres = new EmbeddedPostgres(folder, full, server);
    await createDatabase(postgres.urlOf("postgres"));
    return postgres;
  }

  private constructor(folder: DataFolder, options: Required<EmbeddedPostgresOptions>, server: RunningServer) {
    this.#folder = folder;
    this.#options = options;
    this.#server = server;
    this.#forget = stopAtExit(folder.data);
    this.#watch();
  }

  get url(): string {
    return this.urlOf(DATABASE);
  }

  get pid(): number {
    return this.#server.pid;
  }

  get port(): number {
    return this.#server.port;
  }

  /** True if the server was already running when this call began. */
  get adopted(): boolean {
    return this.#server.child === undefined;
  }

  /** PostgreSQL's own data folder. */
  get dataDirectory(): string {
    return this.#folder.data;
  }

  urlOf(database: string): string {
    return serverUrl(this.#folder, this.#server.port, database);
  }

  async stop(mode: StopMode = "fast"): Promise<void> {
    this.release();
    await stopServer(this.#server, this.#folder.data, mode);
  }

  /** Restarts the server on the same port, so that clients can reconnect. */
  async restart(mode: StopMode = "fast"): Promise<void> {
    await this.stop(mode);
    await this.resume();
  }

  /** Starts an ended server on the same port. Does nothing if it is running. */
  async resume(): Promise<void> {
    this.#server = await ensureRunning(this.#folder, { ...this.#options, port: this.#server.port });
    this.#forget();
    this.#forget = stopAtExit(this.#folder.data);
    this.#wanted = true;
    this.#watch();
  }

  /** Stops managing the server: it continues when this process ends. */
  release(): void {
    this.#wanted = false;
    this.#watching.abort();
    this.#forget();
  }

  #watch(): void {
    this.#watching.abort();
    if (!this.#options.respawn) return;
    this.#watching = new AbortController();
    void this.#respawnWhenGone(this.#watching.signal);
  }

  async #respawnWhenGone(signal: AbortSignal): Promise<void> {
    const { logger } = this.#options;
    while (!hasEnded(this.#server)) {
      const { child } = this.#server;
      // An adopted server is not our child, so its end causes no event.
      const news = child
        ? once(child, "exit", { signal })
        : sleep(WATCH_MS, undefined, { signal, ref: false });
      await news.catch(() => {});
      if (signal.aborted) return;
    }
    logger.warn("PostgreSQL ended unexpectedly; restarting it", { pid: this.#server.pid });
    for (let pause = WATCH_MS; this.#wanted && !signal.aborted; pause = Math.min(pause * 2, 10_000)) {
      try {
        return await this.resume();
      } catch (error) {
        logger.error("PostgreSQL could not be restarted", { error });
        await sleep(pause, undefined, { signal, ref: false }).catch(() => {});
      }
    }
  }
}

const DATABASE = "tradewind";
const WATCH_MS = 250;

function hasEnded({ pid, child }: RunningServer): boolean {
  return child ? child.exitCode !== null || child.signalCode !== null : !isRunning(pid);
}

async function createDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  // The next statement reports a broken connection; without a listener the event would end the process.
  client.on("error", () => {});
  await client.connect();
  try {
    const { rowCount } = await client.query("SELECT FROM pg_database WHERE datname = $1", [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  } catch (error) {
    // Another process that adopted the server has created it: duplicate_database, or its unique index.
    if (!["42P04", "23505"].includes((error as { code?: string }).code ?? "")) throw error;
  } finally {
    await client.end();
  }
}
