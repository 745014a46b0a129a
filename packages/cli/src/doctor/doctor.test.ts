import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { runCaptured } from "../../test/support/captured-host.ts";

it.each([
  ["TRADEWIND_OUTPUT_STORE", "/tmp/x"],
  ["TRADEWIND_OUTPUT_STORE", "file:outputs"],
  ["TRADEWIND_OUTPUT_LIMIT", "256MB"],
  ["TRADEWIND_PORT", "eighty"],
])("%s=%s is one line, and nothing that needs the settings is looked at", async (name, value) => {
  const { code, stdout } = await runCaptured(["doctor", "--json"], { env: { [name]: value } });
  expect(code).toBe(1);
  const checks = JSON.parse(stdout) as { name: string; result: string; says: string }[];
  expect(checks.filter(({ result }) => result === "fail")).toEqual([
    expect.objectContaining({
      name: "configuration",
      says: expect.stringContaining(`${name} is "${value}"`),
    }),
  ]);
  expect(checks.map((check) => check.name)).toEqual(["Node.js", "home", "configuration", "server"]);
});

it("looks at the store of the standalone that runs, not at that of its own shell", async () => {
  const home = await mkdtemp(join(tmpdir(), "tradewind-doctor-"));
  onTestFinished(() => rm(home, { recursive: true }));
  // A folder where the system makes none, and where Node's own recursive mkdir tries forever.
  const standalone = { url: "http://127.0.0.1:9", pid: process.pid, outputStore: "file:/proc/nope" };
  const check = async () => {
    const { stdout } = await runCaptured(["doctor", "--json"], { env: { TRADEWIND_HOME: home } });
    const checks = JSON.parse(stdout) as { name: string; result: string; says: string }[];
    return checks.filter(({ name }) => name === "outputs").map(({ result, says }) => `${result} ${says}`);
  };
  expect(await check()).toEqual([
    `ok ${join(home, "outputs")} can be written, as this shell has TRADEWIND_OUTPUT_STORE`,
  ]);
  await writeFile(join(home, "standalone.json"), JSON.stringify(standalone));
  expect(await check()).toEqual([
    "warn the standalone that runs puts them into file:/proc/nope, and this shell says file:",
    expect.stringMatching(/^fail the store of large outputs, file:\/proc\/nope, cannot be used: ENOENT/),
  ]);
});
