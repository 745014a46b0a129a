import { type SpawnOptions, spawn } from "node:child_process";
import { chown, lchown, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { POSTGRES_UID } from "../../service/process-user.ts";

/**
 * The account PostgreSQL's programs run under. Ordinary users run them as themselves. PostgreSQL refuses root, so root
 * runs them as the owner of the data folder, or as an account of their own for a new one. That account must be used by
 * nothing else: a process of the same account can read and change the data through /proc/<pid>/cwd, pg_hba.conf
 * included. So data that belongs to "nobody", which other services run as, is given to it.
 */
export interface Account {
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  /** True when it is another account than this process's own. */
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
 * The account that creates the data, for a second, before it is given to `account`: initdb insists on one that the
 * system knows by name. If it does not know ours, the first of its own that no process runs as, so that nobody is there
 * to look on.
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

/** Does the data belong to an account that must not have it any more? */
export async function needsNewOwner(data: string, account: Account): Promise<boolean> {
  return account.switches && (await stat(data)).uid !== account.uid;
}

/**
 * Gives the data to the account; no server may run on it. The folder is root's until all in it is given, so that the
 * former owner cannot enter meanwhile, and a start that was interrupted is repeated by the next one.
 */
export async function giveData(data: string, { uid, gid }: Account): Promise<void> {
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
  /** The caller's own folder may be closed to the account. */
  readonly cwd?: string;
  /** Open files the program inherits, as its numbers 3, 4 ... */
  readonly files?: readonly number[];
}

/** Runs a program and gives its output; rejects with it when the program fails. */
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

/** PG* variables of the user's shell must not steer our server, and its secrets are none of its business. */
export function programEnvironment(): NodeJS.ProcessEnv {
  const { PATH, SystemRoot, TMPDIR, TEMP, TMP } = process.env;
  return { PATH, SystemRoot, TMPDIR, TEMP, TMP, LC_ALL: "C", TZ: "UTC" };
}
