import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { adhoc } from "../store/database/database.ts";
import { dagText, FolderFixture, importErrors, processorOn, versions } from "./dag-folder-fixture.ts";

let test: TestDatabase;
beforeEach(async () => {
  test = await testDatabase();
  return () => test.close();
});

it("keeps a DAG id with the file that published it; the other file gets an error until the id is free", async () => {
  const folder = new FolderFixture();
  await folder.write({ "m.ts": dagText("x") });
  const processor = processorOn(test.db, folder);
  await processor.runOnce();
  await folder.write({ "a.ts": dagText("x", "return 2;") });
  expect(await processor.runOnce()).toMatchObject({ failed: 1, unchanged: 1, published: 0 });
  expect((await importErrors(test.db))["a.ts"]).toMatch(
    /^a\.ts: DAG "x" is already defined in m\.ts: give one of the two another id, or remove one\. \[DAG_ID_TAKEN\]$/,
  );
  expect(await processor.runOnce()).toMatchObject({ failed: 1, bundled: 0 });
  expect(await versions(test.db)).toEqual({ x: 1 });

  await folder.remove("m.ts");
  expect(await processor.runOnce()).toMatchObject({ failed: 0, published: 1 });
  expect(await importErrors(test.db)).toEqual({});
  expect(await versions(test.db)).toEqual({ x: 2 });
});

it("treats a DAG that moves from one file to another as no conflict", async () => {
  const folder = new FolderFixture();
  const other = dagText("y");
  await folder.write({ "b.ts": dagText("x"), "a.ts": other });
  const processor = processorOn(test.db, folder);
  await processor.runOnce();
  await folder.write({ "a.ts": dagText("x"), "b.ts": other });
  expect(await processor.runOnce()).toMatchObject({ failed: 0 });
  expect(await versions(test.db)).toEqual({ x: 1, y: 1 });
});

const owner = async () =>
  (await test.db.rows<{ file: string }>(adhoc("SELECT file FROM dag WHERE dag_id = 'x'")))[0]?.file;

/** The first file by name is imported long after the second. */
async function slowAndQuick(folder: FolderFixture): Promise<void> {
  const mark = JSON.stringify(join(folder.path, "quick-was-imported"));
  await folder.write({
    "a-slow.ts": `import { existsSync } from "node:fs"; import { setTimeout } from "node:timers/promises";
      while (!existsSync(${mark})) await setTimeout(10);
      await setTimeout(1_000);
      ${dagText("x")}`,
    "b-quick.ts": `import { writeFileSync } from "node:fs"; writeFileSync(${mark}, ""); ${dagText("x", "return 2;")}`,
  });
}

it("gives an id that is new in two files to the first by name, in any order of import", async () => {
  const folder = new FolderFixture();
  await slowAndQuick(folder);
  await Promise.all([processorOn(test.db, folder).runOnce(), processorOn(test.db, folder).runOnce()]);
  expect(await owner()).toBe("a-slow.ts");
  expect(await versions(test.db)).toEqual({ x: 1 });
  expect(await importErrors(test.db)).toEqual({
    "b-quick.ts": expect.stringMatching(/^b-quick\.ts: DAG "x" is already defined in a-slow\.ts: /),
  });

  // A restart, and the files swapped.
  await processorOn(test.db, folder).runOnce();
  expect(await owner()).toBe("a-slow.ts");
  await folder.remove("a-slow.ts");
  await processorOn(test.db, folder).runOnce();
  expect(await owner()).toBe("b-quick.ts");
  expect(await importErrors(test.db)).toEqual({});
  await folder.write({ "a-again.ts": dagText("x") });
  await processorOn(test.db, folder).runOnce();
  expect(await owner()).toBe("b-quick.ts");
  expect(Object.keys(await importErrors(test.db))).toEqual(["a-again.ts"]);
});

it("keeps the DAG of a file that no longer loads", async () => {
  const folder = new FolderFixture();
  await folder.write({ "m.ts": dagText("x") });
  const processor = processorOn(test.db, folder);
  await processor.runOnce();
  await folder.write({ "m.ts": `${dagText("x")} syntax error`, "a.ts": dagText("x", "return 2;") });
  await processor.runOnce();
  expect(await owner()).toBe("m.ts");
  expect(Object.keys(await importErrors(test.db)).sort()).toEqual(["a.ts", "m.ts"]);
});
