import { execFile } from "node:child_process";
import { rename, symlink, utimes } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { BundleCache } from "../code/bundle-cache.ts";
import { fetchBundle } from "../process/parts/fetch-bundle.ts";
import { loadVersion } from "../store/dag/dag-catalogue.ts";
import { adhoc } from "../store/database/database.ts";
import { dagText, FolderFixture, importErrors, processorOn, versions } from "./dag-folder-fixture.ts";

let test: TestDatabase;
beforeEach(async () => {
  test = await testDatabase();
  return () => test.close();
});

describe("a version changes only with the code", () => {
  it("creates one version per DAG and a new one when a local import changes", async () => {
    const folder = new FolderFixture();
    await folder.write({
      "etl/daily.ts": `import { dag } from "tradewind"; import { rows } from "../lib/rows.ts";
        export const a = dag("a", {}, (d) => { d.task("t", {}, () => rows()); });
        export const many = [dag("b", {}, (d) => { d.task("t", {}, () => 1); })];
        export default a;`,
      "lib/rows.ts": "export const rows = (): number => 1;",
      "other.mts": dagText("other"),
      "notes.ts": "export const nothing = 1;",
      "etl/daily.test.ts": `import "tradewind"; throw new Error("a test is no DAG");`,
      "node_modules/x/dag.ts": `import "tradewind"; throw new Error("a package is no DAG");`,
      ".hidden/dag.ts": `import "tradewind"; throw new Error("hidden");`,
      "drafts/later.ts": `import "tradewind"; throw new Error("ignored");`,
      ".tradewindignore": "# not yet\ndrafts/\n",
    });
    const processor = processorOn(test.db, folder);
    expect(await processor.runOnce()).toMatchObject({ published: 2, unchanged: 0, failed: 0, bundled: 2 });
    expect(await versions(test.db)).toEqual({ a: 1, b: 1, other: 1 });

    await folder.write({ "lib/rows.ts": "export const rows = (): number => 2;" });
    expect(await processor.runOnce()).toMatchObject({ published: 1, unchanged: 1, bundled: 1 });
    expect(await versions(test.db)).toEqual({ a: 2, b: 2, other: 1 });
  });

  it("ignores comments, touched files, other names and other locations", async () => {
    const folder = new FolderFixture();
    await folder.write({ "index.ts": dagText("a", "/* one */ return 1;"), "lib.ts": "export {};" });
    const processor = processorOn(test.db, folder);
    await processor.runOnce();
    const text = `// A comment.\n${dagText("a", "return /* two */ 1; // three\n")}`;
    await folder.write({ "index.ts": text });
    expect(await processor.runOnce()).toMatchObject({ published: 0, unchanged: 1, bundled: 1 });
    await utimes(join(folder.path, "index.ts"), new Date(), new Date(Date.now() + 60_000));
    expect(await processor.runOnce()).toMatchObject({ published: 0, unchanged: 1, bundled: 0 });
    await processor.stop();

    const elsewhere = new FolderFixture();
    await elsewhere.write({ "placeholder.txt": "" });
    await rename(join(folder.path, "index.ts"), join(elsewhere.path, "renamed.ts"));
    expect(await processorOn(test.db, elsewhere).runOnce()).toMatchObject({
      bundled: 1,
      failed: 0,
      removed: 1,
    });
    expect(await versions(test.db)).toEqual({ a: 1 });
  });

  it("creates no version of a manifest that depends on the clock", async () => {
    const folder = new FolderFixture();
    await folder.write({ "a.ts": dagText("a", "return 1;", "{ docs: String(process.hrtime.bigint()) }") });
    await processorOn(test.db, folder).runOnce();
    expect(await processorOn(test.db, folder).runOnce()).toMatchObject({ bundled: 1, published: 0 });
    expect(await versions(test.db)).toEqual({ a: 1 });
  });

  it("remembers unchanged files across a restart, but trusts the database first", async () => {
    const folder = new FolderFixture();
    const ledgerPath = join(new FolderFixture().path, "ledger.json");
    await folder.write({ "a.ts": dagText("a"), "b.ts": dagText("b") });
    await processorOn(test.db, folder, { ledgerPath }).runOnce();
    expect(await processorOn(test.db, folder, { ledgerPath }).runOnce()).toMatchObject({
      unchanged: 2,
      bundled: 0,
    });
    await folder.write({ "a.ts": dagText("a", "return 2;") });
    expect(await processorOn(test.db, folder, { ledgerPath }).runOnce()).toMatchObject({
      published: 1,
      bundled: 1,
    });

    const empty = await testDatabase();
    expect(await processorOn(empty.db, folder, { ledgerPath }).runOnce()).toMatchObject({
      published: 2,
      bundled: 2,
    });
    expect(await versions(empty.db)).toEqual({ a: 1, b: 1 });
  });
});

