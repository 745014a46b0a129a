/**
 * Where the programs of our child processes are. Compiled, they lie beside this file. Run from source they would do so
 * too, but stripping types costs each child three times its start-up; so they are built once, by content, into the
 * repository's ignored cache folder.
 */
import { createHash } from "node:crypto";
import { mkdir, rename, stat, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export interface ChildEntries {
  readonly taskRunner: string;
  readonly guardian: string;
}

const FROM_SOURCE = import.meta.url.endsWith(".ts");

let entries: Promise<ChildEntries> | null = null;

/** One answer per process. */
export function childEntries(): Promise<ChildEntries> {
  entries ??= find();
  return entries;
}

async function find(): Promise<ChildEntries> {
  try {
    const [taskRunner, guardian] = await Promise.all([locate("task-runner"), locate("guardian")]);
    return { taskRunner, guardian };
  } finally {
    // Its compiler process would stay, and wake this one every second.
    if (FROM_SOURCE) await import("esbuild").then(({ stop }) => stop()).catch(() => {});
  }
}

async function locate(name: string): Promise<string> {
  const path = fileURLToPath(new URL(`./${name}/main.${FROM_SOURCE ? "ts" : "js"}`, import.meta.url));
  if (!FROM_SOURCE) return path;
  try {
    return await built(name, path);
  } catch {
    // Without the compiler or a writable cache: slower, but the same program.
    return path;
  }
}

async function built(name: string, path: string): Promise<string> {
  const { build } = await import("esbuild");
  const options = { bundle: true, platform: "node", format: "esm", target: "node22", write: false } as const;
  const result = await build({ ...options, entryPoints: [path], logLevel: "silent" });
  const code = result.outputFiles[0]!.contents;
  const hash = createHash("sha256").update(code).digest("hex").slice(0, 16);
  const cache = fileURLToPath(new URL("../../../../.cache/tradewind/", import.meta.url));
  const file = `${cache}${name}-${hash}.mjs`;
  if (await stat(file).catch(() => null)) return file;
  await mkdir(cache, { recursive: true });
  const draft = `${file}.${process.pid}.tmp`;
  await writeFile(draft, code);
  await rename(draft, file);
  return file;
}
