/** The first example of docs/guides/waiting.md: its DAG runs on a standalone, and its commands in the order of the page. */
import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCaptured } from "../../packages/cli/test/support/captured-host.ts";
import { StandaloneProcess } from "../../packages/cli/test/support/standalone-process.ts";
import { blocksOf } from "./guide.ts";
import { commandLines, shellWords } from "./shell.ts";

const [dag, shell] = blocksOf("docs/guides/waiting.md");
let standalone: StandaloneProcess;
let file: string;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "tradewind-waiting-guide-"));
  // Tasks may run under another account.
  await chmod(folder, 0o755);
  file = join(folder, "orders.csv");
  await mkdir(join(folder, "dags"));
  await writeFile(join(folder, dag!.title), dag!.text.replace("/tmp/orders.csv", file));
  standalone = await StandaloneProcess.startOn(folder);
  await standalone.until(/1 DAG loaded: count_orders/);
}, 120_000);
afterAll(() => standalone?.remove());

it("waits for the file and counts its lines", async () => {
  const tw = async (words: readonly string[]) => {
    const { code, stderr, stdout } = await runCaptured(words, { env: { TRADEWIND_HOME: standalone.home } });
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
    return stdout;
  };
  const [trigger, waiting, write, ...rest] = commandLines(shell!.text);
  const wordsOf = (line: string | undefined) => shellWords(line!.replace(/^tradewind /, ""));
  await tw(wordsOf(trigger));
  await expect
    .poll(() => tw(wordsOf(waiting)), { timeout: 30_000 })
    .toMatch(/^count +count_orders .* tradewind\.file .*orders\.csv/m);
  expect(write).toContain("/tmp/orders.csv");
  await promisify(execFile)("sh", ["-c", write!.replace("/tmp/orders.csv", file)]);
  let output = "";
  for (const line of rest) output = await tw(wordsOf(line));
  expect(rest).toHaveLength(2);
  expect(output.trim()).toBe("2");
}, 120_000);
