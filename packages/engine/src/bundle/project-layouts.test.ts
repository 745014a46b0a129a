/** Typical project layouts: written to disk, loaded by a processor, and each DAG's task run by the executor. */
import { readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, it } from "vitest";
import { ExecutorUnderTest } from "../../test/execute/executor-under-test.ts";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { BundleCache } from "../code/bundle-cache.ts";
import { fetchBundle } from "../process/parts/fetch-bundle.ts";
import { adhoc } from "../store/database/database.ts";
import { FolderFixture, importErrors, processorOn } from "./dag-folder-fixture.ts";

let test: TestDatabase;
beforeEach(async () => {
  test = await testDatabase();
  return () => test.close();
});

/** A DAG file with one task, whose output is `value`. */
const esm = (dagId: string, imports: string, value: string) =>
  `import { dag } from "tradewind";\n${imports}\nexport default dag("${dagId}", (d) => { d.task("t", () => ${value}); });\n`;
const cjs = (dagId: string, exported: string, value = `"ok"`) =>
  `const { dag } = require("tradewind");\n${exported.replace("DAG", `dag("${dagId}", (d) => { d.task("t", () => ${value}); })`)}\n`;
const json = (value: unknown) => JSON.stringify(value);

/** Loads the folder, then runs the task of every DAG: the outputs by DAG. */
async function outputs(root: FolderFixture, dags = "."): Promise<Record<string, unknown>> {
  await processorOn(test.db, root, { folder: join(root.path, dags) }).runOnce();
  expect(await importErrors(test.db)).toEqual({});
  const rows = await test.db.rows<{ dag_id: string; bundle_hash: string }>(
    adhoc("SELECT v.dag_id, v.bundle_hash FROM dag d JOIN dag_version v ON v.id = d.version_id ORDER BY 1"),
  );
  // Tasks run in another folder: nothing of the project is beside the bundle.
  const cache = new BundleCache(new FolderFixture().path, (hash) => fetchBundle(test.db, hash));
  await using under = await ExecutorUnderTest.start();
  const found: Record<string, unknown> = {};
  for (const { dag_id: dagId, bundle_hash: bundleHash } of rows) {
    const run = { ...under.assignment("t").run, dagId };
    const outcome = await under.run("t", { bundleHash: await cache.path(bundleHash), run });
    found[dagId] = outcome.kind === "success" ? outcome.output : outcome;
  }
  return found;
}

const PACKAGES = {
  "node_modules/legacy/package.json": json({ name: "legacy", main: "lib/index" }),
  "node_modules/legacy/lib/index.js": `module.exports = { rows: require("./data.json").rows, os: require("os").EOL };`,
  "node_modules/legacy/lib/data.json": json({ rows: 7 }),
  "node_modules/compiled/package.json": json({ name: "compiled" }),
  "node_modules/compiled/index.js": `Object.defineProperty(exports, "__esModule", { value: true }); exports.default = "default";`,
};

it.each(["commonjs", undefined])("loads every kind of file in a project of type %s", async (type) => {
  const root = new FolderFixture();
  await root.write({
    ...PACKAGES,
    "package.json": json({ name: "project", version: "1.0.0", type }),
    "config.json": json({ limit: 5 }),
    "a.ts": esm(
      "ts",
      `import legacy from "legacy"; import config from "./config.json"; import compiled from "compiled";`,
      "[legacy.rows, config.limit, compiled]",
    ),
    "await.ts": esm("awaits", "const n = await Promise.resolve(3);", "n"),
    "requires.ts": esm(
      "requires",
      `const l = require("legacy"); const p = require("node:path");`,
      "l.rows + p.sep",
    ),
    "b.mts": esm("mts", "", `"ok"`),
    "c.cts": esm("cts", "", `"ok"`),
    "assigned.cts": `import tw = require("tradewind");\nexport = tw.dag("cts_assigned", (d) => { d.task("t", () => "ok"); });`,
    "d.mjs": esm("mjs", "const n = await Promise.resolve(4);", "n"),
    "e.cjs": cjs("cjs", "module.exports = DAG;"),
    "module.js": cjs(
      "js",
      `const legacy = require("legacy"); const config = require("./config.json"); module.exports = DAG;`,
      "[legacy.rows, config.limit]",
    ),
    "default.js": cjs("js_default", "exports.default = DAG;"),
    "named.js": cjs("js_named", "exports.first = DAG;"),
    "list.js": cjs("js_list", "module.exports = { all: [DAG] };"),
    "array.js": cjs("js_array", "module.exports = [DAG];"),
    "tsc.js": `"use strict";\nObject.defineProperty(exports, "__esModule", { value: true });\nexports.again = void 0;\n${cjs("js_compiled", "exports.default = DAG;\nexports.again = exports.default;")}`,
    "dirname.js": cjs("js_dirname", "module.exports = DAG;", "[typeof __dirname, typeof __filename]"),
    "import.js": esm("js_import", "", `"ok"`),
  });
  expect(await outputs(root)).toEqual({
    awaits: 3,
    cjs: "ok",
    cts: "ok",
    cts_assigned: "ok",
    js: [7, 5],
    js_array: "ok",
    js_compiled: "ok",
    js_default: "ok",
    js_dirname: ["string", "string"],
    js_import: "ok",
    js_list: "ok",
    js_named: "ok",
    mjs: 4,
    mts: "ok",
    requires: "7/",
    ts: [7, 5, "default"],
  });
});

