import { join } from "node:path";
import { expect, it } from "vitest";
import { testDatabase } from "../../test/support/test-database.ts";
import { adhoc } from "../store/database/database.ts";
import { FolderFixture, processorOn } from "./dag-folder-fixture.ts";

const FILES = 1_000;

it("loads 1,000 DAG files, and does not bundle unchanged ones again", async () => {
  const { db } = await testDatabase();
  const folder = new FolderFixture();
  const ledgerPath = join(new FolderFixture().path, "ledger.json");
  const text = (n: number) => `import { cron, dag } from "tradewind";
import { double } from "./lib/double.ts";
export default dag("dag_${n}", { schedule: cron("0 2 * * *"), tags: ["generated"] }, (d) => {
  const rows = d.task("extract", { retries: 2 }, () => [${n}, 2, 3]);
  const sum = d.task("transform", { inputs: { rows } }, ({ rows }) => rows.map(double).reduce((a, b) => a + b, 0));
  d.task("load", { inputs: { sum } }, ({ sum }) => ({ sum }));
});
`;
  await folder.write({ "lib/double.ts": "export const double = (n: number): number => n * 2;" });
  await folder.write(
    Object.fromEntries(Array.from({ length: FILES }, (_, n) => [`team${n % 10}/dag${n}.ts`, text(n)])),
  );
  // The same file at another depth: the import must resolve there too.
  for (let team = 0; team < 10; team++) {
    await folder.write({
      [`team${team}/lib/double.ts`]: "export const double = (n: number): number => n * 2;",
    });
  }
  const processor = processorOn(db, folder, { ledgerPath });
  const first = await processor.runOnce();
  expect(first).toMatchObject({ published: FILES, failed: 0, bundled: FILES });
  const again = await processor.runOnce();
  expect(again).toMatchObject({ published: 0, unchanged: FILES, bundled: 0 });
  const restarted = await processorOn(db, folder, { ledgerPath }).runOnce();
  expect(restarted).toMatchObject({ published: 0, unchanged: FILES, bundled: 0 });
  const [count] = await db.rows<{ n: number }>(adhoc("SELECT count(*)::int AS n FROM dag_version"));
  expect(count?.n).toBe(FILES);
  console.log(
    `${FILES} DAG files: first ${first.ms} ms, unchanged ${again.ms} ms, restarted ${restarted.ms} ms`,
  );
}, 120_000);
