/** (a) What a browser loads before the first page is shown. */

import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import type { Figure } from "../../result.ts";
import type { Stage } from "../stage.ts";

export async function initialJavaScript(stage: Stage): Promise<Figure[]> {
  const html = await (await fetch(stage.url)).text();
  const initial = [...html.matchAll(/(?:src|href)="([^"]+\.js)"/g)].map(([, path]) => path as string);
  const loaded = new Set<string>();
  const context = await stage.profile();
  context.on("response", (response) => {
    if (response.url().endsWith(".js")) loaded.add(response.url());
  });
  await stage.visit("/", () => sleep(3_000), context);
  await context.close();
  const base = new URL(/<base href="([^"]+)"/.exec(html)?.[1] ?? "/", stage.url);
  return [
    await size(
      "JavaScript that the page names",
      initial.map((path) => new URL(path, base).href),
      300,
    ),
    await size("JavaScript of Home, with all that it loads later", [...loaded], 300),
  ];
}

async function size(what: string, urls: readonly string[], atMost: number): Promise<Figure> {
  const sizes = await Promise.all(
    urls.map(async (url) => gzipSync(await (await fetch(url)).bytes()).length / 1_000),
  );
  const value = sizes.reduce((sum, each) => sum + each, 0);
  return { scenario: "a", what, value, unit: "KB gzip", bar: { atMost }, note: `${urls.length} files` };
}