it("imports CommonJS packages into ES modules like Node, in DAG files and in their imports", async () => {
  const root = new FolderFixture();
  await root.write({
    ...PACKAGES,
    "package.json": json({ name: "project", type: "module" }),
    "dags/a.ts": esm(
      "ts",
      `import compiled from "compiled"; import { lib } from "../lib.ts";`,
      "[compiled, lib]",
    ),
    "lib.ts": `import compiled from "compiled"; export const lib = compiled;`,
    "dags/b.cjs": cjs("cjs", "module.exports = DAG;"),
  });
  const namespace = { default: "default" };
  expect(await outputs(root, "dags")).toEqual({ cjs: "ok", ts: [namespace, namespace] });
});

it("finds the trigger classes that a CommonJS file exports, and requires the export", async () => {
  const root = new FolderFixture();
  const text = (exported: string) => `const { dag, Trigger } = require("tradewind");
    class Done extends Trigger { static id = "acme.done"; async *run() { yield 1; } }
    ${exported} = dag("x", (d) => { d.trigger("wait", new Done({})); });`;
  await root.write({ "a.js": text("exports.Done = Done; exports.x") });
  const processor = processorOn(test.db, root);
  expect(await processor.runOnce()).toMatchObject({ published: 1, failed: 0 });
  await root.write({ "a.js": text("exports.x") });
  await processor.runOnce();
  expect((await importErrors(test.db))["a.js"]).toContain("in a CommonJS file, export it as well");
});

it("follows path aliases of the tsconfig.json above the DAG folder, with comments, extends and baseUrl", async () => {
  const root = new FolderFixture();
  await root.write({
    "config/base.json": `{ // shared
      "compilerOptions": { "baseUrl": "..", "paths": { "@/*": ["src/*"], "settings": ["src/settings/index.ts"] }, }, }`,
    "tsconfig.json": json({ extends: "./config/base.json" }),
    "src/db.ts": `import { name } from "@/settings"; export const db = "db of " + name;`,
    "src/settings/index.ts": `export const name = "acme";`,
    "team/dags/deep/a.ts": esm(
      "a",
      `import { db } from "@/db"; import { name } from "settings"; import * as by from "src/settings";`,
      "[db, name, by.name]",
    ),
  });
  expect(await outputs(root, "team/dags")).toEqual({ a: ["db of acme", "acme", "acme"] });
});

