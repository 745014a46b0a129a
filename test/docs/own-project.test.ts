/** The project outside the repository that docs/guides/projects.md describes: it has types, and its DAGs run. */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { blocksOf, ROOT } from "./guide.ts";

const run = promisify(execFile);
let folder: string;
let project: string;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "tradewind-own-")));
  project = join(folder, "sales");
  await symlink(ROOT, join(folder, "tradewind"));
  await mkdir(join(project, "dags"), { recursive: true });
  await mkdir(join(project, "node_modules"));
  // What the guide has its reader install.
  await symlink(join(ROOT, "node_modules/@types"), join(project, "node_modules/@types"));
  const [settings] = blocksOf("docs/guides/projects.md").filter(({ title }) => title === "tsconfig.json");
  await writeFile(join(project, "tsconfig.json"), settings?.text ?? "");
  await cp(join(ROOT, "examples/hello.ts"), join(project, "dags/hello.ts"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const compile = () =>
  run(join(ROOT, "node_modules/.bin/tsc"), ["-p", project]).catch((error: { stdout: string }) => error);

it("has the types of the sources", async () => {
  expect((await compile()).stdout).toBe("");
  const hello = await readFile(join(project, "dags/hello.ts"), "utf8");
  const wrong = join(project, "dags/wrong.ts");
  await writeFile(wrong, hello.replace("text.toUpperCase()", "text.toFixed()"));
  expect((await compile()).stdout).toMatch(/dags\/wrong\.ts.*'toFixed' does not exist on type 'string'/);
  await rm(wrong);
});

it("has the types of text that a DAG imports", async () => {
  const query = join(project, "dags/query.ts");
  const file = 'import { dag } from "tradewind";\nimport query from "./a.sql";\n';
  await writeFile(
    query,
    `${file}export default dag("q", (d) => d.task("t", () => query.length + query.nothing));\n`,
  );
  const { stdout } = await compile();
  await rm(query);
  expect(stdout).toMatch(/^.*dags\/query\.ts.*'nothing' does not exist on type 'string'\.\n$/);
});

it("has DAGs that run, with nothing of Tradewind installed", async () => {
  const main = join(ROOT, "packages/cli/src/main.ts");
  const args = ["--conditions=source", main, "dags", "test", join(project, "dags/hello.ts")];
  const { stderr } = await run(process.execPath, args, { cwd: ROOT, env: { PATH: process.env.PATH } });
  expect(stderr).toMatch(/hello: success in .*, 3 tasks/);
});
