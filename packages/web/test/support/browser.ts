/**
 * A real Chromium: the one of CHROMIUM_PATH, one that the machine has, or the one from the npm package. It connects to this
 * machine only, as the tests of pages abort every request for another origin.
 */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import chromium from "@sparticuz/chromium";
import { type Browser, chromium as playwright } from "playwright-core";

/** For programs outside of this package. */
export type { Browser, BrowserContext, Page } from "playwright-core";

const INSTALLED = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Of a process that waits for another one, which may have died. */
const UNPACK_MS = 60_000;

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function launchBrowser(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM_PATH ?? INSTALLED.find(existsSync) ?? (await packaged());
  return playwright.launch({ executablePath, args: FLAGS, headless: true });
}

/** Unpacked into the temporary folder at its first use: by one process, while others wait for it. */
async function packaged(): Promise<string> {
  chromium.setGraphicsMode = false;
  const ready = join(tmpdir(), "chromium.ready");
  const lock = join(tmpdir(), "chromium.lock");
  const deadline = Date.now() + UNPACK_MS;
  while (!existsSync(ready) && Date.now() < deadline) {
    try {
      await mkdir(lock);
    } catch {
      await sleep(50);
      continue;
    }
    await chromium.executablePath();
    await writeFile(ready, "");
  }
  return chromium.executablePath();
}