describe("a deleted file", () => {
  it("makes its DAGs stale, which return with the version they had", async () => {
    const folder = new FolderFixture();
    await folder.write({ "a.ts": dagText("a"), "b.ts": dagText("b") });
    const processor = processorOn(test.db, folder);
    await processor.runOnce();
    await folder.remove("a.ts");
    expect(await processor.runOnce()).toMatchObject({ removed: 1, unchanged: 1 });
    expect(await versions(test.db)).toEqual({ a: -1, b: 1 });
    await folder.write({ "a.ts": dagText("a") });
    expect(await processor.runOnce()).toMatchObject({ published: 1 });
    expect(await versions(test.db)).toEqual({ a: 1, b: 1 });
  });

  it("is noticed by the next processor if none was running", async () => {
    const folder = new FolderFixture();
    await folder.write({ "a.ts": dagText("a"), "broken.ts": `import "tradewind"; syntax error` });
    await processorOn(test.db, folder).runOnce();
    await folder.remove("a.ts");
    await folder.remove("broken.ts");
    expect(await processorOn(test.db, folder).runOnce()).toMatchObject({ removed: 2, failed: 0 });
    expect(await versions(test.db)).toEqual({ a: -1 });
    expect(await importErrors(test.db)).toEqual({});
  });

  it("keeps every DAG if the whole folder is gone", async () => {
    const folder = new FolderFixture();
    await folder.write({ "dags/a.ts": dagText("a") });
    const processor = processorOn(test.db, folder, { folder: join(folder.path, "dags") });
    await processor.runOnce();
    await folder.remove("dags");
    await expect(processor.runOnce()).rejects.toMatchObject({ code: "DAG_FOLDER_UNREADABLE" });
    expect(await versions(test.db)).toEqual({ a: 1 });
  });
});

it("lets two processors load one folder at once without a second version", async () => {
  const folder = new FolderFixture();
  const files = Array.from({ length: 30 }, (_, n) => [`f${n}.ts`, dagText(`dag_${n}`)] as const);
  await folder.write(Object.fromEntries(files));
  const both = [processorOn(test.db, folder), processorOn(test.db, folder)];
  await Promise.all(both.map((processor) => processor.runOnce()));
  await folder.write(Object.fromEntries(files.map(([file], n) => [file, dagText(`dag_${n}`, "return 2;")])));
  await Promise.all(both.map((processor) => processor.runOnce()));
  expect(Object.values(await versions(test.db))).toEqual(files.map(() => 2));
  const [count] = await test.db.rows<{ n: number }>(adhoc("SELECT count(*)::int AS n FROM dag_version"));
  expect(count?.n).toBe(60);
});

it("stores runnable code, with stacks that name the author's lines", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "etl/daily.ts": `import { dag, Operator } from "tradewind";
interface Args { n: number }
class Fails extends Operator<Args, number> {
  static id = Fails.name;
  override execute(): number { throw new Error("on line five"); }
}
export const fails = new Fails({ n: 1 });
export default dag("a", {}, (d) => { d.operator("t", fails); });
`,
  });
  await processorOn(test.db, folder).runOnce();
  const [version] = await test.db.rows<{ id: number }>(adhoc("SELECT id FROM dag_version"));
  const { manifest, bundleHash, number } = (await loadVersion(test.db, version?.id ?? 0)) ?? {};
  expect(number).toBe(1);
  expect(manifest?.tasks[0]?.operator).toBe("Fails");
  const cache = new BundleCache(new FolderFixture().path, (hash) => fetchBundle(test.db, hash));
  const path = await cache.path(bundleHash ?? "");
  const script = `import { fails } from ${JSON.stringify(path)}; try { fails.execute() } catch (e) { console.log(e.stack) }`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--enable-source-maps", "--input-type=module", "-e", script],
    { env: {} },
  );
  expect(stdout).toMatch(/at _?Fails\.execute \(dags:\/+etl\/daily\.ts:5:\d+\)/);
});

