/** A separate database (embedded PostgreSQL, fsync on) and nothing else; servers in front of it on request. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openDatabase } from "../../packages/engine/src/process/open-database.ts";
import { resolveConfig } from "../../packages/engine/src/service/config.ts";
import { openHome } from "../../packages/engine/src/service/home.ts";
import { adhoc, type Database } from "../../packages/engine/src/store/database/database.ts";
import { migrate } from "../../packages/engine/src/store/database/migrate.ts";
import type { Way } from "./service.ts";

export interface Stage {
  readonly database: Database;
  readonly postgres: Way;
  readonly postgresWithoutNotify: Way;
  /** `tradewind signals serve` or `tradewind api`, as a user starts it. */
  serve(kind: "grpc" | "http"): Promise<{ way: Way; stop(): Promise<void> }>;
  /** Empties the log and flushes to disk: the next scenario does not pay for the last. */
  clear(): Promise<void>;
  stop(): Promise<void>;
}

const CLI = fileURLToPath(new URL("../../packages/cli/src/main.ts", import.meta.url));
const COMMANDS = { grpc: ["signals", "serve", "--port", "0"], http: ["api", "--port", "0"] };

export async function openStage(): Promise<Stage> {
  const root = await mkdtemp(join(tmpdir(), "tradewind-bench-"));
  const config = resolveConfig(
    { home: join(root, "home"), dags: root },
    { DATABASE_URL: process.env.DATABASE_URL },
  );
  await openHome(config.home);
  const { database, stop } = await openDatabase(config, { applicationName: "tradewind bench" });
  await migrate(database);
  return {
    database,
    postgres: { kind: "postgres", url: database.url, notify: true },
    postgresWithoutNotify: { kind: "postgres", url: database.url, notify: false },
    serve: (kind) => serve(kind, { home: config.home, url: database.url }),
    async clear() {
      await database.rows(adhoc("TRUNCATE signal, signal_listener CASCADE"));
      await database.rows(adhoc("CHECKPOINT"));
    },
    async stop() {
      await stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function serve(kind: "grpc" | "http", where: { home: string; url: string }) {
  const { PATH, HOME } = process.env;
  const child = spawn(
    process.execPath,
    ["--conditions=source", CLI, ...COMMANDS[kind], "--home", where.home],
    {
      stdio: ["ignore", "ignore", "pipe"],
      env: { PATH, HOME, TRADEWIND_LOG_LEVEL: "warn", DATABASE_URL: where.url },
    },
  );
  const ended = once(child, "exit");
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  const said: string[] = [];
  for await (const line of createInterface(child.stderr)) {
    said.push(line);
    const [url] = /(?:grpc|http):\/\/[^\s;]+/.exec(line) ?? [];
    if (url === undefined) continue;
    child.stderr.resume();
    const token = (await readFile(join(where.home, "token"), "utf8")).trim();
    return { way: { kind, url, token } satisfies Way, stop };
  }
  throw new Error(`the signal server has ended: ${said.join("\n")}`);
}
