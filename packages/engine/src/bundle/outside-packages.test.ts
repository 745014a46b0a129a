import { execFile } from "node:child_process";
import { mkdir, rename, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { BundleCache } from "../code/bundle-cache.ts";
import { findPackage } from "../code/installed-package.ts";
import { fetchBundle } from "../process/parts/fetch-bundle.ts";
import { adhoc } from "../store/database/database.ts";
import { dagText, FolderFixture, importErrors, processorOn, versions } from "./dag-folder-fixture.ts";

let test: TestDatabase;
beforeEach(async () => {
  test = await testDatabase();
  return () => test.close();
});

/** A DAG whose `docs` is the value of `expression` while the file is imported, and which exports it as `value`. */
const dagOf = (imports: string, expression: string) =>
  `import { dag } from "tradewind"; ${imports}
   export const value = ${expression};
   export default dag("a", { docs: String(value) }, (d) => { d.task("t", () => value); });`;

/** A package that depends on its own location, which a bundle would change. */
const nativePackage = (at: string, version: string, about = `"gypfile": true`) => ({
  [`${at}/package.json`]: `{ "name": "addon", "version": "${version}", ${about} }`,
  [`${at}/index.js`]: `exports.late = {}; for (const name of ["where"]) exports[name] = () => __dirname + " ${version}";`,
});

it("does not bundle a package with native code, nor any package on the path to it", async () => {
  const folder = new FolderFixture();
  await folder.write({
    ...nativePackage("node_modules/wrapper/node_modules/addon", "3.0.0"),
    "node_modules/wrapper/package.json": `{ "name": "wrapper", "version": "1.2.3" }`,
    "node_modules/wrapper/index.js": `exports.where = require("addon").where;`,
    "node_modules/plain/package.json": `{ "name": "plain", "version": "1.0.0" }`,
    "node_modules/plain/index.js": `exports.plain = "bundled";`,
    "dags/a.ts": dagOf(
      `import { where } from "wrapper"; import { plain } from "plain";`,
      `[plain, where()].join()`,
    ),
  });
  const dags = join(folder.path, "dags");
  expect(await processorOn(test.db, folder, { folder: dags }).runOnce()).toMatchObject({ published: 1 });
  const [stored] = await test.db.rows<{ text: string; packages: unknown; docs: string; hash: string }>(
    adhoc(`SELECT b.hash, head || code || source_map AS text, v.manifest->'packages' AS packages, v.manifest->>'docs' AS docs
           FROM bundle b JOIN dag_version v ON v.bundle_hash = b.hash`),
  );
  const where = `bundled,${join(folder.path, "node_modules/wrapper/node_modules/addon")} 3.0.0`;
  expect(stored?.packages).toEqual({ wrapper: "1.2.3" });
  expect(stored?.docs).toBe(where);
  expect(stored?.text).not.toContain(folder.path);
  expect(await exportedValue(stored?.hash ?? "", dags)).toBe(where);
});

it("creates a version for another version of such a package, and for no other change in it", async () => {
  const folder = new FolderFixture();
  await folder.write({
    ...nativePackage("node_modules/addon", "1.0.0"),
    "a.ts": dagOf(`import * as addon from "addon";`, "addon.where()"),
  });
  const processor = processorOn(test.db, folder);
  await processor.runOnce();
  await folder.write({ "node_modules/addon/README.md": "more" });
  expect(await processor.runOnce()).toMatchObject({ bundled: 0 });
  await folder.write(nativePackage("node_modules/addon", "1.0.1"));
  expect(await processor.runOnce()).toMatchObject({ bundled: 1, published: 1, failed: 0 });
  expect(await versions(test.db)).toEqual({ a: 2 });
  const [row] = await test.db.rows<{ docs: string }>(
    adhoc("SELECT manifest->>'docs' AS docs FROM dag_version WHERE number = 2"),
  );
  // The child that has loaded 1.0.0 must not process 1.0.1.
  expect(row?.docs).toMatch(/ 1\.0\.1$/);
});

it("loads real native code that names its platforms in optional packages", async () => {
  const folder = new FolderFixture();
  const parser = findPackage("oxc-parser", import.meta.dirname);
  await mkdir(join(folder.path, "node_modules"));
  await symlink(parser?.folder ?? "", join(folder.path, "node_modules/oxc-parser"));
  const parse = `parseSync("x.ts", "let n: number = 1; n++").program.body.length`;
  await folder.write({ "a.ts": dagOf(`import { parseSync } from "oxc-parser";`, parse) });
  expect(await processorOn(test.db, folder).runOnce()).toMatchObject({ published: 1, failed: 0 });
  const [row] = await test.db.rows<{ hash: string; docs: string; packages: object }>(
    adhoc(
      "SELECT bundle_hash AS hash, manifest->>'docs' AS docs, manifest->'packages' AS packages FROM dag_version",
    ),
  );
  expect(row?.docs).toBe("2");
  expect(Object.keys(row?.packages ?? {})).toEqual(["oxc-parser"]);
  expect(await exportedValue(row?.hash ?? "", folder.path)).toBe(2);
});

it("does not bundle packages that esbuild cannot bundle or the project names", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "package.json": `{ "tradewind": { "external": ["named"] } }`,
    "node_modules/named/package.json": `{ "name": "named", "version": "1.0.0", "type": "module", "exports": { "./sub": "./sub.js" } }`,
    "node_modules/named/sub.js": `export const sub = "named";`,
    "node_modules/odd/package.json": `{ "name": "odd", "version": "2.0.0" }`,
    "node_modules/odd/index.js": `exports.load = () => process.platform === "none" ? require("not-for-here") : "odd";`,
    "a.ts": dagOf(`import { sub } from "named/sub"; import { load } from "odd";`, `sub + load()`),
  });
  const processor = processorOn(test.db, folder);
  expect(await processor.runOnce()).toMatchObject({ published: 1, failed: 0 });
  const rows = () =>
    test.db.rows<{ packages: object }>(
      adhoc("SELECT manifest->'packages' AS packages FROM dag_version ORDER BY number"),
    );
  expect(await rows()).toEqual([{ packages: { named: "1.0.0", odd: "2.0.0" } }]);

  await folder.write({ "package.json": `{ "tradewind": { "external": [] } }` });
  expect(await processor.runOnce()).toMatchObject({ published: 1, failed: 0 });
  expect((await rows())[1]).toEqual({ packages: { odd: "2.0.0" } });
});

