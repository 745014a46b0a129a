/**
 * The compile cache of Node, shared by the many processes that tests start: without it, such a process spends most of its
 * life on stripping types and compiling. Node writes the cache when a process exits by itself.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { CACHE } from "./seed-folder.ts";

/** For this process and all processes that inherit its environment. */
export function keepCompiled(): void {
  process.env.NODE_COMPILE_CACHE ??= join(CACHE, "../test-compiled");
}

/** Real bundlers are killed. So this starts one with the same options and disconnects it: then it exits by itself. */
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
