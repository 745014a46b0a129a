import { beforeEach, expect, it, vi } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { dagText, FolderFixture, importErrors, processorOn, versions } from "./dag-folder-fixture.ts";

let test: TestDatabase;
beforeEach(async () => {
  test = await testDatabase();
  return () => test.close();
});

const PATIENT = { timeout: 30_000, interval: 50 };
/** Longer than the test timeout: waiting for it fails the test. */
const importTimeoutMs = 120_000;
const LOOP = `${dagText("slow")}\nfor (;;) {}\n`;
const NEVER = `${dagText("never")}\nawait new Promise(() => {});\n`;
const good = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`good${n}.ts`, dagText(`good_${n}`)]));

const shows = (expected: Record<string, number>) =>
  vi.waitFor(async () => expect(await versions(test.db)).toMatchObject(expected), PATIENT);

it("a file that hangs delays no other file, at the start or after a save, nor its own fix", async () => {
  const folder = new FolderFixture();
  await folder.write({ "aa-loop.ts": LOOP, ...good, "good5-never.ts": NEVER });
  const processor = processorOn(test.db, folder, { importTimeoutMs, children: 2 });
  await processor.start();
  await shows(Object.fromEntries(Object.keys(good).map((_, n) => [`good_${n}`, 1])));

  await folder.write({ "good3.ts": dagText("good_3", "return 2;") });
  await shows({ good_3: 2 });
  expect(await importErrors(test.db)).toEqual({});

  await folder.write({ "aa-loop.ts": dagText("slow") });
  await shows({ slow: 1 });
  await folder.remove("good5-never.ts");
  await folder.write({ "good4.ts": dagText("good_4", "return 2;") });
  await shows({ good_4: 2 });
  expect(await processor.runOnce()).toMatchObject({ late: 0, failed: 0 });
});

it("a slow file is loaded when it is ready, and a file that hangs fails in the end", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "slow.ts": `${dagText("slow")}\nawait new Promise((resolve) => setTimeout(resolve, 3_000));\n`,
    "loop.ts": LOOP.replace('"slow"', '"loop"'),
  });
  const processor = processorOn(test.db, folder, { importTimeoutMs: 6_000, children: 1 });
  await processor.start();
  await shows({ slow: 1 });
  await vi.waitFor(
    async () =>
      expect((await importErrors(test.db))["loop.ts"]).toMatch(
        /^loop\.ts: importing this file did not finish within 6 s \[DAG_IMPORT_TIMEOUT\]\./,
      ),
    PATIENT,
  );
});
