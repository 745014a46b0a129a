import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { BundleCache } from "./bundle-cache.ts";
import { type BundleText, bundleText } from "./bundle-text.ts";

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

test("what bundles share is one file beside them, and is there again when it was lost", async () => {
  const prelude = { hash: "abc123", names: ["one", "two"], code: "let one = 1;\nlet two = 2;\n" };
  const cacheOf = () =>
    new BundleCache(dir, async (hash) => {
      fetched.push(hash);
      return bundleText({
        head: "// head\n",
        prelude,
        code: `export const sum = one + two;`,
        sourceMap: null,
      });
    });
  const [first, second] = [await cacheOf().path(HASH), await cacheOf().path(`${HASH}2`)];
  expect(await readdir(dir)).toEqual([`${HASH}.mjs`, `${HASH}2.mjs`, "prelude-abc123.mjs"]);
  for (const path of [first, second]) expect(await import(path)).toMatchObject({ sum: 3 });
  // The code begins where it would if the prelude were in its place: that is what the source map counts by.
  expect((await readFile(first, "utf8")).split("\n").indexOf("export const sum = one + two;")).toBe(3);

  await writeFile(join(dir, "prelude-abc123.mjs"), "");
  await cacheOf().path(HASH);
  expect(fetched).toEqual([HASH, `${HASH}2`, HASH]);
  expect(await readFile(join(dir, "prelude-abc123.mjs"), "utf8")).toContain("export { one, two };");
  await cacheOf().path(`${HASH}2`);
  expect(fetched).toHaveLength(3);
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

async function fetch(hash: string): Promise<BundleText> {
  fetched.push(hash);
  return { code: `code of ${hash}`, prelude: null };
}
