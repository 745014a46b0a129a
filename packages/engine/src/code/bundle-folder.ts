/**
 * A bundle with requirements has a folder of its own: its module, `files` with the tree of its files, and a
 * `node_modules` with a link to each required package. Node resolves them there like any package, and resolves the imports
 * of a package from its real location.
 */
import { chmod, mkdir, readFile, readlink, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Bundled } from "./bundled.ts";
import type { InstalledPackage } from "./installed-package.ts";
import { readRequirements } from "./requirements.ts";

export const BUNDLE_MODULE = "bundle.mjs";

/** Another process may be creating the same links, or using them: a correct link stays, another is replaced atomically. */
export async function linkPackages(folder: string, packages: readonly InstalledPackage[]): Promise<void> {
  for (const { folder: target, name } of packages) {
    const link = join(folder, "node_modules", name);
    if ((await readlink(link).catch(() => null)) === target) continue;
    await mkdir(dirname(link), { recursive: true });
    const draft = `${link}.${process.pid}.${crypto.randomUUID()}.tmp`;
    try {
      await symlink(target, draft, "junction");
      await rename(draft, link);
    } catch (error) {
      await rm(draft, { force: true });
      if ((await readlink(link).catch(() => null)) !== target) throw error;
    }
  }
}

/** Provides the requirements of a file that was bundled on this machine. */
export async function provideRequirements(
  folder: string,
  { banner, files, installed }: Pick<Bundled, "banner" | "files" | "installed">,
): Promise<void> {
  await linkPackages(folder, installed);
  const paths = new Map(files.map(({ hash, path }) => [hash, path]));
  for (const [place, hash] of Object.entries(readRequirements(banner).files))
    await writeFileTree(folder, [[place, await readFile(paths.get(hash) ?? "")]]);
}

/** The path of a file of the tree in the folder of its bundle. */
export function fileIn(folder: string, place: string): string {
  return join(folder, "files", ...place.split("/"));
}

/** Written beside and renamed: a file under its name is complete, with any number of concurrent writers. */
export async function writeWhole(path: string, content: string | Uint8Array): Promise<void> {
  const draft = `${path}.${process.pid}.${crypto.randomUUID()}.tmp`;
  try {
    await writeFile(draft, content, { flush: true });
    // Readable with any umask: a process of another account may read it.
    await chmod(draft, 0o644);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

export async function writeFileTree(
  folder: string,
  files: Iterable<readonly [place: string, content: Uint8Array]>,
): Promise<void> {
  for (const [place, content] of files) {
    const path = fileIn(folder, place);
    await mkdir(dirname(path), { recursive: true });
    await writeWhole(path, content);
  }
}