it("resolves npm workspaces, TypeScript sources of their packages, and the links of pnpm", async () => {
  const root = new FolderFixture();
  const store = "node_modules/.pnpm";
  await root.write({
    "package.json": json({ private: true, workspaces: ["packages/*", "apps/*"] }),
    "packages/core/package.json": json({ name: "@acme/core", main: "src/index.ts" }),
    "packages/core/src/index.ts": `export enum Size { Large = 3 } export { rows } from "./rows.js";`,
    "packages/core/src/rows.ts": `export const rows: number = 4;`,
    "packages/kit/package.json": json({
      name: "@acme/kit",
      type: "module",
      exports: { ".": "./src/index.ts", "./op": { types: "./src/op.ts", import: "./src/op.ts" } },
    }),
    "packages/kit/src/index.ts": `export { rows as again } from "@acme/core";`,
    "packages/kit/src/op.ts": `import { Operator } from "tradewind";
      export class Count extends Operator<{ n: number }, number> { override execute() { return this.args.n; } }`,
    [`${store}/top@1.0.0/node_modules/top/package.json`]: json({ name: "top" }),
    [`${store}/top@1.0.0/node_modules/top/index.js`]: `exports.top = require("deep");`,
    [`${store}/deep@2.0.0/node_modules/deep/package.json`]: json({ name: "deep" }),
    [`${store}/deep@2.0.0/node_modules/deep/index.js`]: `module.exports = "deep";`,
    "apps/dags/package.json": json({ name: "@acme/dags" }),
    "apps/dags/a.ts": esm(
      "a",
      `import { rows, Size } from "@acme/core"; import { again } from "@acme/kit"; import { top } from "top";`,
      "[Size.Large, rows, again, top]",
    ),
    "apps/dags/b.ts": `import { dag } from "tradewind"; import { Count } from "@acme/kit/op";
      export default dag("b", (d) => { d.operator("t", new Count({ n: 9 })); });`,
    "node_modules/@acme/.keep": "",
  });
  const link = (from: string, to: string) => symlink(to, join(root.path, from));
  await link("node_modules/@acme/core", "../../packages/core");
  await link("node_modules/@acme/kit", "../../packages/kit");
  await link("node_modules/top", ".pnpm/top@1.0.0/node_modules/top");
  await link(`${store}/top@1.0.0/node_modules/deep`, "../../deep@2.0.0/node_modules/deep");
  expect(await outputs(root, "apps/dags")).toEqual({ a: [3, 4, 4, "deep"], b: 9 });
});

it("runs a DAG of one copy of the SDK with parts from a package that has another", async () => {
  const root = new FolderFixture();
  await copySdk(root, "node_modules/@acme/kit/node_modules/tradewind");
  await root.write({
    "node_modules/@acme/kit/package.json": json({ name: "@acme/kit", main: "index.ts" }),
    "node_modules/@acme/kit/index.ts": `import { cron, COPY, Operator, skip } from "tradewind";
      export class Count extends Operator<{ n: number }, number> { override execute() { return this.args.n; } }
      export const daily = cron("0 2 * * *", "UTC"); export const nothing = () => skip("no rows"); export const copy = COPY;`,
    "a.ts": `import { dag } from "tradewind"; import { copy, Count, daily } from "@acme/kit";
      export default dag("counts", { schedule: daily, docs: copy }, (d) => { d.operator("t", new Count({ n: 9 })); });`,
    "b.ts": `import { dag } from "tradewind"; import { nothing } from "@acme/kit";
      export default dag("skips", (d) => { d.task("t", () => nothing()); });`,
  });
  expect(await outputs(root)).toEqual({ counts: 9, skips: { kind: "skipped", reason: "no rows" } });
  const [row] = await test.db.rows<{ docs: string }>(
    adhoc("SELECT manifest->>'docs' AS docs FROM dag_version WHERE dag_id = 'counts'"),
  );
  expect(row?.docs).toBe("another copy");
});

it("runs a DAG with the project's own copy of the SDK", async () => {
  const root = new FolderFixture();
  await copySdk(root, "node_modules/tradewind");
  await root.write({
    "a.js": `const { COPY } = require("tradewind");\n${cjs("a", "exports.default = DAG;", "COPY")}`,
  });
  expect(await outputs(root)).toEqual({ a: "another copy" });
});

/** Another version of the SDK: its sources, with one additional export. */
async function copySdk(root: FolderFixture, to: string): Promise<void> {
  const sdk = fileURLToPath(new URL("../../../sdk/src", import.meta.url));
  const names = (await readdir(sdk, { recursive: true })).filter(
    (name) => name.endsWith(".ts") && !name.endsWith(".test.ts"),
  );
  for (const name of names) {
    const more = name === "index.ts" ? `\nexport const COPY = "another copy";\n` : "";
    await root.write({ [`${to}/src/${name}`]: (await readFile(join(sdk, name), "utf8")) + more });
  }
  const description = { name: "tradewind", version: "0.0.9", type: "module", exports: "./src/index.ts" };
  await root.write({ [`${to}/package.json`]: json(description) });
}
