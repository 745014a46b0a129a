/** Executors and queues that are not configured or not served. */
import { beforeEach, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import type { Logger } from "../service/logger.ts";
import { silentLogger } from "../service/logger.ts";
import { dagText, FolderFixture, importErrors, processorOn, versions } from "./dag-folder-fixture.ts";

let test: TestDatabase;

beforeEach(async () => {
  test = await testDatabase();
});

it("rejects a file whose tasks name an executor that is not configured", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "pods.ts": dagText("pods", "return 1;", `{ defaults: { executor: "kubernets" } }`),
    "here.ts": dagText("here", "return 1;", `{ defaults: { executor: "local" } }`),
  });
  await processorOn(test.db, folder, { executors: ["local", "kubernetes"] }).runOnce();
  expect(await versions(test.db)).toEqual({ here: 1 });
  expect(await importErrors(test.db)).toEqual({
    "pods.ts": `pods.ts: task "work" of DAG "pods" names the executor "kubernets", which is not configured. Configured: "local", "kubernetes". Name one of these, or leave the option out. [EXECUTOR_UNKNOWN]`,
  });
  await folder.write({ "pods.ts": dagText("pods", "return 1;", `{ defaults: { executor: "kubernetes" } }`) });
  await processorOn(test.db, folder, { executors: ["local", "kubernetes"] }).runOnce();
  expect(await versions(test.db)).toEqual({ here: 1, pods: 1 });
});

it("accepts only the local executor by default", async () => {
  const folder = new FolderFixture();
  await folder.write({ "pods.ts": dagText("pods", "return 1;", `{ defaults: { executor: "kubernetes" } }`) });
  await processorOn(test.db, folder).runOnce();
  expect((await importErrors(test.db))["pods.ts"]).toContain("[EXECUTOR_UNKNOWN]");
});

it("warns about queues of tasks on the local executor, if the file has changed", async () => {
  const folder = new FolderFixture();
  await folder.write({
    "gpu.ts": dagText("gpu", "return 1;", `{ defaults: { queue: "gpu" } }`),
    "near.ts": dagText("near", "return 1;", `{ defaults: { queue: "gpu", executor: "local" } }`),
    "plain.ts": dagText("plain"),
  });
  const warnings: unknown[] = [];
  const logger: Logger = { ...silentLogger, warn: (message, fields) => warnings.push([message, fields]) };
  const warning = (dagId: string) => [
    "tasks of the local executor name queues: it runs all tasks alike",
    { file: `${dagId}.ts`, queues: [`${dagId}.work: gpu`] },
  ];
  const processor = processorOn(test.db, folder, { logger });
  await processor.runOnce();
  await processor.runOnce();
  expect(warnings.splice(0)).toEqual([warning("gpu"), warning("near")]);
  // On a queue executor, a queue may get its workers at any time.
  await folder.write({ "gpu.ts": dagText("gpu", "return 2;", `{ defaults: { queue: "gpu" } }`) });
  await processorOn(test.db, folder, { logger, executors: ["queue", "local"] }).runOnce();
  expect(warnings).not.toContainEqual(warning("gpu"));
});
