import { chmod, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { compileBundler, keepCompiled } from "./compiled-programs.ts";
import { memoryFolder } from "./memory-folder.ts";
import { CACHE } from "./seed-folder.ts";
import { openSharedPostgres } from "./shared-postgres.ts";

declare module "vitest" {
  export interface ProvidedContext {
    readonly testPostgres: { readonly adminUrl: string; readonly template: string };
  }
}

/** Vitest runs this once before the first test file, and the returned function after the last. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const memory = memoryFolder();
  keepCompiled();
  const [shared] = await Promise.all([openSharedPostgres(memory ?? CACHE), compileBundler()]);
  project.provide("testPostgres", { adminUrl: shared.adminUrl, template: shared.template });
  if (memory !== undefined) process.env.TMPDIR = await temporaryFolder(memory);
  return () =>
    shared.stop(async () => {
      // Tests delete their files, but killed tests do not, and memory is scarce.
      if (memory !== undefined) await rm(join(memory, "tmp"), { recursive: true, force: true });
    });
}

/** As accessible as the system's own folder: some tests start programs under another account. */
async function temporaryFolder(memory: string): Promise<string> {
  const folder = join(memory, "tmp");
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o1777);
  return folder;
}
