/** `tasks test`: no server, no database. The command runs in this process, the task in a child process. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { runCaptured } from "./support/captured-host.ts";

const DAGS = fileURLToPath(new URL("./dags", import.meta.url));
const TROUBLE = fileURLToPath(new URL("./trouble-dags/trouble.ts", import.meta.url));
const EXAMPLES = fileURLToPath(new URL("../../../examples", import.meta.url));
const ETL = [`${EXAMPLES}/etl.ts`];
const test = (...args: string[]) =>
  runCaptured(["tasks", "test", ...args], { env: { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE } });

it("runs one task with its inputs, with the log on stderr and the output on stdout", async () => {
  const { code, stderr, stdout } = await test(
    "hello",
    "greet",
    "--dags",
    EXAMPLES,
    "--input",
    'name="world"',
  );
  expect({ code, stdout }).toEqual({ code: 0, stdout: '"Hello, world!"\n' });
  expect(stderr).toMatch(/^▶ greet\n {4}greeting world\n✓ greet success in [^\n]+\n$/);
});

it("lists all missing inputs in one error, and runs nothing", async () => {
  const { code, stderr } = await test(...ETL, "report", "--input", "total=3");
  expect(code).toBe(2);
  expect(stderr).toBe(`error: cannot test the task report: 2 of 3 inputs are missing. [TW_CLI_INPUTS]
  atOnce: the output of load_at_once
  inParts: the output of load_in_parts
  → give each as JSON: --input atOnce=… --input inParts=…
`);
  const json = await test(...ETL, "check", "--json");
  expect(JSON.parse(json.stderr)).toMatchObject({ code: "TW_CLI_INPUTS", fields: [{ field: "orders" }] });
});

it("accepts failed inputs, values from a file, params and a date", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tradewind-input-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "orders.json"), '[{"id":1,"amount":7},{"id":2,"amount":5}]');
  const check = await test(...ETL, "check", "--input", `orders=@${join(folder, "orders.json")}`);
  expect(check.stdout).toBe("12\n");
  const inputs = ["--input", "total=3", "atOnce=2", "--input-state", "inParts=skipped"];
  const report = JSON.parse((await test(...ETL, "report", ...inputs, "--json")).stdout);
  expect(report).toMatchObject({ task_id: "report", state: "success", output: { rows: 2, sum: 3 } });
});

it("rejects unknown tasks, inputs, states and invalid JSON, with suggestions", async () => {
  const said = async (...args: string[]) => (await test(...ETL, ...args)).stderr;
  expect(await said("chek")).toMatch(
    /has no task chek\. \[TW_CLI_NO_TASK\]\n {2}→ did you mean "check"\? It has: extract/,
  );
  expect(await said("check", "--input", "order=1")).toContain('did you mean "orders"? Its inputs: orders');
  expect(await said("check", "--input", "orders=nope")).toContain("--input orders is not valid JSON");
  expect(await said("check", "--input-state", "orders=happy")).toContain(
    "use failed, skipped, upstream_failed",
  );
  expect(await said("check", "--input", "orders=1", "--conf", '{"region":"mars"}')).toContain(
    "TW_PARAMS_INVALID",
  );
});

it("fails a task with the rule allSuccess if an input did not succeed, as in a run", async () => {
  const { code, stderr } = await test(...ETL, "check", "--input-state", "orders=failed");
  expect(code).toBe(1);
  expect(stderr).toContain("[TW_INPUT_MISSING]");
});

it("runs the task once, and exits with 1 and the source line if it fails", async () => {
  const { code, stderr, stdout } = await test(...ETL, "extract");
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/✗ extract failed .*\n +Error: the source does not answer\n.*etl\.ts:\d+/);
  expect(stderr.match(/▶/g)).toHaveLength(1);
});

it.each([
  ["leaves", "called process.exit(0)"],
  ["rejects", "not awaited"],
  ["throws", "from a timer"],
  ["forgets", "TW_WORK_LEFT_OPEN"],
  ["hangs", "nothing can settle"],
])("is as strict as a run: %s", async (taskId, message) => {
  const { code, stderr } = await test(TROUBLE, taskId, "--dag", "crashes");
  expect(code).toBe(1);
  expect(stderr).toContain(message);
});

it("runs no other tasks, callbacks or notices", async () => {
  const { stderr } = await test(`${DAGS}/failing.ts`, "broken");
  expect(stderr).toContain("the disk is full");
  expect(stderr).not.toMatch(/first|never|webhook|the run has failed/);
});