it("bundles packages from node_modules, both ES modules and CommonJS", async () => {
  const folder = new FolderFixture();
  const zod = dirname(createRequire(import.meta.url).resolve("zod/package.json"));
  await folder.write({
    "node_modules/old-school/package.json": `{"name":"old-school","main":"index.js"}`,
    "node_modules/old-school/index.js": `const { join } = require("path"); exports.here = join(__dirname, "x");`,
    "a.ts": `import { dag } from "tradewind"; import { z } from "zod"; import old from "old-school";
      import text from "./query.sql"; import config from "./config.json";
      export default dag("a", { docs: typeof old.here + text + config.n, params: z.object({ n: z.number().default(1) }) },
        (d) => { d.task("t", {}, () => 1); });`,
    "query.sql": "SELECT 1",
    "config.json": `{"n":7}`,
  });
  await symlink(zod, join(folder.path, "node_modules/zod"));
  expect(await processorOn(test.db, folder).runOnce()).toMatchObject({ published: 1, failed: 0 });
  const [row] = await test.db.rows<{ docs: string; params: { properties: unknown } }>(
    adhoc("SELECT manifest->>'docs' AS docs, manifest->'paramsSchema' AS params FROM dag_version"),
  );
  expect(row?.docs).toBe("stringSELECT 17");
  expect(row?.params.properties).toMatchObject({ n: { type: "number" } });
});

it("watches the folder and the imports of its files, and wakes other processes", async () => {
  const root = new FolderFixture();
  await root.write({
    "dags/a.ts": `import { dag } from "tradewind"; import { n } from "../shared/n.ts";
      export default dag("a", {}, (d) => { d.task("t", {}, () => n); });`,
    "shared/n.ts": "export const n = 1;",
  });
  const changes = signals();
  const notified = signals();
  const listening = await test.db.listen("tradewind", (payload) => payload === "dags" && notified.raise());
  const processor = processorOn(test.db, root, { folder: join(root.path, "dags"), onChange: changes.raise });
  await processor.start();
  await changes.next();
  await notified.next();
  await processor.runOnce(); // by now the shared folder is watched
  await root.write({ "shared/n.ts": "export const n = 2;" });
  await changes.next();
  expect(await versions(test.db)).toEqual({ a: 2 });
  await root.write({ "dags/new/deep/b.ts": dagText("b") });
  await changes.next();
  expect(await versions(test.db)).toEqual({ a: 2, b: 1 });
  await root.remove("dags/new");
  await changes.next();
  expect(await versions(test.db)).toEqual({ a: 2, b: -1 });
  await notified.next();
  await listening.close();
});

/** Counts events, so that none is missed between two waits. */
function signals() {
  let pending = 0;
  let wake = () => {};
  return {
    raise: () => {
      pending++;
      wake();
    },
    next: async () => {
      while (pending === 0) await new Promise<void>((resolve) => (wake = resolve));
      pending--;
    },
  };
}

describe("an invalid schedule or rule", () => {
  it.each([
    ["a cron expression", `{ schedule: cron("0 25 * * *") }`, "CRON_INVALID"],
    ["a day that never comes", `{ schedule: cron("0 2 31 2 *") }`, "CRON_"],
  ])("fails only its file: %s", async (_, options, code) => {
    const folder = new FolderFixture();
    await folder.write({
      "bad.ts": `import { cron, dag } from "tradewind"; export default dag("bad", ${options}, (d) => { d.task("t", () => 1); });`,
      "good.ts": dagText("good"),
    });
    const processor = processorOn(test.db, folder);
    expect(await processor.runOnce()).toMatchObject({ published: 1, failed: 1 });
    expect(await versions(test.db)).toEqual({ good: 1 });
    expect(JSON.stringify(await importErrors(test.db))).toContain(code);
  });
});
