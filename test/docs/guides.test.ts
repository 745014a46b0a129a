/** The modules shown in the guides: written to files, compiled, loaded; their tests are run. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { isDag } from "@tradewind/sdk";
import { PROGRAM, type Program } from "@tradewind/sdk/program";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blocksOf, pages, ROOT } from "./guide.ts";

const run = promisify(execFile);
const modules = pages()
  .flatMap(blocksOf)
  .filter(({ language }) => language === "ts")
  .map((block) => ({ ...block, title: block.title || "dags/hello.ts" }));
const dags = modules.filter(({ title }) => /^dags\/(?!.*\.test\.ts$)/.test(title));
const tests = modules.filter(({ title }) => title.endsWith(".test.ts"));

/** Inside the repository, where packages resolve. */
let folder: string;

beforeAll(async () => {
  await mkdir(join(ROOT, ".cache"), { recursive: true });
  folder = await mkdtemp(join(ROOT, ".cache/guides-"));
  for (const { title, text } of modules) {
    await mkdir(dirname(join(folder, title)), { recursive: true });
    await writeFile(join(folder, title), text);
  }
  const settings = { extends: "../../tsconfig.json", include: ["**/*.ts"] };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(settings));
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe("modules in the guides", () => {
  it("exist, each with a unique name", () => {
    const titles = modules.map(({ title }) => title);
    expect(new Set(titles).size).toBe(titles.length);
    expect(dags.length).toBeGreaterThanOrEqual(5);
    expect(tests.length).toBeGreaterThanOrEqual(1);
  });

  it("compile", async () => {
    const tsc = join(ROOT, "node_modules/.bin/tsc");
    const { stdout } = await run(tsc, ["-p", folder, "--listFiles"]).catch(
      (error: { stdout: string }) => error,
    );
    const lines = stdout.split("\n");
    expect(lines.filter((line) => line.includes("error TS"))).toEqual([]);
    expect(modules.filter(({ title }) => !lines.includes(join(folder, title)))).toEqual([]);
  }, 240_000);

  for (const { page, title } of dags) {
    it(`${title} of ${page} is a DAG`, async () => {
      const exports = (await import(pathToFileURL(join(folder, title)).href)) as { default: unknown };
      expect(isDag(exports.default)).toBe(true);
      const manifest = (exports.default as { [PROGRAM]: Program })[PROGRAM].describe();
      expect(title).toBe(`dags/${manifest.dagId}.ts`);
      expect(manifest.tasks.length).toBeGreaterThan(1);
    });
  }

  for (const { page, title } of tests) {
    it(`${title} of ${page} passes`, async () => {
      const { stdout } = await run(process.execPath, ["--conditions=source", "--test", join(folder, title)], {
        env: { PATH: process.env.PATH },
      });
      expect(stdout).toMatch(/fail 0\b/);
      expect(stdout).toMatch(/pass [1-9]/);
    });
  }
});
