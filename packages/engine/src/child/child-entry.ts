/**
 * The paths of the programs of child processes. Compiled, they are beside this file. From source they would be too, but
 * stripping types triples the start-up time of each child; so they are built once, by content, into the repository's
 * ignored cache folder.
 */
import { createHash } from "node:crypto";
import { mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

export interface ChildEntries {
  readonly taskRunner: string;
  readonly guardian: string;
  readonly triggerRunner: string;
  readonly timetableRunner: string;
}

/** Loaded by a child on first use; they are larger than all of its own code. */
const DRIVERS = ["pg", "ioredis", "@aws-sdk/*", "zod"];

const FROM_SOURCE = import.meta.url.endsWith(".ts");

let entries: Promise<ChildEntries> | null = null;

/** Computed once per process. */
export function childEntries(): Promise<ChildEntries> {
  entries ??= find();
  return entries;
}

async function find(): Promise<ChildEntries> {
  try {
    const [taskRunner, guardian, triggerRunner, timetableRunner] = await Promise.all([
      locate("task-runner", "../execute/task-runner/main"),
      locate("guardian", "./guardian/main"),
      locate("trigger-runner", "../trigger/runner/main"),
      locate("timetable-runner", "../plan/timetable-runner/main"),
    ]);
    return { taskRunner, guardian, triggerRunner, timetableRunner };
  } finally {
    // Its compiler process would stay, and wake this one every second.
    if (FROM_SOURCE) await import("esbuild").then(({ stop }) => stop()).catch(() => {});
  }
}

async function locate(name: string, module: string): Promise<string> {
  const path = fileURLToPath(new URL(`${module}.${FROM_SOURCE ? "ts" : "js"}`, import.meta.url));
  if (!FROM_SOURCE) return path;
  try {
    return await built(name, path);
  } catch {
    // Without the compiler or a writable cache: slower, but the same program.
    return path;
  }
}

/** One folder per program and content: its main file, and separate chunks for lazy imports. */
async function built(name: string, path: string): Promise<string> {
  const { build } = await import("esbuild");
  const { outputFiles } = await build({
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node22",
    conditions: ["source"],
    external: DRIVERS,
    entryPoints: [path],
    outdir: ".",
    outExtension: { ".js": ".mjs" },
    write: false,
    logLevel: "silent",
  });
  const hash = createHash("sha256");
  for (const file of outputFiles) hash.update(basename(file.path)).update(file.contents);
  const cache = fileURLToPath(new URL("../../../../.cache/tradewind/", import.meta.url));
  const folder = `${cache}${name}-${hash.digest("hex").slice(0, 16)}`;
  if (await stat(folder).catch(() => null)) return `${folder}/main.mjs`;
  const draft = `${folder}.${process.pid}.tmp`;
  await mkdir(draft, { recursive: true });
  for (const file of outputFiles) await writeFile(`${draft}/${basename(file.path)}`, file.contents);
  try {
    await rename(draft, folder);
  } catch (error) {
    // Another process was faster, with the same bytes.
    await rm(draft, { recursive: true, force: true });
    if (!(await stat(folder).catch(() => null))) throw error;
  }
  return `${folder}/main.mjs`;
}
