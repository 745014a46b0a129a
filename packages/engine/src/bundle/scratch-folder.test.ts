import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";

it("removes folders of killed processes, and none of running processes, other machines or other programs", async () => {
  const temporary = mkdtempSync(join(tmpdir(), "tw-scratch-"));
  onTestFinished(() => rmSync(temporary, { recursive: true }));
  const killed = await owner(temporary);
  await killed.end();
  await writeFile(join(killed.path, "dag-1.mjs"), "");
  const others = [
    "tradewind-bundler-deadbeef-1-0123456789abcdef-aaaaaa",
    "tradewind-bundler-aaaaaa",
    "other",
  ];
  for (const name of others) await mkdir(join(temporary, name));
  const first = await owner(temporary);
  expect(existsSync(killed.path)).toBe(false);
  const second = await owner(temporary);
  const names = [first, second].map(({ path }) => basename(path));
  expect((await readdir(temporary)).sort()).toEqual([...others, ...names].sort());
  await Promise.all([first.end(), second.end()]);
});

/** A process with a folder of its own; `end` kills it. */
async function owner(temporary: string): Promise<{ path: string; end(): Promise<unknown> }> {
  const module = fileURLToPath(new URL("./scratch-folder.ts", import.meta.url));
  const script = `const { makeScratchFolder } = await import(${JSON.stringify(module)});
    console.log(await makeScratchFolder()); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env.PATH, TMPDIR: temporary },
  });
  const [path] = (await once(child.stdout, "data")) as [Buffer];
  const ended = once(child, "exit");
  const end = () => {
    child.kill("SIGKILL");
    return ended;
  };
  return { path: path.toString().trim(), end };
}
