import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { BundleCache } from "./bundle-cache.ts";

const HASH = "0123456789abcdef";
let dir: string;
let fetched: string[];

beforeEach(async () => {
  dir = join(await mkdtemp(join(tmpdir(), "tradewind-bundles-")), "deep", "bundles");
  fetched = [];
});
afterEach(async () => await rm(join(dir, "..", ".."), { recursive: true }));

test("fetches once, for many callers at once, and again only when the file is gone", async () => {
  const cache = new BundleCache(dir, fetch);
  expect(cache.known(HASH)).toBeUndefined();
  const paths = await Promise.all(Array.from({ length: 20 }, () => cache.path(HASH)));
  expect(new Set(paths)).toEqual(new Set([join(dir, `${HASH}.mjs`)]));
  expect(await readFile(paths[0]!, "utf8")).toBe("code of 0123456789abcdef");
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

test("two caches on one folder, and a file cut to nothing, end in one whole file", async () => {
  await Promise.all([new BundleCache(dir, fetch).path(HASH), new BundleCache(dir, fetch).path(HASH)]);
  await writeFile(join(dir, `${HASH}.mjs`), "");
  const path = await new BundleCache(dir, fetch).path(HASH);
  expect(await readFile(path, "utf8")).toBe("code of 0123456789abcdef");
});

test("a failed fetch leaves nothing and is tried again", async () => {
  let broken = true;
  const cache = new BundleCache(dir, async (hash) => {
    if (broken) throw new Error("no database");
    return await fetch(hash);
  });
  await expect(cache.path(HASH)).rejects.toThrow("no database");
  broken = false;
  expect(await readFile(await cache.path(HASH), "utf8")).toContain(HASH);
});

test("a hash that could be a path is refused", async () => {
  await expect(new BundleCache(dir, fetch).path("../../etc/passwd")).rejects.toMatchObject({
    code: "BUNDLE_HASH_INVALID",
  });
});

async function fetch(hash: string): Promise<string> {
  fetched.push(hash);
  return `code of ${hash}`;
}
