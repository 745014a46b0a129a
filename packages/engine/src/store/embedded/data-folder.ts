import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { chown, mkdir, open, readdir, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { EngineError, messageOf } from "../../service/errors.ts";
import { isRunning } from "../../service/process-identity.ts";
import { type Account, accountFor, creatorFor, needsNewOwner, run, transferOwnership } from "./account.ts";
import { findBinaries } from "./binaries.ts";

/**
 * The folder of one embedded server:
 *
 *     <folder>/password     the superuser's password, 0600
 *     <folder>/data/        PostgreSQL's own data folder, 0700, owned by the account that runs the server
 *     <folder>/port         the port of the last start, tried first at the next
 *     <folder>/server.log
 *
 * It is created completely or not at all: in a draft beside it, which is renamed. Of two concurrent processes one wins and
 * the other uses the winner's folder; a killed one leaves a draft that the next start removes.
 */
export interface DataFolder {
  readonly folder: string;
  readonly data: string;
  readonly password: string;
  readonly account: Account;
}

export async function openDataFolder(folder: string): Promise<DataFolder> {
  await removeDeadDrafts(folder);
  if (!(await isPresent(folder))) await create(folder);
  const data = await realpath(join(folder, "data"));
  const password = await readFile(join(folder, "password"), "utf8");
  return { folder, data, password, account: await accountFor(data) };
}

/**
 * How a program of the account reaches the data: its working folder, and the path of the data.
 *
 * The account may lack access to the path: other users cannot enter root's home or Tradewind's own. It needs none: root
 * enters the folder before it changes the account, and on Linux /proc/self/cwd leads directly there.
 */
export function reachData(data: string, account: Account): { readonly cwd: string; readonly path: string } {
  const isClosed = account.switches && process.platform === "linux";
  return isClosed ? { cwd: data, path: "/proc/self/cwd" } : { cwd: "/", path: data };
}

async function isPresent(folder: string): Promise<boolean> {
  const entries = await readdir(folder).catch(() => [] as string[]);
  if (entries.includes("password") && entries.includes("data")) return true;
  if (entries.length === 0) return false;
  throw new EngineError(
    "EMBEDDED_POSTGRES_FOLDER",
    `${folder} is not empty and contains no Tradewind database: move it away, or choose another home with --home.`,
  );
}

async function create(folder: string): Promise<void> {
  const draft = `${folder}.init-${process.pid}-${randomBytes(4).toString("hex")}`;
  const account = await accountFor(draft);
  const { initdb } = await findBinaries(account);
  try {
    await mkdir(draft, { recursive: true, mode: 0o700 });
    await mkdir(join(draft, "data"), { mode: 0o700 });
    await writeFile(join(draft, "password"), randomBytes(24).toString("base64url"), { mode: 0o600 });
    await initialise(initdb, draft, await creatorFor(account));
    if (await needsNewOwner(join(draft, "data"), account))
      await transferOwnership(join(draft, "data"), account);
    await rename(draft, folder);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (!(await isPresent(folder))) throw error;
  }
}

async function initialise(initdb: string, draft: string, account: Account): Promise<void> {
  const data = join(draft, "data");
  const password = join(draft, "password");
  for (const path of [data, password]) await transfer(path, account);
  // The builtin C.UTF-8 is the same on every system; the C library's is missing on some.
  const locale = ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"];
  const access = ["--username=tradewind", "--auth=scram-sha-256"];
  try {
    const { cwd, path } = reachData(data, account);
    await withPasswordFile(password, account, (file, files) => {
      const args = ["-D", path, `--pwfile=${file}`, ...locale, ...access];
      return run({ program: initdb, args, cwd, files }, account);
    });
  } catch (cause) {
    throw new EngineError(
      "EMBEDDED_POSTGRES_INIT",
      `PostgreSQL could not create its data folder in ${dirname(draft)}: ${messageOf(cause)}`,
      { cause },
    );
  }
  if (account.switches) await chown(password, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
}

/** initdb inherits the open file as descriptor 3: the account may lack access to its path. */
async function withPasswordFile<T>(
  path: string,
  account: Account,
  work: (path: string, files: readonly number[]) => Promise<T>,
): Promise<T> {
  if (reachData(path, account).path === path) return work(path, []);
  const file = await open(path, constants.O_RDONLY);
  try {
    return await work("/proc/self/fd/3", [file.fd]);
  } finally {
    await file.close();
  }
}

async function transfer(path: string, account: Account): Promise<void> {
  if (account.switches) await chown(path, account.uid as number, account.gid as number);
}

async function removeDeadDrafts(folder: string): Promise<void> {
  const siblings = await readdir(dirname(folder)).catch(() => [] as string[]);
  const prefix = `${basename(folder)}.init-`;
  for (const name of siblings.filter((each) => each.startsWith(prefix))) {
    const pid = Number(name.slice(prefix.length).split("-")[0]);
    if (!isRunning(pid)) await rm(join(dirname(folder), name), { recursive: true, force: true });
  }
}
