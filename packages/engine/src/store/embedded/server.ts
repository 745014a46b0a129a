import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, fstatSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { EngineError } from "../../service/errors.ts";
import { isRunning } from "../../service/process-identity.ts";
import { acquireProcessLock } from "../../service/process-lock.ts";
import { sqlState } from "../database/connection-error.ts";
import { asAccount, needsNewOwner, programEnvironment, transferOwnership } from "./account.ts";
import { type Binaries, findBinaries } from "./binaries.ts";
import { type DataFolder, reachData } from "./data-folder.ts";
import { markDead, readPostmaster, servesFolder } from "./postmaster-file.ts";

/** A server that responds. `child` is set if this process started it, and not if it was adopted. */
export interface RunningServer {
  readonly pid: number;
  readonly port: number;
  readonly child: ChildProcess | undefined;
}

export type StopMode = "fast" | "immediate" | "smart";

export interface LaunchOptions {
  readonly logFile: string;
  readonly settings: Readonly<Record<string, string | number>>;
  /** The only acceptable port: after a restart, clients reconnect to it. */
  readonly port?: number;
}

const POLL_MS = 15;
const START_TIMEOUT_MS = 60_000;
const ORPHANS_TIMEOUT_MS = 20_000;

/**
 * Adopts the server that already runs on the folder (its parent was killed), or starts one. Waits for crash recovery
 * until the server ends.
 */
export async function ensureRunning(folder: DataFolder, options: LaunchOptions): Promise<RunningServer> {
  const binaries = await findBinaries(folder.account);
  await requireVersion(folder, binaries);
  const taken = await acquireProcessLock(join(folder.folder, "start.lock"), START_TIMEOUT_MS);
  if ("holder" in taken) {
    throw startError(folder, `process ${taken.holder.pid} has been starting it for a minute`);
  }
  try {
    if (await needsNewOwner(folder.data, folder.account)) await changeOwner(folder);
    return (await adopt(folder)) ?? (await launch(folder, binaries, options));
  } finally {
    await taken.lock.release();
  }
}

/** Stops the server and waits for its end. A server that does not stop is stopped harder; recovery repairs the data. */
export async function stopServer(server: { pid: number }, data: string, mode: StopMode): Promise<void> {
  const ways: [NodeJS.Signals, number][] = [
    [{ fast: "SIGINT", immediate: "SIGQUIT", smart: "SIGTERM" }[mode] as NodeJS.Signals, 30_000],
    ["SIGQUIT", 10_000],
    ["SIGKILL", 10_000],
  ];
  for (const [signal, patience] of ways) {
    if (!servesFolder(server.pid, data)) return;
    try {
      process.kill(server.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ESRCH") return;
      throw error;
    }
    const deadline = performance.now() + patience;
    while (performance.now() < deadline) {
      if (!isRunning(server.pid)) return;
      await sleep(POLL_MS);
    }
  }
  throw new EngineError(
    "EMBEDDED_POSTGRES_STOP",
    `PostgreSQL (process ${server.pid}, ${data}) does not end.`,
  );
}

/** A server that runs as the former owner is not adopted: it is stopped and started again as the new owner. */
async function changeOwner(folder: DataFolder): Promise<void> {
  const running = readPostmaster(folder.data);
  if (running !== undefined) await stopServer(running, folder.data, "fast");
  await transferOwnership(folder.data, folder.account);
}

async function adopt(folder: DataFolder): Promise<RunningServer | undefined> {
  let deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const found = readPostmaster(folder.data);
    if (found === undefined) return undefined;
    if (!servesFolder(found.pid, folder.data)) {
      if (isRunning(found.pid)) markDead(folder.data, found);
      return undefined;
    }
    const answered = found.status === "ready" && (await answers(folder, found.port));
    if (answered) return { ...found, child: undefined };
    // Recovery has no time limit; a server that is ready, or shutting down, must respond within a minute.
    if (found.status === "starting") deadline = performance.now() + START_TIMEOUT_MS;
    if (performance.now() > deadline) {
      throw startError(
        folder,
        `process ${found.pid} holds the folder and does not respond on port ${found.port}`,
      );
    }
    await sleep(POLL_MS);
  }
}

async function launch(
  folder: DataFolder,
  binaries: Binaries,
  options: LaunchOptions,
): Promise<RunningServer> {
  const giveUp = performance.now() + ORPHANS_TIMEOUT_MS;
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await choosePort(folder, attempt));
    const outcome = await launchOnce(folder, binaries, { ...options, port });
    if (typeof outcome !== "string") {
      writeFileSync(join(folder.folder, "port"), `${port}`, { mode: 0o600 });
      return outcome;
    }
    const inUse = /Address already in use|could not bind|could not create any TCP\/IP sockets/i.test(outcome);
    // The backends of a killed server end when they notice; until then they own the data.
    const orphans = /pre-existing shared memory block|lock file "[^"]*" already exists/.test(outcome);
    if (inUse && options.port === undefined && attempt < 10) continue;
    if ((orphans || inUse) && performance.now() < giveUp) {
      await sleep(100);
      continue;
    }
    throw startError(folder, `its log ${options.logFile} ends with:\n${outcome.trim().slice(-2_000)}`);
  }
}

