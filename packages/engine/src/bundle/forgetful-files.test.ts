/** Files with unexported DAGs or without DAGs: logged, never an error. */
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { type Logger, silentLogger } from "../service/logger.ts";
import { dagText, FolderFixture, processorOn } from "./dag-folder-fixture.ts";
import { forgetfulFiles } from "./file-ledger.ts";

let test: TestDatabase;
beforeEach(async () => {
  test = await testDatabase();
  return () => test.close();
});

function capture() {
  const warnings: { message: string; fields: Readonly<Record<string, unknown>> }[] = [];
  const logger: Logger = {
    ...silentLogger,
    warn: (message, fields = {}) => void warnings.push({ message, fields }),
  };
  return { logger, taken: () => warnings.splice(0) };
}

const FORGOTTEN = `import { dag } from "tradewind";
const forgotten = dag("forgotten", (d) => { d.task("a", () => 1); });
`;

it("logs a DAG that is not exported, and a file without DAGs that no file imports", async () => {
  const folder = new FolderFixture();
  const { logger, taken } = capture();
  await folder.write({
    "forgot.ts": FORGOTTEN,
    "half.ts": `${dagText("half")}${FORGOTTEN.split("\n")[1]?.replaceAll("forgotten", "other_half")}`,
    "empty.ts": `import { cron } from "tradewind"; export const nightly = cron("0 2 * * *");`,
    "shared.ts": `import { cron } from "tradewind"; export const daily = cron("0 1 * * *");`,
    "user.ts": `import { daily } from "./shared.ts";\n${dagText("user", "return 1;", "{ schedule: daily }")}`,
  });
  const processor = processorOn(test.db, folder, { logger });
  expect(await processor.runOnce()).toMatchObject({ failed: 0, published: 2 });
  expect(taken()).toEqual([
    {
      message: expect.stringContaining("exports no DAG"),
      fields: { file: "empty.ts", remedy: expect.stringContaining("export default dag(") },
    },
    {
      message: expect.stringContaining("does not export it"),
      fields: { file: "forgot.ts", dags: ["forgotten"], remedy: "export default dag(…)" },
    },
    {
      message: expect.stringContaining("does not export it"),
      fields: { file: "half.ts", dags: ["other_half"], remedy: "export default dag(…)" },
    },
  ]);

  await processor.runOnce();
  expect(taken()).toEqual([]);
  await folder.write({ "forgot.ts": `${FORGOTTEN}export default forgotten;\n` });
  expect(await processor.runOnce()).toMatchObject({ published: 1 });
  expect(taken()).toEqual([]);
});

it("does not blame a file for the DAG of another file that it imports", async () => {
  const folder = new FolderFixture();
  const { logger, taken } = capture();
  await folder.write({
    "base.ts": `${dagText("base")}export const LIMIT = 3;\n`,
    "uses.ts": `import { LIMIT } from "./base.ts";\n${dagText("uses", "return LIMIT;")}`,
    "made.ts": `import "tradewind"; import { make } from "./factory.ts";\nexport default make("kept");\nmake("lost");\n`,
    "factory.ts": `import { dag } from "tradewind";\nexport const make = (id: string) => dag(id, (d) => { d.task("a", () => 1); });\n`,
  });
  await processorOn(test.db, folder, { logger }).runOnce();
  expect(taken().map(({ fields }) => [fields.file, fields.dags])).toEqual([["made.ts", ["lost"]]]);
});

it("rejects a file whose DAG contains an unexported sub-DAG", async () => {
  const folder = new FolderFixture();
  const child = (keyword: string) => FORGOTTEN.replace("const", keyword);
  const parent = `export default dag("around", (d) => { d.dag("s", forgotten); });\n`;
  await folder.write({ "around.ts": `${child("const")}${parent}` });
  const { logger, taken } = capture();
  const processor = processorOn(test.db, folder, { logger });
  expect(await processor.runOnce()).toMatchObject({ failed: 1, published: 0 });
  expect(taken()[0]?.fields.error).toContain(
    'around.ts: dag "around", task "s": its DAG "forgotten" is not exported, and could not be run: export it, too.',
  );
  await folder.write({ "around.ts": `${child("export const")}${parent}` });
  expect(await processor.runOnce()).toMatchObject({ failed: 0, published: 1 });
});

it("logs it again after a restart although the file is unchanged, and keeps it in the saved ledger", async () => {
  const folder = new FolderFixture();
  const ledgerPath = join(new FolderFixture().path, "ledger.json");
  await folder.write({ "forgot.ts": FORGOTTEN, "fine.ts": dagText("fine") });
  await processorOn(test.db, folder, { ledgerPath }).runOnce();
  const { logger, taken } = capture();
  const again = await processorOn(test.db, folder, { ledgerPath, logger }).runOnce();
  expect(again).toMatchObject({ bundled: 0 });
  expect(taken()).toMatchObject([{ fields: { file: "forgot.ts" } }]);
  expect(await forgetfulFiles(ledgerPath)).toEqual([{ file: "forgot.ts", unexported: ["forgotten"] }]);
  expect(await forgetfulFiles(`${ledgerPath}.none`)).toEqual([]);
});
