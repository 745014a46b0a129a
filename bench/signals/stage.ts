/** A separate database (embedded PostgreSQL, fsync on) and nothing else; servers in front of it on request. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../packages/engine/src/process/parts/open-database.ts";
import { resolveConfig } from "../../packages/engine/src/service/config.ts";
import { ensureToken, openHome } from "../../packages/engine/src/service/home.ts";
import { isAway } from "../../packages/engine/src/signal/remote-signals.ts";
import { adhoc, type Database } from "../../packages/engine/src/store/database/database.ts";
import { migrate } from "../../packages/engine/src/store/database/migrate.ts";
import { type Child, startTradewind } from "../child.ts";
import { freePort } from "../free-port.ts";
import { until } from "../until.ts";
import { openService, type Way } from "./service.ts";

export interface Stage {
  readonly database: Database;
  readonly postgres: Way;
  readonly postgresWithoutNotify: Way;
  /** `tradewind signals serve` or `tradewind api`, as a user starts it. */
  serve(kind: "grpc" | "http"): Promise<{ way: Way; child: Child }>;
  /** Empties the log and flushes to disk: the next scenario does not pay for the last. */
  clear(): Promise<void>;
  stop(): Promise<void>;
}

const COMMANDS = { grpc: ["signals", "serve"], http: ["api"] };

export async function openStage(): Promise<Stage> {
  const root = await mkdtemp(join(tmpdir(), "tradewind-bench-"));
  const config = resolveConfig(
    { home: join(root, "home"), dags: root },
    { DATABASE_URL: process.env.DATABASE_URL },
  );
  const token = await ensureToken(await openHome(config.home));
  const { database, stop } = await openDatabase(config, { applicationName: "tradewind bench" });
  await migrate(database);
  return {
    database,
    postgres: { kind: "postgres", url: database.url, notify: true },
    postgresWithoutNotify: { kind: "postgres", url: database.url, notify: false },
    serve: (kind) => serve(kind, { home: config.home, token, url: database.url }),
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

async function serve(
  kind: "grpc" | "http",
  { home, token, url }: { home: string; token: string; url: string },
): Promise<{ way: Way; child: Child }> {
  const port = await freePort();
  const child = startTradewind([...COMMANDS[kind], "--port", String(port), "--home", home], {
    TRADEWIND_LOG_LEVEL: "warn",
    DATABASE_URL: url,
  });
  const way: Way = { kind, url: `${kind}://127.0.0.1:${port}`, token };
  try {
    await child.during(answers(way));
  } catch (error) {
    await child.stop();
    throw error;
  }
  return { way, child };
}

async function answers(way: Way): Promise<void> {
  const { close, service } = await openService(way);
  const isUp = async () => {
    try {
      await service.list({ limit: 1 });
      return true;
    } catch (error) {
      if (isAway(error)) return false;
      throw error;
    }
  };
  try {
    await until(`${way.url} answers`, isUp);
  } finally {
    await close();
  }
}
