import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FrameFilter, SourcePaths } from "./source-paths.ts";

let folder: string;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "tw-paths-")));
  await writeFile(join(folder, "etl.ts"), "");
});
afterAll(() => rm(folder, { recursive: true }));

test("shows a file in the current folder as relative, any other as absolute", () => {
  const here = new SourcePaths(["packages/cli/src"]);
  expect(here.inText("    at load (dags:/program.ts:3:5)")).toBe(
    "    at load (packages/cli/src/program.ts:3:5)",
  );
  const there = new SourcePaths([folder]);
  expect(there.inText("    at dags:/etl.ts:3:5")).toBe(`    at ${folder}/etl.ts:3:5`);
});

test("keeps the DAG folder path of a file that is not on this machine", () => {
  expect(new SourcePaths([folder]).inText("    at load (dags:/gone/etl.ts:3:5)")).toBe(
    "    at load (gone/etl.ts:3:5)",
  );
});

test("makes absolute paths and file URLs of frames relative, and keeps other text", () => {
  const paths = new SourcePaths([]);
  const url = pathToFileURL(join(process.cwd(), "examples/hello.ts")).href;
  expect(paths.inText(`    at async run (${url}:1:2)`)).toBe("    at async run (examples/hello.ts:1:2)");
  expect(paths.inText(`    at ${join(process.cwd(), "a.ts")}:1:2`)).toBe("    at a.ts:1:2");
  expect(paths.inText(`saved ${process.cwd()}/a.ts:1:2`)).toBe(`saved ${process.cwd()}/a.ts:1:2`);
});

test("shows files of import errors relative to the current folder", () => {
  const text =
    "program.ts:4:11: RangeError: 12:30:00 is late\n\n    at divide (program.ts:4:11)\n    at (program.ts:3:11)";
  expect(new SourcePaths(["packages/cli/src"]).inImportError(text)).toBe(
    text.replaceAll("program.ts", "packages/cli/src/program.ts"),
  );
});

test("leaves out frames of the engine and of Node until the next stack", () => {
  const filter = new FrameFilter();
  const lines = [
    "Error: no",
    "    at load (dags:/etl.ts:3:5)",
    "    at async enter (file:///home/bundles/chunk-0a1b.mjs:9:9)",
    "    at process.processTicksAndRejections (node:internal/process/task_queues:104:5)",
    "    at async other (dags:/etl.ts:9:5)",
    "    at tradewindCallsUserCode (anywhere.mjs:1:1)",
    "    at below (anywhere.mjs:1:1)",
    "next line",
    "    at load (dags:/etl.ts:3:5)",
  ];
  expect(lines.filter((line) => filter.isShown(line))).toEqual([0, 1, 4, 7, 8].map((at) => lines[at]));
});
