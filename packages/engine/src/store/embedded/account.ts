import { type SpawnOptions, spawn } from "node:child_process";
import { stat } from "node:fs/promises";

/**
 * The account PostgreSQL's programs run under. Ordinary users run them as themselves. PostgreSQL refuses root, so root
 * runs them as the owner of the data folder, or as "nobody" for a new one.
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
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, switches: true };
  return { uid: NOBODY, gid: NOBODY, switches: true };
}

export function asAccount(account: Account): SpawnOptions {
  return account.switches ? { uid: account.uid, gid: account.gid } : {};
}

export interface ProgramCall {
  readonly program: string;
  readonly args: readonly string[];
  /** Open files the program inherits, as its numbers 3, 4 ... */
  readonly files?: readonly number[];
}

/** Runs a program and gives its output; rejects with it when the program fails. */
export function run({ program, args, files = [] }: ProgramCall, account: Account): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      ...asAccount(account),
      // The caller's folder may be closed to the account.
      cwd: "/",
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
