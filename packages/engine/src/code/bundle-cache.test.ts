import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { StoredBundle } from "../store/dag/bundles.ts";
import { artefactHash } from "./artefact-hash.ts";
import { BundleCache } from "./bundle-cache.ts";
import { type BundleText, bundleText } from "./bundle-text.ts";

const CODE = "export const it = 1;\n";
const HASH = artefactHash(CODE);
const SHARED_CHUNK = { hash: "abc123", names: ["one", "two"], code: "let one = 1;\nlet two = 2;\n" };
const HEAD = "// head\n";
const BODIES = ["\nexport const sum = one + two;\n", "\nexport const sum = two + one;\n"] as const;
const [SUM, OTHER] = BODIES.map((body) => artefactHash(HEAD + SHARED_CHUNK.code + body)) as [string, string];
let dir: string;
let fetched: string[];

beforeEach(async () => {
  dir = join(await mkdtemp(join(tmpdir(), "tradewind-bundles-")), "deep", "bundles");
  fetched = [];
});
afterEach(async () => await rm(join(dir, "..", ".."), { recursive: true }));

test("fetches once for concurrent callers, and again only if the file is gone", async () => {
  const cache = new BundleCache(dir, fetch);
  expect(cache.known(HASH)).toBeUndefined();
  const paths = await Promise.all(Array.from({ length: 20 }, () => cache.path(HASH)));
  expect(new Set(paths)).toEqual(new Set([join(dir, `${HASH}.mjs`)]));
  expect(await readFile(paths[0]!, "utf8")).toBe(CODE);
  expect(await readdir(dir)).toEqual([`${HASH}.mjs`]);
  expect(fetched).toHaveLength(1);
  expect(cache.known(HASH)).toBe(paths[0]);

  await new BundleCache(dir, fetch).path(HASH);
  expect(fetched).toHaveLength(1);

  await rm(paths[0]!);
  cache.forget(HASH);
  await cache.path(HASH);
  expect(fetched).toHaveLength(2);
});

test("two caches on one folder, and a truncated file, end in one complete file", async () => {
  await Promise.all([new BundleCache(dir, fetch).path(HASH), new BundleCache(dir, fetch).path(HASH)]);
  await writeFile(join(dir, `${HASH}.mjs`), "");
  const path = await new BundleCache(dir, fetch).path(HASH);
  expect(await readFile(path, "utf8")).toBe(CODE);
});

test("the shared part of bundles is one file beside them, and is restored if lost", async () => {
  const cacheOf = () =>
    new BundleCache(dir, async (hash) => {
      fetched.push(hash);
      return bundleText(stored(hash));
    });
  const [first, second] = [await cacheOf().path(SUM), await cacheOf().path(OTHER)];
  expect(new Set(await readdir(dir))).toEqual(new Set([`${SUM}.mjs`, `${OTHER}.mjs`, "chunk-abc123.mjs"]));
  for (const path of [first, second]) expect(await import(path)).toMatchObject({ sum: 3 });
  // The code begins at the same line as with the shared chunk in its place: the source map relies on it.
  expect((await readFile(first, "utf8")).split("\n").indexOf("export const sum = one + two;")).toBe(4);

  await writeFile(join(dir, "chunk-abc123.mjs"), "");
  await cacheOf().path(SUM);
  expect(fetched).toEqual([SUM, OTHER, SUM]);
  expect(await readFile(join(dir, "chunk-abc123.mjs"), "utf8")).toContain("export { one, two };");
  await cacheOf().path(OTHER);
  expect(fetched).toHaveLength(3);
});

test("a file with any changed part is replaced before it is loaded", async () => {
  const cacheOf = () => new BundleCache(dir, async (hash) => bundleText(stored(hash)));
  const path = await cacheOf().path(SUM);
  const shared = join(dir, "chunk-abc123.mjs");
  const whole = { [path]: await readFile(path, "utf8"), [shared]: await readFile(shared, "utf8") };
  for (const [file, text] of Object.entries(whole)) {
    for (const changed of [
      `${text}evil();\n`,
      `evil();\n${text}`,
      text.replaceAll("one", "two"),
      text.slice(0, -1),
    ]) {
      await writeFile(file, changed);
      await cacheOf().path(SUM);
      expect(await readFile(file, "utf8")).toBe(text);
    }
  }
});

test("stored code that does not match its hash is rejected", async () => {
  const changed = new BundleCache(dir, async (hash) =>
    bundleText({ ...stored(hash), code: "export const sum = 4;\n" }),
  );
  await expect(changed.path(SUM)).rejects.toMatchObject({ code: "BUNDLE_CORRUPT" });
  const empty = new BundleCache(dir, async () => ({ code: "", sharedChunk: null }));
  await expect(empty.path(HASH)).rejects.toMatchObject({ code: "BUNDLE_CORRUPT" });
});

test("a failed fetch leaves nothing and is retried", async () => {
  let broken = true;
  const cache = new BundleCache(dir, async (hash) => {
    if (broken) throw new Error("no database");
    return await fetch(hash);
  });
  await expect(cache.path(HASH)).rejects.toThrow("no database");
  broken = false;
  expect(await readFile(await cache.path(HASH), "utf8")).toBe(CODE);
});

test("a hash that could be a path is rejected", async () => {
  await expect(new BundleCache(dir, fetch).path("../../etc/passwd")).rejects.toMatchObject({
    code: "BUNDLE_HASH_INVALID",
  });
});

function stored(hash: string): StoredBundle {
  const map = JSON.stringify({ version: 3, sources: ["a.ts"], mappings: "" });
  return { head: HEAD, sharedChunk: SHARED_CHUNK, code: BODIES[hash === SUM ? 0 : 1], sourceMap: map };
}

async function fetch(hash: string): Promise<BundleText> {
  fetched.push(hash);
  return { code: CODE, sharedChunk: null };
}
