/** The content of /proc/<pid>/environ of a service, as seen by other processes of its account. */
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { runCli } from "./support/standalone-process.ts";

const KEY = Buffer.alloc(32, 7).toString("base64");

it.runIf(existsSync("/proc/self/environ")).each([false, true])(
  "hides the secrets of a service that still uses them (options before its name: %s)",
  async (hasOptionsFirst) => {
    const folder = await mkdtemp(join(tmpdir(), "tradewind-environ-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    let environ = "";
    const { code, stderr } = await runCli(
      [...(hasOptionsFirst ? ["--home", join(folder, "home")] : []), "scheduler"],
      {
        DATABASE_URL: "postgresql://ann:s3cret@127.0.0.1:1/shop",
        TRADEWIND_SECRET_KEY: KEY,
        TRADEWIND_HOME: join(folder, "home"),
        TRADEWIND_TASK_REGION: "eu",
        TMPDIR: folder,
      },
      async (child, said) => {
        // No server listens on port 1: the scheduler has read DATABASE_URL and waits.
        while (!said().includes("waiting for the database") && child.exitCode === null)
          await new Promise(setImmediate);
        environ = await readFile(`/proc/${child.pid}/environ`, "utf8");
        child.kill("SIGTERM");
      },
    );
    expect([code, stderr]).toEqual([0, expect.stringContaining("127.0.0.1:1")]);
    expect(environ).toContain("TRADEWIND_TASK_REGION=eu");
    expect(environ).not.toContain("s3cret");
    expect(environ).not.toContain(KEY);
    expect((await readdir(folder)).filter((name) => name.startsWith("tradewind-start-"))).toEqual([]);
  },
);
