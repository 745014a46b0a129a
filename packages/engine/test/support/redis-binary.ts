/**
 * Finds a redis-server, or unpacks one from Debian's packages without root, into node_modules/.cache for later runs.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { acquireProcessLock } from "../../src/service/process-lock.ts";

export interface RedisBinary {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

const run = promisify(execFile);
const CACHE = resolve(import.meta.dirname, "../../../../node_modules/.cache/tradewind-test");
const DOWNLOAD_TIMEOUT_MS = 50_000;

export async function redisBinary(): Promise<RedisBinary> {
  const installed = (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, "redis-server"))
    .find((path) => existsSync(path));
  return installed === undefined ? unpackedRedis() : { path: installed, env: {} };
}

/** From the cache; fills the cache first if it is empty. */
export async function unpackedRedis(cache = join(CACHE, "redis")): Promise<RedisBinary> {
  if (!existsSync(cache)) await fill(cache);
  return {
    path: join(cache, "usr/bin/redis-server"),
    env: { LD_LIBRARY_PATH: (await libraryFolders(cache)).join(delimiter) },
  };
}

async function fill(cache: string): Promise<void> {
  await mkdir(resolve(cache, ".."), { recursive: true });
  const taken = await acquireProcessLock(`${cache}.lock`, DOWNLOAD_TIMEOUT_MS);
  if (!("lock" in taken))
    throw new Error(`process ${taken.holder.pid} has been getting redis-server for too long`);
  // Next to the cache, and moved there when complete: an existing cache is always complete.
  const work = await mkdtemp(`${cache}-`);
  try {
    if (existsSync(cache)) return;
    await unpack(join(work, "packages"), join(work, "root"));
    await rename(join(work, "root"), cache);
  } catch (error) {
    throw new Error(
      `These tests need a redis-server: apt-get install redis-server, or put one on the PATH. ` +
        `It could not be unpacked from Debian's packages either: ${(error as Error).message}`,
    );
  } finally {
    await rm(work, { recursive: true, force: true });
    await taken.lock.release();
  }
}

async function unpack(packages: string, root: string): Promise<void> {
  await mkdir(packages, { recursive: true });
  await mkdir(root);
  // Most images come without package lists, and only root may fetch the machine's own: then fetches separate lists.
  await download(packages, []).catch(async () => download(packages, await ownLists(packages)));
  for (const file of await readdir(packages)) {
    if (file.endsWith(".deb")) await run("dpkg-deb", ["-x", join(packages, file), root]);
  }
}

async function download(folder: string, options: readonly string[]): Promise<void> {
  const names = ["redis-server", "redis-tools", ...(await missingLibraries(options))];
  await run("apt-get", [...options, "download", ...names], { cwd: folder, timeout: DOWNLOAD_TIMEOUT_MS });
}

async function ownLists(folder: string): Promise<string[]> {
  for (const each of ["lists/partial", "archives/partial"]) {
    await mkdir(join(folder, each), { recursive: true });
  }
  const settings = [`Dir::State::Lists=${folder}/lists`, `Dir::Cache=${folder}`, "APT::Sandbox::User="];
  const options = settings.flatMap((setting) => ["-o", setting]);
  await run("apt-get", [...options, "update"], { timeout: DOWNLOAD_TIMEOUT_MS });
  return options;
}

/** The libraries that the server needs and the machine lacks, level by level. */
async function missingLibraries(options: readonly string[]): Promise<string[]> {
  const installed = new Set(
    (await readFile("/var/lib/dpkg/status", "utf8"))
      .split("\n\n")
      .filter((entry) => /^Status: .* installed$/m.test(entry))
      .map((entry) => /^Package: (\S+)$/m.exec(entry)?.[1]),
  );
  const missing = new Set<string>();
  for (let level = ["redis-tools"]; level.length > 0; ) {
    const { stdout } = await run("apt-cache", [...options, "depends", "--important", ...level]);
    // A bar marks the next line as an alternative to this one: the first of them is enough.
    const lines = [...stdout.matchAll(/^ ([ |])(?:Pre)?Depends: (\S+)$/gm)];
    const names = lines.filter((_, at) => lines[at - 1]?.[1] !== "|").map(([, , name]) => name as string);
    level = [];
    for (const name of names) {
      if (!/^lib/.test(name) || installed.has(name) || missing.has(name)) continue;
      missing.add(name);
      level.push(name);
    }
  }
  return [...missing];
}

async function libraryFolders(root: string): Promise<string[]> {
  const found: string[] = [];
  for (const base of ["usr/lib", "lib"]) {
    const entries = await readdir(join(root, base)).catch(() => [] as string[]);
    found.push(...entries.filter((name) => name.includes("-linux-")).map((name) => join(root, base, name)));
  }
  return found;
}
