import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, expect, it, vi } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { BundleCache } from "../code/bundle-cache.ts";
import { fetchBundle } from "../process/parts/fetch-bundle.ts";
import { adhoc } from "../store/database/database.ts";
import { FolderFixture, importErrors, processorOn, versions } from "./dag-folder-fixture.ts";

let test: TestDatabase;
beforeEach(async () => {
  test = await testDatabase();
  return () => test.close();
});

const WAIT = { timeout: 50_000, interval: 100 };

/** A DAG whose `docs` is the result of `read()` while the file is imported, and which exports `read`. */
const dagOf = (body: string, imports = "") => `import { dag } from "tradewind";
import { readFileSync } from "node:fs"; import { join, dirname } from "node:path"; import { fileURLToPath } from "node:url"; ${imports}
${body}
export default dag("a", { docs: String(read()) }, (d) => { d.task("t", () => read()); });
`;

const stored = async () =>
  (
    await test.db.rows<{ hash: string; docs: string; text: string }>(
      adhoc(`SELECT v.bundle_hash AS hash, v.manifest->>'docs' AS docs, head || code || source_map AS text
             FROM dag d JOIN dag_version v ON v.id = d.version_id JOIN bundle b ON b.hash = v.bundle_hash`),
    )
  )[0] ?? { hash: "", docs: "", text: "" };

const cacheOf = () => new BundleCache(new FolderFixture().path, (hash) => fetchBundle(test.db, hash));

/** The result of `read` of the stored bundle in a separate process, from the database only. */
async function readElsewhere(hash: string, call = "read()"): Promise<string> {
  const path = await cacheOf().path(hash);
  const script = `import * as bundle from ${JSON.stringify(path)}; const { read } = bundle; console.log(${call})`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
    env: {},
  });
  return stdout.trimEnd();
}

it("stores the files that modules name beside them, and provides them to any process that runs the bundle", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "project/dags/etl/a.ts": dagOf(
      `const here = dirname(fileURLToPath(import.meta.url));
       export const read = () => [
         readFileSync(new URL("./one.sql", import.meta.url), "utf8"),
         readFileSync(join(import.meta.dirname, "..", "two and #2.sql"), "utf8"),
         readFileSync(join(here, "one.sql"), "utf8"),
         shared("three"),
       ].join();`,
      `import { shared } from "../../lib/shared.ts";`,
    ),
    "project/dags/etl/one.sql": "one",
    "project/dags/two and #2.sql": "two",
    "project/lib/shared.ts": `import { readFileSync } from "node:fs";
      export const shared = (name: string) => readFileSync(\`\${import.meta.dirname}/sql/\${name}.sql\`, "utf8");`,
    "project/lib/sql/three.sql": "three",
    "project/lib/sql/deep/four.sql": "four",
  });
  const dags = join(folder.path, "project/dags");
  const processor = processorOn(test.db, folder, { folder: dags });
  expect(await processor.runOnce()).toMatchObject({ published: 1, failed: 0 });
  const first = await stored();
  expect(first.docs).toBe("one,two,one,three");
  expect(first.text).not.toContain(folder.path);
  await folder.write({ "project/lib/sql/three.sql": "THREE" });
  expect(await processor.runOnce()).toMatchObject({ published: 1, bundled: 1 });
  await folder.write({ "project/lib/sql/five.sql": "five" });
  expect(await processor.runOnce()).toMatchObject({ published: 1, bundled: 1 });
  await processor.runOnce(); // a file that was just written is bundled once more
  expect(await processor.runOnce()).toMatchObject({ unchanged: 1, bundled: 0 });
  expect(await versions(test.db)).toEqual({ a: 3 });
  const last = await stored();
  await folder.remove("project");
  expect(await readElsewhere(first.hash)).toBe("one,two,one,three");
  expect(await readElsewhere(last.hash)).toBe("one,two,one,THREE");
  expect(
    await test.db.rows(
      adhoc("SELECT convert_from(content, 'UTF8') AS text FROM bundled_file ORDER BY content"),
    ),
  ).toEqual(["THREE", "five", "four", "one", "three", "two"].map((text) => ({ text })));
});

it("imports text, JSON, YAML and bytes by their attribute", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "a.ts": dagOf(
      `export const read = () => JSON.stringify([text, json, yaml, plain, [...bytes]]);`,
      `import text from "./q.psql" with { type: "text" }; import json from "./c.json" with { type: "json" };
       import yaml from "./c.yaml" with { type: "yaml" }; import plain from "./c.yaml"; import bytes from "./b.bin" with { type: "bytes" };`,
    ),
    "q.psql": "SELECT 1",
    "c.json": `{ "n": 1 }`,
    "c.yaml": "list: [1, two]",
    "b.bin": "\u0001\u0002",
    "bad.ts": `import "tradewind"; import bad from "./bad.yaml" with { type: "yaml" }; console.log(bad);`,
    "bad.yaml": "ok: 1\nlist: [1, two",
  });
  const processor = processorOn(test.db, folder);
  expect(await processor.runOnce()).toMatchObject({ published: 1, failed: 1 });
  const { docs, hash } = await stored();
  expect(JSON.parse(docs)).toEqual(["SELECT 1", { n: 1 }, { list: [1, "two"] }, "list: [1, two]", [1, 2]]);
  expect(await readElsewhere(hash)).toBe(docs);
  expect((await importErrors(test.db))["bad.ts"]).toMatch(/^bad\.yaml:2:\d+: /);
  await folder.write({ "c.yaml": "list: []" });
  expect(await processor.runOnce()).toMatchObject({ published: 1 });
});

