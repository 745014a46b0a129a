import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished, vi } from "vitest";
import { makeScratchFolder } from "./scratch-folder.ts";

it("removes what killed processes left, and nothing of the living, of other machines or of strangers", async () => {
  const temporary = mkdtempSync(join(tmpdir(), "tw-scratch-"));
  vi.stubEnv("TMPDIR", temporary);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(temporary, { recursive: true });
  });
  const left = await killedOwner();
  await writeFile(join(left, "dag-1.mjs"), "");
  const others = [
    "tradewind-bundler-deadbeef-1-0123456789abcdef-aaaaaa",
    "tradewind-bundler-aaaaaa",
    "other",
  ];
  for (const name of others) await mkdir(join(temporary, name));
  const first = await makeScratchFolder();
  expect(existsSync(left)).toBe(false);
  const second = await makeScratchFolder();
  const names = [first, second].map((path) => path.slice(temporary.length + 1));
  expect((await readdir(temporary)).sort()).toEqual([...others, ...names].sort());
});

/** The folder of a process that was killed while it had it. */
async function killedOwner(): Promise<string> {
  const module = fileURLToPath(new URL("./scratch-folder.ts", import.meta.url));
  const script = `const { makeScratchFolder } = await import(${JSON.stringify(module)});
    console.log(await makeScratchFolder()); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [path] = (await once(child.stdout, "data")) as [Buffer];
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  return path.toString().trim();
}
