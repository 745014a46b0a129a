import { randomBytes } from "node:crypto";
import { access, constants, mkdir, readFile, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { EngineError, messageOf } from "./errors.ts";
import { createOnce } from "./private-file.ts";
import { acquireProcessLock, livingHolder, type ProcessLock } from "./process-lock.ts";

/** Tradewind's own folder: everything that one installation keeps outside of the database. */
export interface Home {
  readonly path: string;
  /** The admin token, readable by the owner only. */
  readonly token: string;
  readonly secretKey: string;
  readonly postgres: string;
  readonly bundles: string;
  readonly logs: string;
  /** Large outputs, unless configured elsewhere. */
  readonly outputs: string;
  /** Held by the standalone that runs on this home. */
  readonly lock: string;
}

/** The paths of a home, which need not exist. */
export function homeAt(path: string): Home {
  const root = resolve(path);
  return {
    path: root,
    token: join(root, "token"),
    secretKey: join(root, "secret.key"),
    postgres: join(root, "postgres"),
    bundles: join(root, "bundles"),
    logs: join(root, "logs"),
    outputs: join(root, "outputs"),
    lock: join(root, "standalone.lock"),
  };
}

/** The log folder of a home, which need not exist. */
export function logFolder(path: string): string {
  return homeAt(path).logs;
}

/** The folder for large outputs of a home, which need not exist. */
export function outputFolder(path: string): string {
  return homeAt(path).outputs;
}

/** The secret key file of a home, which need not exist. */
export function keyFile(path: string): string {
  return homeAt(path).secretKey;
}

/** Creates what is missing. Only the owner has access: logs and bundles contain the output and code of tasks. */
export async function openHome(path: string): Promise<Home> {
  const home = homeAt(path);
  try {
    for (const folder of [home.path, home.bundles, home.logs]) await makeFolder(folder);
    await access(home.path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new EngineError(
      "HOME_UNUSABLE",
      `The home folder ${home.path} cannot be used: ${messageOf(cause)}. Choose another with --home or TRADEWIND_HOME.`,
      { cause },
    );
  }
  return home;
}

/**
 * Creates parents one after the other: where the system allows no folders at all (below /proc), Node's own recursive
 * mkdir retries forever, in a thread that keeps the process from ending.
 */
export async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return;
  if (dirname(path) !== path) await makeFolder(dirname(path));
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !(await isFolder(path))) throw error;
  }
}

async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() === true;
}

/** A token for the API: 256 random bits. */
export function newToken(): string {
  return `tw_${randomBytes(32).toString("base64url")}`;
}

/** The admin token, created at the first start. */
export async function ensureToken(home: Home): Promise<string> {
  await createOnce(home.token, newToken);
  const token = (await readFile(home.token, "utf8")).trim();
  if (!/^tw_[\w-]{43}$/.test(token)) {
    throw new EngineError(
      "TOKEN_FILE_INVALID",
      `${home.token} does not hold an admin token ("tw_" and 43 characters): remove the file, and the next start makes a new one.`,
    );
  }
  return token;
}

/** Rejects a second standalone on the same home. The lock of a killed one is void. */
export async function lockHome(home: Home): Promise<ProcessLock> {
  const taken = await acquireProcessLock(home.lock);
  if ("lock" in taken) return taken.lock;
  const { pid, details } = taken.holder;
  const where = typeof details["url"] === "string" ? ` at ${details["url"]}` : "";
  throw new EngineError(
    "HOME_IN_USE",
    `Another "tradewind standalone" (process ${pid}) already runs on ${home.path}${where}: use that one, stop it first, or choose another folder with --home.`,
    { details: { pid, home: home.path, ...details } },
  );
}

/** The standalone that runs on this home now, for its clients. */
export async function findStandalone(
  home: Home,
): Promise<{ pid: number; url: string | undefined } | undefined> {
  const holder = await livingHolder(home.lock);
  if (holder === undefined) return undefined;
  const url = holder.details["url"];
  return { pid: holder.pid, url: typeof url === "string" ? url : undefined };
}
