import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { inject } from "vitest";
import { isRunning } from "../../src/service/process-identity.ts";
import { EmbeddedPostgres } from "../../src/store/embedded/embedded-postgres.ts";
import { afterFile } from "./after-file.ts";
import { endSessions, givenServer, onServer, urlOf } from "./given-server.ts";
import { seedFolder } from "./seed-folder.ts";

/** A server that a test may crash. */
export interface CrashablePostgres {
  /** A migrated database; its address survives crashes. */
  readonly url: string;
  /** Stops it without a shutdown checkpoint: "immediate" like an operator, "kill" like the out-of-memory killer. */
  crash(how?: "immediate" | "kill"): Promise<void>;
  /** Starts it again after a crash or stop, with recovery. */
  resume(): Promise<void>;
  /** Lines of the server's log that report a deadlock, a crash or a violated constraint. */
  complaints(): Promise<string[]>;
}

/** A separate server, durable as in production, for tests that stop, kill or restart it. */
export interface PrivatePostgres extends CrashablePostgres {
  readonly server: EmbeddedPostgres;
  restart(mode?: "fast" | "immediate"): Promise<void>;
  /** Stops all processes of the server, which keeps its connections open; the result lets them continue. */
  pause(): () => void;
  close(): Promise<void>;
}

interface PostgresOptions {
  readonly settings?: Readonly<Record<string, string | number>>;
}

/**
 * A private server or, if a server is given, a separate database on it: a crash then only terminates its sessions, old and
 * new, the settings are those of the given server, and its log is not read.
 */
export async function crashablePostgres(options: PostgresOptions = {}): Promise<CrashablePostgres> {
  const server = givenServer();
  if (server === undefined) return privatePostgres(options);
  await checkSettings(server, options.settings ?? {});
  const name = `tw_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  await onServer(server, `CREATE DATABASE ${name} TEMPLATE ${inject("testPostgres").template}`);
  opened.push(async () => {
    await onServer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  });
  let resume = async () => {};
  return {
    url: urlOf(server, name),
    crash: async () => {
      resume = endSessions(server, name);
    },
    resume: () => resume(),
    complaints: async () => [],
  };
}

async function checkSettings(server: string, settings: Readonly<Record<string, string | number>>) {
  for (const [name, wanted] of Object.entries(settings)) {
    const [row] = await onServer<{ value: string }>(server, "SELECT current_setting($1) AS value", [name]);
    if (row?.value !== String(wanted))
      throw new Error(`this test needs ${name} = ${wanted}; the given server has ${row?.value}`);
  }
}

export async function privatePostgres(options: PostgresOptions = {}): Promise<PrivatePostgres> {
  const home = await mkdtemp(join(tmpdir(), "tw-private-"));
  await seedFolder(join(home, "postgres"));
  const server = await EmbeddedPostgres.start({
    dataDir: join(home, "postgres"),
    settings: options.settings,
  });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= server.stop("immediate").then(() => rm(home, { recursive: true, force: true }));
    return closing;
  };
  opened.push(close);
  return {
    server,
    url: server.url,
    crash: async (how = "immediate") => {
      if (how === "immediate") return server.stop("immediate");
      process.kill(server.pid, "SIGKILL");
      while (isRunning(server.pid)) await sleep(5);
    },
    resume: () => server.resume(),
    complaints: async () => {
      const log = await readFile(join(server.dataDirectory, "..", "server.log"), "utf8");
      return log.split("\n").filter((line) => /deadlock detected|PANIC|violates/.test(line));
    },
    restart: (mode = "fast") => server.restart(mode),
    pause: () => {
      const pids = [server.pid, ...childrenOf(server.pid)];
      const signal = (name: NodeJS.Signals) => {
        for (const pid of pids) {
          // A session may have ended.
          if (isRunning(pid)) process.kill(pid, name);
        }
      };
      signal("SIGSTOP");
      return () => signal("SIGCONT");
    },
    close,
  };
}

function childrenOf(parent: number): number[] {
  const { stdout } = spawnSync("ps", ["-o", "pid=", "--ppid", String(parent)], { encoding: "utf8" });
  return stdout.split("\n").filter(Boolean).map(Number);
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});
