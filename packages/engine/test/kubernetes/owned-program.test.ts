import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isAlive } from "../support/process-alive.ts";
import { ownedProgram } from "./owned-program.ts";

let folder: string;

describe("owned program", () => {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "tw-owned-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it.each(["SIGKILL", "SIGTERM"] as const)("ends when the group of its owner receives %s", async (signal) => {
    const module = join(import.meta.dirname, "owned-program.ts");
    const start = `(await import(${JSON.stringify(module)})).ownedProgram("sh", ["-c", "trap '' TERM; echo $$; exec sleep 1000"], ${JSON.stringify(log())})`;
    const owner = spawn(process.execPath, ["--conditions=source", "--input-type=module", "-e", start], {
      stdio: ["ignore", "inherit", "inherit"],
      detached: true,
    });
    const pid = await startedPid();
    expect(isAlive(pid)).toBe(true);
    process.kill(-(owner.pid as number), signal);
    await once(owner, "exit");
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 30_000, interval: 20 });
  });

  it("has ended after kill", async () => {
    const program = await ownedProgram("sh", ["-c", "trap '' TERM; echo $$; exec sleep 1000"], log());
    const pid = await startedPid();
    await program.kill();
    expect(isAlive(pid)).toBe(false);
    expect(program.isRunning).toBe(false);
  });

  it("keeps the last lines of a program that has ended", async () => {
    const program = await ownedProgram("sh", ["-c", "echo wrong port >&2; exit 1"], log());
    await vi.waitFor(() => expect(program.isRunning).toBe(false), { timeout: 30_000, interval: 20 });
    expect(await program.lastLines()).toBe("wrong port");
  });
});

function log(): string {
  return join(folder, "log");
}

function startedPid(): Promise<number> {
  const read = async () => {
    const output = await readFile(log(), "utf8");
    expect(output).toMatch(/^\d+\n/);
    return Number.parseInt(output, 10);
  };
  return vi.waitFor(read, { timeout: 30_000, interval: 20 });
}
