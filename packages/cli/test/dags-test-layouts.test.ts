/** `dags test` with files of projects that are not ES modules, and with duplicate DAG ids. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { runCaptured } from "./support/captured-host.ts";

async function project(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tradewind-project-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  return folder;
}

const test = (...args: string[]) => runCaptured(["dags", "test", ...args, "--json"]);
const cjs = (id: string, exported: string) =>
  `const { dag } = require("tradewind");\n${exported} = dag("${id}", (d) => { d.task("t", () => require("./config.json").n); });\n`;

it.each([
  ["a.js", cjs("a", "exports.default")],
  ["a.cjs", cjs("a", "module.exports")],
  ["a.cts", cjs("a", "exports.a").replace("const { dag }", "const { dag }: any").replace("(d)", "(d: any)")],
])("runs a CommonJS file: %s", async (file, text) => {
  const folder = await project({
    "package.json": '{"name":"project"}',
    "config.json": '{"n":7}',
    [`dags/${file}`]: text.replace("./config", "../config"),
  });
  for (const args of [[join(folder, "dags", file)], ["a", "--dags", join(folder, "dags")]]) {
    const { code, stdout, stderr } = await test(...args);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ tasks: [{ task_id: "t", output: 7 }] });
  }
});

it("names files with the same DAG id, and runs the given file", async () => {
  const folder = await project({
    "config.json": '{"n":7}',
    "b.js": cjs("x", "module.exports"),
    "a.js": cjs("x", "module.exports"),
  });
  const { code, stderr } = await test("x", "--dags", folder);
  expect(code).toBe(2);
  expect(stderr).toContain(`several files in ${folder} export the DAG x: a.js, b.js.`);
  expect(stderr).toContain("give the file instead of the DAG id");
  expect((await test(join(folder, "b.js"))).code).toBe(0);
});

it("lists all invalid options of a file", async () => {
  const folder = await project({
    "a.js": `const { dag } = require("tradewind");
module.exports = dag("x", { schedule_interval: "@daily" }, (d) => { d.task("t", { task_id: "t" }, () => 1); });`,
  });
  const { code, stderr } = await test(join(folder, "a.js"));
  expect(code).toBe(1);
  const { message } = JSON.parse(stderr) as { message: string };
  expect(message).toContain('unknown option "schedule_interval"; it is called "schedule"');
  expect(message).toContain('unknown option "task_id"; leave it out: the id is the first argument');
});
