import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { runCaptured } from "../../test/support/captured-host.ts";

it.each([
  ["TRADEWIND_OUTPUT_STORE", "/tmp/x"],
  ["TRADEWIND_OUTPUT_STORE", "file:outputs"],
  ["TRADEWIND_LOG_STORE", "s3:logs"],
  ["TRADEWIND_OUTPUT_LIMIT", "256MB"],
  ["TRADEWIND_PORT", "eighty"],
])("reports %s=%s in one line and skips checks that need the settings", async (name, value) => {
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

it.each([
  ["outputs", "outputStore", "TRADEWIND_OUTPUT_STORE", "large outputs"],
  ["logs", "logStore", "TRADEWIND_LOG_STORE", "logs"],
])(
  "checks the store of %s of the running standalone, not that of its own shell",
  async (store, setting, variable, what) => {
    const home = await mkdtemp(join(tmpdir(), "tradewind-doctor-"));
    onTestFinished(() => rm(home, { recursive: true }));
    // The system allows no folders there, and Node's recursive mkdir would try forever.
    const standalone = { url: "http://127.0.0.1:9", pid: process.pid, [setting]: "file:/proc/nope" };
    const check = async () => {
      const { stdout } = await runCaptured(["doctor", "--json"], { env: { TRADEWIND_HOME: home } });
      const checks = JSON.parse(stdout) as { name: string; result: string; says: string }[];
      return checks.filter(({ name }) => name === store).map(({ result, says }) => `${result} ${says}`);
    };
    expect(await check()).toEqual([`ok ${join(home, store)} is writable (${variable} of this shell)`]);
    await writeFile(join(home, "standalone.json"), JSON.stringify(standalone));
    expect(await check()).toEqual([
      "warn the running standalone uses file:/proc/nope, this shell file:",
      expect.stringContaining(`fail the store for ${what}, file:/proc/nope, is not usable: ENOENT`),
    ]);
  },
);
