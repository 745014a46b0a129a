import { type SpawnOptions, spawn } from "node:child_process";
import { chown, lchown, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { POSTGRES_UID } from "../../service/process-user.ts";

/**
 * The account that runs PostgreSQL's programs. Ordinary users run them under their own account. PostgreSQL refuses to run
 * as root, so root uses the owner of the data folder, or a dedicated account for a new one. No other program may use that
 * account: its processes could read and change the data through /proc/<pid>/cwd, pg_hba.conf included. So data owned by
 * the account "nobody", which other services use, is given to the dedicated account.
 */
export interface Account {
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  /** True if it differs from the account of this process. */
  readonly switches: boolean;
}

const NOBODY = 65_534;

export async function accountFor(dataDir: string): Promise<Account> {
  if (process.getuid?.() !== 0) return { uid: process.getuid?.(), gid: process.getgid?.(), switches: false };
  const owner = await stat(dataDir).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0 && owner.uid !== NOBODY) {
    return { uid: owner.uid, gid: owner.gid, switches: true };
  }
  return { uid: POSTGRES_UID, gid: POSTGRES_UID, switches: true };
}

/**
 * The account that creates the data before it is given to `account`: initdb requires an account with a name in the
 * system. If `account` has no name, the first named account without a process is used, so that no other process can read
 * the data.
 */
export async function creatorFor(account: Account): Promise<Account> {
  if (!account.switches) return account;
  const lines = (await readFile("/etc/passwd", "utf8").catch(() => "")).split("\n");
  const known = lines.map((line) => line.split(":")).filter((fields) => Number(fields[2]) > 0);
  if (known.some((fields) => Number(fields[2]) === account.uid)) return account;
  const busy = await uidsInUse();
  const idle = known.find((fields) => !busy.has(Number(fields[2])));
  return { uid: Number(idle?.[2] ?? NOBODY), gid: Number(idle?.[3] ?? NOBODY), switches: true };
}

async function uidsInUse(): Promise<ReadonlySet<number>> {
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  const owners = await Promise.all(pids.map((pid) => stat(`/proc/${pid}`).catch(() => undefined)));
  return new Set(owners.flatMap((owner) => (owner === undefined ? [] : [owner.uid])));
}

/** True if the data belongs to an account that must no longer own it. */
export async function needsNewOwner(data: string, account: Account): Promise<boolean> {
  return account.switches && (await stat(data)).uid !== account.uid;
}

/**
 * Gives the data to the account; no server may run on it. Root owns the folder until all its files are given, so that the
 * former owner cannot enter meanwhile. An interrupted start is repeated by the next one.
 */
export async function transferOwnership(data: string, { uid, gid }: Account): Promise<void> {
  await chown(data, 0, 0);
  for (const entry of await readdir(data, { withFileTypes: true, recursive: true })) {
    await lchown(join(entry.parentPath, entry.name), uid as number, gid as number);
  }
  await chown(data, uid as number, gid as number);
}

export function asAccount(account: Account): SpawnOptions {
  return account.switches ? { uid: account.uid, gid: account.gid } : {};
}

export interface ProgramCall {
  readonly program: string;
  readonly args: readonly string[];
  /** The account may not have access to the caller's folder. */
  readonly cwd?: string;
  /** Open files that the program inherits, as descriptors 3, 4 ... */
  readonly files?: readonly number[];
}

/** Runs a program and returns its output; rejects with the output if the program fails. */
export function run(
  { program, args, cwd = "/", files = [] }: ProgramCall,
  account: Account,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      ...asAccount(account),
      cwd,
      env: programEnvironment(),
      stdio: ["ignore", "pipe", "pipe", ...files],
      windowsHide: true,
    });
    let output = "";
    const collect = (chunk: Buffer) => {
      output += chunk;
    };
    child.stdout?.on("data", collect);
    child.stderr?.on("data", collect);
    child.on("error", reject);
    child.on("close", (code, signal) =>
      code === 0 ? resolve(output) : reject(new Error(`ended with ${signal ?? code}: ${output.trim()}`)),
    );
  });
}

/** PG* variables of the user's shell must not configure our server, and it must not receive the user's secrets. */
export function programEnvironment(): NodeJS.ProcessEnv {
  const { PATH, SystemRoot, TMPDIR, TEMP, TMP } = process.env;
  return { PATH, SystemRoot, TMPDIR, TEMP, TMP, LC_ALL: "C", TZ: "UTC" };
}
