/** Messages about projects that cannot be loaded: each ends with the remedy. */
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { VERSION } from "../version.ts";
import { dagText, FolderFixture, importErrors, processorOn } from "./dag-folder-fixture.ts";

let test: TestDatabase;
beforeEach(async () => {
  test = await testDatabase();
  return () => test.close();
});

const json = (value: unknown) => JSON.stringify(value);
const importing = (from: string) => `${dagText("x")}import { x } from "${from}"; console.log(x);\n`;

/** Import errors by file, without the code frames. */
async function errors(root: FolderFixture, dags = "."): Promise<Record<string, string>> {
  await processorOn(test.db, root, { folder: join(root.path, dags) }).runOnce();
  const all = Object.entries(await importErrors(test.db));
  return Object.fromEntries(all.map(([file, message]) => [file, message.split("\n\n")[0] as string]));
}

it("names the remedy for a path alias, a missing package and a package that is not built", async () => {
  const root = new FolderFixture();
  await root.write({
    "tsconfig.json": json({ compilerOptions: { paths: { "@/*": ["./lib/*"] } } }),
    "src/db.ts": "export const x = 1;",
    "packages/main/package.json": json({ name: "@acme/main", main: "dist/index.js" }),
    "packages/exports/package.json": json({ name: "@acme/exports", exports: { ".": "./dist/index.js" } }),
    "node_modules/@acme/.keep": "",
    "dags/alias.ts": importing("@/db"),
    "dags/folder.ts": importing("src/db"),
    "dags/hash.ts": importing("#db"),
    "dags/main.ts": importing("@acme/main"),
    "dags/exports.ts": importing("@acme/exports"),
    "dags/subpath.ts": importing("@acme/exports/deep"),
    "dags/missing.ts": importing("@acme/missing"),
  });
  await symlink("../../packages/main", join(root.path, "node_modules/@acme/main"));
  await symlink("../../packages/exports", join(root.path, "node_modules/@acme/exports"));
  const paths = `an entry in "paths" of ${join(root.path, "tsconfig.json")} that leads to a file`;
  const unresolved = (file: string, from: string, remedy: string) =>
    `${file}:5:19: Could not resolve "${from}" [DAG_IMPORT_UNRESOLVED]. ${remedy}`;
  const unbuilt = (name: string, file: string) =>
    `The package "${name}" is installed, but its file ${file} does not exist: build the package, or name its TypeScript source in its package.json`;
  expect(await errors(root, "dags")).toEqual({
    "alias.ts": unresolved("alias.ts", "@/db", `A path alias needs ${paths}`),
    "folder.ts": unresolved(
      "folder.ts",
      "src/db",
      `Install the package in the DAG's project: npm install src; or, for the folder "src", ${paths}`,
    ),
    "hash.ts": unresolved(
      "hash.ts",
      "#db",
      `Add it to "imports" in the package.json of the project, or to "paths" in its tsconfig.json`,
    ),
    "main.ts": unresolved("main.ts", "@acme/main", unbuilt("@acme/main", "dist/index.js")),
    "exports.ts": unresolved("exports.ts", "@acme/exports", unbuilt("@acme/exports", "./dist/index.js")),
    "subpath.ts": unresolved(
      "subpath.ts",
      "@acme/exports/deep",
      `The path "./deep" is not exported by package "@acme/exports"; "exports" in its package.json lists what is`,
    ),
    "missing.ts": unresolved(
      "missing.ts",
      "@acme/missing",
      "Install the package in the DAG's project: npm install @acme/missing",
    ),
  });
});

it("names an unreadable tsconfig.json, and a missing file that it extends", async () => {
  const root = new FolderFixture();
  await root.write({
    "broken/tsconfig.json": "{ nope",
    "broken/a.ts": importing("@/db"),
    "extends/tsconfig.json": json({ extends: "@tsconfig/none/tsconfig.json" }),
    "extends/a.ts": importing("@/db"),
    "none/a.ts": importing("@/db"),
  });
  await processorOn(test.db, root).runOnce();
  const found = await importErrors(test.db);
  expect(found["broken/a.ts"]).toMatch(/broken\/tsconfig\.json:1:3: Expected string in JSON/);
  expect(found["extends/a.ts"]).toContain(
    'extends/tsconfig.json:1: Cannot find base config file "@tsconfig/none/tsconfig.json"',
  );
  expect(found["none/a.ts"]).toContain('A path alias needs a tsconfig.json with "paths", beside the file or');
});

