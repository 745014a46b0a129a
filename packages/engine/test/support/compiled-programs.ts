/**
 * What Node has compiled, kept for the processes that tests start by the thousand: from source, such a process spends
 * most of its life on stripping types and compiling. Node writes the cache when a process ends of itself.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { CACHE } from "./seed-folder.ts";

/** For this process and all that inherit its environment. */
export function keepCompiled(): void {
  process.env.NODE_COMPILE_CACHE ??= join(CACHE, "../test-compiled");
}

/**
 * Bundlers never end of themselves, they are killed: so one is started, with the options of the real ones, and left to
 * itself. It ends because its parent has nothing to say to it.
 */
export async function compileBundler(): Promise<void> {
  const main = join(import.meta.dirname, "../../src/bundle/bundler/main.ts");
  const flags = ["--conditions=source", "--no-warnings", "--max-old-space-size=1024"];
  const child = spawn(process.execPath, [...flags, main], {
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    timeout: 30_000,
  });
  child.once("spawn", () => child.disconnect());
  await once(child, "exit");
}
