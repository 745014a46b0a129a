/**
 * A real Chromium: the one of CHROMIUM_PATH, one that the machine has, or the one from the npm package. It connects to this
 * machine only, as the tests of pages abort every request for another origin.
 */
import { existsSync } from "node:fs";
import chromium from "@sparticuz/chromium";
import { type Browser, chromium as playwright } from "playwright-core";

const INSTALLED = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

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

/** Unpacked into the temporary folder at its first use. */
async function packaged(): Promise<string> {
  chromium.setGraphicsMode = false;
  return chromium.executablePath();
}
