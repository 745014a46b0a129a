import { expect, it } from "vitest";
import { runCaptured } from "./support/captured-host.ts";

it.each([
  "dags list",
  "dags show",
  "dags graph",
  "dags errors",
  "dags versions",
  "dags diff",
  "dags pause",
  "dags unpause",
  "dags delete",
  "dags test",
  "tasks list",
  "tasks test",
  "tasks output",
  "tasks why",
  "tasks start",
  "tasks restart",
  "tasks stop",
  "tasks clear",
  "tasks mark",
])("ends %s --help with examples of the command", async (command) => {
  const { code, stdout } = await runCaptured([...command.split(" "), "--help"], { columns: 80 });
  expect(code).toBe(0);
  const [, shown = ""] = stdout.split("\nExamples:\n");
  expect(shown).toContain(`  $ tradewind ${command}`);
});