it("names another package or version of tradewind, its folder, and the version to install", async () => {
  const root = new FolderFixture();
  const other = (folder: string, version: string, code: string) => ({
    [`${folder}/node_modules/tradewind/package.json`]: json({ name: "tradewind", version, type: "module" }),
    [`${folder}/node_modules/tradewind/index.js`]: code,
  });
  await root.write({
    ...other("weather", "3.0.0", "export const wind = 1;"),
    "weather/a.ts": dagText("a"),
    "weather/b.cjs": `const { dag } = require("tradewind"); module.exports = dag("b", () => {});`,
    ...other("old", "0.0.9", "export const dag = () => {};"),
    "old/a.ts": `${dagText("c")}import { cron } from "tradewind"; cron("0 2 * * *");`,
    ...other(
      "newer",
      "9.0.0",
      `export const dag = () => ({ [Symbol.for("tradewind.program")]: { protocol: 2 } });`,
    ),
    "newer/a.ts": dagText("d"),
  });
  const at = (folder: string) => join(root.path, folder, "node_modules/tradewind");
  const notTheSdk = `Not the SDK of Tradewind: "tradewind" 3.0.0 in ${at("weather")} does not export dag(). Install version ${VERSION} in the project, or remove the package: without it, DAG files get the copy of the engine [DAG_SDK_UNKNOWN]`;
  expect(await errors(root)).toEqual({
    "weather/a.ts": `weather/a.ts:1:21: ${notTheSdk}`,
    "weather/b.cjs": `weather/b.cjs:1:25: ${notTheSdk}`,
    "old/a.ts": `old/a.ts:5:10: No matching export in "tradewind" for import "cron" [DAG_IMPORT_UNRESOLVED]. The project has "tradewind" 0.0.9 in ${at("old")}, the engine has ${VERSION}: install ${VERSION} in the project`,
    "newer/a.ts": expect.stringMatching(
      /another version of Tradewind \(protocol 2.*install the same version/,
    ),
  });
});

it("names which of await and module.exports to remove", async () => {
  const root = new FolderFixture();
  await root.write({
    "a.js": `const { dag } = require("tradewind"); const n = await 1;\nmodule.exports = dag("a", () => n);`,
  });
  expect((await errors(root))["a.js"]).toMatch(/top-level await are present.*use export instead of module/);
});

it("lists all wrong options of all DAGs of a file, each with its line", async () => {
  const root = new FolderFixture();
  await root.write({
    "a.js": `import { dag } from "tradewind";
export const first = dag("first", { schedule_interval: "@daily", retires: 2 }, (d) => {
  d.task("t", { trigger_rule: "all_done", retries: -1 }, () => 1);
});
export const second = dag("second", { tagz: [] }, (d) => {
  d.dag("sub", first);
});
`,
    "caught.js": `import { dag } from "tradewind";
try { dag("wrong", { tagz: [] }, (d) => { d.task("t", () => 1); }); } catch {}
export default dag("right", (d) => { d.task("t", () => 1); });
`,
  });
  await processorOn(test.db, root).runOnce();
  const found = await importErrors(test.db);
  // A file that catches the error of one DAG still gets its other DAGs.
  expect(Object.keys(found)).toEqual(["a.js"]);
  const titles = (found["a.js"] ?? "").split("\n").filter((line) => line.startsWith("a.js:"));
  expect(titles).toEqual([
    'a.js:2:22: DagDefinitionError: dag "first": unknown option "schedule_interval"; it is called "schedule" [TW_UNKNOWN_OPTION]',
    expect.stringMatching(
      /^a\.js:2:22: .* option "retires"; did you mean "retries"\? .*\[TW_UNKNOWN_OPTION\]$/,
    ),
    'a.js:3:5: DagDefinitionError: dag "first", task "t": unknown option "trigger_rule"; it is called "rule" [TW_UNKNOWN_OPTION]',
    'a.js:3:5: DagDefinitionError: dag "first", task "t": retries must be a whole number of 0 or more, got -1 [TW_BAD_OPTION]',
    'a.js:5:23: DagDefinitionError: dag "second": unknown option "tagz"; did you mean "tags"? [TW_UNKNOWN_OPTION]',
  ]);
  expect(found["a.js"]?.match(/^> \d/gm)).toEqual(["> 2", "> 3", "> 5"]);
});
