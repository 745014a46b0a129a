/** The first example of docs/guides/approvals.md: its DAG runs on a standalone, and its commands in the order of the page. */
import { chmod, mkdir, mkdtemp, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCaptured } from "../../packages/cli/test/support/captured-host.ts";
import { StandaloneProcess } from "../../packages/cli/test/support/standalone-process.ts";
import { blocksOf } from "./guide.ts";
import { commandLines, shellWords } from "./shell.ts";

const [dag, shell] = blocksOf("docs/guides/approvals.md");
let standalone: StandaloneProcess;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "tradewind-approvals-guide-"));
  // Tasks may run under another account.
  await chmod(folder, 0o755);
  await mkdir(join(folder, "dags/node_modules"), { recursive: true });
  const zod = dirname(createRequire(import.meta.url).resolve("zod/package.json"));
  await symlink(zod, join(folder, "dags/node_modules/zod"));
  await writeFile(join(folder, dag!.title), dag!.text);
  standalone = await StandaloneProcess.startOn(folder);
  await standalone.until(/1 DAG loaded: publish_report/);
}, 120_000);
afterAll(() => standalone?.remove());

it("asks twice and publishes where the answer says", async () => {
  const tw = (line: string) =>
    runCaptured(shellWords(line.replace(/^tradewind /, "")), { env: { TRADEWIND_HOME: standalone.home } });
  const [trigger, list, approve, show, answer, ...rest] = commandLines(shell!.text) as [string, ...string[]];
  expect(rest).toEqual([]);
  expect((await tw(trigger)).code).toBe(0);
  await expect
    .poll(async () => (await tw(list!)).stdout, { timeout: 30_000 })
    .toMatch(/^ *1 +publish_report .* ok +Publish a report with 1200 rows\? +open/m);
  expect((await tw(approve!)).stderr).toMatch(/^Approved: Publish a report/);
  await expect
    .poll(async () => (await tw(show!)).stdout, { timeout: 30_000 })
    .toMatch(/^title +Where is the report published\?$/m);
  expect((await tw(show!)).stdout).toMatch(/^until .*, then: answer$/m);
  // Assigned to ann and bo; this is the token of the installation.
  expect((await tw(answer!)).stderr).toMatch(/^Approved: Where is the report published/);
  expect((await tw("tradewind runs wait publish_report @latest")).code).toBe(0);
  expect((await tw("tradewind tasks output publish_report @latest us")).stdout.trim()).toBe('"3 copies"');
}, 120_000);