/** One start. Returns the server's log if it ended before it was ready. */
async function launchOnce(
  folder: DataFolder,
  binaries: Binaries,
  options: LaunchOptions & { port: number },
): Promise<RunningServer | string> {
  const { account } = folder;
  const log = openSync(options.logFile, "a", 0o600);
  const before = fstatSync(log).size;
  let failure: string | undefined;
  const { cwd, path } = reachData(folder.data, account);
  const child = spawn(binaries.postgres, ["-D", path, ...serverArguments(options)], {
    ...asAccount(account),
    // A separate session: Ctrl-C in the terminal must reach Tradewind alone, which then stops the server.
    detached: true,
    cwd,
    env: programEnvironment(),
    stdio: ["ignore", log, log],
    windowsHide: true,
  });
  child.once("error", (error) => {
    failure = error.message;
  });
  child.once("exit", (code, signal) => {
    failure ??= `ended with ${signal ?? code}`;
  });
  child.unref();
  closeSync(log);
  for (;;) {
    if (failure !== undefined) {
      return `${failure}\n${readFileSync(options.logFile).subarray(before).toString("utf8")}`;
    }
    const noted = readPostmaster(folder.data);
    if (noted?.pid === child.pid && noted?.status === "ready" && (await answers(folder, options.port))) {
      return { pid: child.pid as number, port: options.port, child };
    }
    await sleep(POLL_MS);
  }
}

/**
 * True if the server accepts our password and proves that it knows it. Where the system does not show the working folder
 * of a process, the server must also report our data folder.
 */
async function answers(folder: DataFolder, port: number): Promise<boolean> {
  const client = new pg.Client({
    connectionString: serverUrl(folder, port, "postgres"),
    connectionTimeoutMillis: 10_000,
    application_name: "tradewind supervisor",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    if (process.platform !== "darwin") return true;
    const { rows } = await client.query<{ data_directory: string }>("SHOW data_directory");
    return rows[0]?.data_directory === folder.data;
  } catch (error) {
    if (sqlState(error) === "28P01") {
      throw startError(
        folder,
        `it does not accept the password in ${join(folder.folder, "password")}: restore that file`,
      );
    }
    return false;
  } finally {
    client.end().catch(() => {});
  }
}

export function serverUrl(folder: DataFolder, port: number, database: string): string {
  return `postgresql://tradewind:${folder.password}@127.0.0.1:${port}/${database}`;
}

function serverArguments(options: LaunchOptions & { port: number }): string[] {
  const settings = {
    ...DEFAULT_SETTINGS,
    ...options.settings,
    listen_addresses: "127.0.0.1",
    port: options.port,
    unix_socket_directories: "",
  };
  return Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}

const DEFAULT_SETTINGS: Readonly<Record<string, string | number>> = {
  max_connections: 100,
  shared_buffers: "128MB",
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  // An embedded server has no replicas, so its WAL can be minimal.
  wal_level: "minimal",
  max_wal_senders: 0,
  max_wal_size: "2GB",
  // Thousands of short statements: compiling one costs more than running it.
  jit: "off",
  log_timezone: "UTC",
  timezone: "UTC",
  log_checkpoints: "off",
  autovacuum_naptime: "20s",
};

/** The port of the last start if it is free, so that saved URLs remain valid. */
async function choosePort(folder: DataFolder, attempt: number): Promise<number> {
  const last = attempt === 1 ? await readFile(join(folder.folder, "port"), "utf8").catch(() => "") : "";
  return (last === "" ? undefined : await freePort(Number(last))) ?? (await freePort(0)) ?? 0;
}

function freePort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(undefined));
    probe.listen({ host: "127.0.0.1", port, exclusive: true }, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : undefined));
    });
  });
}

async function requireVersion(folder: DataFolder, binaries: Binaries): Promise<void> {
  const file = join(folder.data, "PG_VERSION");
  const version = existsSync(file) ? (await readFile(file, "utf8")).trim() : "unknown";
  if (version === binaries.major) return;
  throw new EngineError(
    "EMBEDDED_POSTGRES_VERSION",
    `The data in ${folder.data} belongs to PostgreSQL ${version}, but this version of Tradewind includes ${binaries.major}. Use the Tradewind version that created it, or move the data with a dump and restore and set DATABASE_URL.`,
    { details: { data: version, binaries: binaries.major } },
  );
}

function startError(folder: DataFolder, why: string): EngineError {
  return new EngineError(
    "EMBEDDED_POSTGRES_START",
    `PostgreSQL in ${folder.data} could not be started: ${why}`,
  );
}
