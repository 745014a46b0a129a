import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { browserCommand } from "../src/browser.ts";
import { runCaptured } from "./support/captured-host.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

let served: ServedInstallation;

beforeAll(async () => {
  served = await servedInstallation();
});

/** The status of the first and the second sign-in with a link. */
async function signInTwice(link: string): Promise<number[]> {
  const { hash, origin } = new URL(link);
  const statuses: number[] = [];
  for (const _ of [1, 2]) {
    const response = await fetch(`${origin}/ui/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code: hash.replace("#code=", "") }),
    });
    statuses.push(response.status);
  }
  return statuses;
}

describe("open", () => {
  it("prints a link that signs one browser in", async () => {
    const { code, stdout, stderr } = await served.tw("open", "--no-browser");
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^${served.url}/sign-in#code=[\\w-]{43}\\n$`));
    expect(stderr).toBe("The link signs one browser in, once; it expires in 10 m.\n");
    expect(await signInTwice(stdout.trim())).toEqual([204, 401]);
    const json = JSON.parse((await served.tw("open", "--json")).stdout);
    expect(json).toEqual({ url: expect.stringContaining("#code="), expires_at: expect.any(String) });
  });

  it("opens it in the browser", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tw-open-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const browser = join(folder, "browser");
    await writeFile(browser, `#!/bin/sh\nprintf %s "$1" > "${folder}/opened"\n`);
    await chmod(browser, 0o755);
    const env = { TRADEWIND_URL: served.url, TRADEWIND_TOKEN: served.server.token };
    const opened = await runCaptured(["open"], { env: { ...env, BROWSER: browser } });
    expect(opened.stderr).toContain("Opened in the browser.");
    await expect
      .poll(() => readFile(join(folder, "opened"), "utf8").catch(() => ""))
      .toBe(opened.stdout.trim());
    const missing = await runCaptured(["open"], { env: { ...env, BROWSER: join(folder, "none") } });
    expect([missing.code, missing.stderr]).toEqual([0, expect.not.stringContaining("Opened")]);
  });

  it("needs a token that is not a worker's", async () => {
    const { token } = (await served.server.call("POST", "/tokens", { name: "w", role: "worker" })).json();
    const env = { TRADEWIND_URL: served.url, TRADEWIND_TOKEN: token };
    const { code, stderr } = await runCaptured(["open"], { env });
    expect([code, stderr]).toEqual([4, expect.stringContaining("has the role worker")]);
  });
});

it.each([
  ["linux", {}, undefined],
  ["linux", { DISPLAY: ":0" }, ["xdg-open"]],
  ["linux", { WAYLAND_DISPLAY: "wayland-0" }, ["xdg-open"]],
  ["linux", { BROWSER: "firefox" }, ["firefox"]],
  ["darwin", {}, ["open"]],
  ["darwin", { SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22" }, undefined],
  ["win32", {}, ["rundll32", "url.dll,FileProtocolHandler"]],
] as const)("finds the browser on %s with %j", (platform, env, command) => {
  expect(browserCommand(platform, env)).toEqual(command);
});