it("reports a missing file with its line, and loads the DAG once the file exists", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "dags/a.ts": dagOf("export const read = () => query();", `import { query } from "./lib/query.ts";`),
    "dags/lib/query.ts": `import { readFileSync } from "node:fs";\n\nexport const query = () =>\n  readFileSync(new URL("./q.sql", import.meta.url), "utf8");\n`,
  });
  const processor = processorOn(test.db, folder, { folder: join(folder.path, "dags") });
  await processor.start();
  await vi.waitFor(async () => expect(await importErrors(test.db)).toHaveProperty(["a.ts"]), WAIT);
  const error = (await importErrors(test.db))["a.ts"];
  expect(error).toMatch(
    /^lib\/query\.ts:4:16: There is no file "q\.sql" beside this module.*\[DAG_FILE_MISSING\]\n/,
  );
  expect(error).toContain(`> 4 |   readFileSync(new URL("./q.sql", import.meta.url), "utf8");`);
  await folder.write({ "dags/lib/q.sql": "SELECT 1" });
  await vi.waitFor(async () => expect((await stored()).docs).toBe("SELECT 1"), WAIT);
  await folder.write({ "dags/lib/q.sql": "SELECT 2" });
  await vi.waitFor(async () => expect((await stored()).docs).toBe("SELECT 2"), WAIT);
});

it("gives a hint for a path that is known only at run time", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "a.ts": dagOf(
      `export const read = (name = "q.sql") => readFileSync(join(import.meta.dirname, name), "utf8");`,
    ),
    "b.ts": dagOf(
      `const file = (name: string) => join(import.meta.dirname, name);
       export const read = () => readFileSync(new URL("./q.sql", import.meta.url)) + readFileSync(file("other.sql"), "utf8");`,
    ),
    "q.sql": "",
    "other.sql": "",
  });
  expect(await processorOn(test.db, folder).runOnce()).toMatchObject({ failed: 2 });
  for (const error of Object.values(await importErrors(test.db)))
    expect(error).toMatch(
      /ENOENT.*\[ENOENT\]\. The DAG's bundle does not contain this file\. .*new URL\("\.\/sql\/", import\.meta\.url\)/,
    );
});

it("rejects more files than a bundle may have", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "a.ts": dagOf(`export const read = () => readFileSync(new URL("./large.bin", import.meta.url)).length;`),
    "large.bin": "x".repeat(33 * 1024 * 1024),
  });
  expect(await processorOn(test.db, folder).runOnce()).toMatchObject({ failed: 1 });
  expect((await importErrors(test.db))["a.ts"]).toMatch(
    /^a\.ts:3:\d+: .*more than 2000 files or 32 MB.*\[DAG_FILES_TOO_LARGE\]/,
  );
});

it("restores a file that was changed on disk before the bundle is loaded, and rejects one that was changed in the database", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "a.ts": dagOf(`export const read = () => readFileSync(new URL("./q.sql", import.meta.url), "utf8");`),
    "q.sql": "SELECT 1",
  });
  await processorOn(test.db, folder).runOnce();
  const { hash } = await stored();
  const disk = new FolderFixture().path;
  const cache = () => new BundleCache(disk, (each) => fetchBundle(test.db, each));
  const file = join(dirname(await cache().path(hash)), "files/q.sql");
  await writeFile(file, "DROP TABLE x");
  await cache().path(hash);
  expect(await readFile(file, "utf8")).toBe("SELECT 1");
  await test.db.rows(adhoc("UPDATE bundled_file SET content = 'DROP TABLE x'"));
  await expect(cacheOf().path(hash)).rejects.toMatchObject({ code: "BUNDLE_CORRUPT" });
});

it("does not bundle a package that reads its own files", async () => {
  const folder = new FolderFixture();
  const about = (name: string) => `{ "name": "${name}", "version": "1.0.0" }`;
  await folder.write({
    "node_modules/reader/package.json": about("reader"),
    "node_modules/reader/index.js": `const { readFileSync } = require("fs"); exports.text = readFileSync(require("path").join(__dirname, "data.txt"), "utf8");`,
    "node_modules/reader/data.txt": "its own",
    "node_modules/incidental/package.json": about("incidental"),
    "node_modules/incidental/index.js": `exports.about = require("path").join(__dirname, "package.json");`,
    "a.ts": dagOf(
      `export const read = () => text + readFileSync(new URL("./q.sql", import.meta.url), "utf8") + typeof about;`,
      `import { text } from "reader"; import { about } from "incidental";`,
    ),
    "q.sql": " and mine ",
  });
  expect(await processorOn(test.db, folder).runOnce()).toMatchObject({ published: 1, failed: 0 });
  expect((await stored()).docs).toBe("its own and mine string");
  const [row] = await test.db.rows(adhoc("SELECT manifest->'packages' AS packages FROM dag_version"));
  expect(row).toEqual({ packages: { reader: "1.0.0" } });
});