it("finds the packages of a project inside the DAG folder", async () => {
  const folder = new FolderFixture();
  for (const team of ["one", "two"])
    await folder.write({
      ...nativePackage(`${team}/node_modules/addon`, `${team.length}.0.0`, `"binary": {}`),
      [`${team}/dags/${team}.ts`]: dagOf(`import { where } from "addon";`, "where()").replace(
        `"a"`,
        `"${team}"`,
      ),
    });
  expect(await processorOn(test.db, folder).runOnce()).toMatchObject({ published: 2, failed: 0 });
  const rows = await test.db.rows<{ dag: string; hash: string }>(
    adhoc("SELECT dag_id AS dag, bundle_hash AS hash FROM dag_version ORDER BY dag_id"),
  );
  for (const { dag, hash } of rows)
    expect(await exportedValue(hash, folder.path)).toBe(
      `${join(folder.path, dag, "node_modules/addon")} 3.0.0`,
    );
});

it("reports invalid project settings and packages", async () => {
  const folder = new FolderFixture();
  const settings = (external: string) => `{ "tradewind": { "external": ${external} } }`;
  await folder.write({
    "missing/package.json": settings(`["none-such"]`),
    "missing/a.ts": dagText("missing", `await import("none-such");`),
    "sdk/package.json": settings(`["tradewind"]`),
    "sdk/a.ts": dagText("sdk"),
    "list/package.json": settings(`"sharp"`),
    "list/a.ts": dagText("list"),
    "key/package.json": `{ "tradewind": { "externals": [] } }`,
    "key/a.ts": dagText("key"),
  });
  expect(await processorOn(test.db, folder).runOnce()).toMatchObject({ failed: 4 });
  const errors = await importErrors(test.db);
  expect(errors["missing/a.ts"]).toMatch(/package "none-such".*npm install none-such\. \[PACKAGE_MISSING\]$/);
  expect(errors["sdk/a.ts"]).toMatch(/"tradewind" cannot be external.*\[PROJECT_INVALID\]$/);
  expect(errors["list/a.ts"]).toMatch(/"external" must be a list of package names.*\[PROJECT_INVALID\]$/);
  expect(errors["key/a.ts"]).toMatch(/unknown key "externals".*\[PROJECT_INVALID\]$/);
});

it("names the command that builds an addon for the running Node", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "node_modules/broken/package.json": `{ "name": "broken", "version": "1.0.0" }`,
    "node_modules/broken/index.js": `module.exports = require("./build/broken.node");`,
    "node_modules/broken/build/broken.node": "built for something else",
    "a.ts": dagOf(`import broken from "broken";`, "broken"),
  });
  await processorOn(test.db, folder).runOnce();
  const error = (await importErrors(test.db))["a.ts"];
  expect(error).toContain("[ERR_DLOPEN_FAILED]");
  expect(error).toContain(
    `cd ${folder.path} && PATH="${dirname(process.execPath)}:$PATH" npm rebuild broken`,
  );
  expect(error).toContain(`${process.version}, ${process.platform} ${process.arch}`);
});

it("does not load a moved package through a remaining link", async () => {
  const folder = new FolderFixture();
  await folder.write({
    ...nativePackage("node_modules/addon", "1.0.0"),
    "a.ts": dagOf(`import { where } from "addon";`, "where()"),
  });
  await processorOn(test.db, folder).runOnce();
  const [row] = await test.db.rows<{ hash: string }>(adhoc("SELECT hash FROM bundle"));
  const cache = cacheOn(folder.path);
  await cache.path(row?.hash ?? "");
  await rename(join(folder.path, "node_modules/addon"), join(folder.path, "elsewhere"));
  expect(cache.known(row?.hash ?? "")).toBeUndefined();
  await expect(cache.path(row?.hash ?? "")).rejects.toMatchObject({ code: "PACKAGE_MISSING" });
});

const cacheOn = (dags: string) =>
  new BundleCache(new FolderFixture().path, (hash) => fetchBundle(test.db, hash), [dags]);

/** The export `value` of the stored bundle, in a separate process that finds packages from `dags`. */
async function exportedValue(hash: string, dags: string): Promise<unknown> {
  const path = await cacheOn(dags).path(hash);
  const script = `import { value } from ${JSON.stringify(path)}; console.log(JSON.stringify(value))`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
    env: {},
  });
  return JSON.parse(stdout);
}
