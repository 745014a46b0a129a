import { expect, it } from "vitest";
import { missingVariableHint } from "./missing-variable.ts";

const WITHHELD = new Set(["AWS_ACCESS_KEY_ID", "AWS_REGION", "FOO", "USER", "SHELL", "apiBase", "PATH_INFO"]);
const hint = (text: string, given: readonly string[] = []) => missingVariableHint(text, WITHHELD, { given });
const line = (name: string) =>
  `${name} is set for the scheduler but not passed to tasks: add it to TRADEWIND_TASK_ENV.`;

it.each([
  [
    "Could not load credentials from any providers (cause: AWS_ACCESS_KEY_ID is missing)",
    "AWS_ACCESS_KEY_ID",
  ],
  ["Environment variable FOO is not set", "FOO"],
  ["FOO must be set", "FOO"],
  ["process.env.FOO is undefined", "FOO"],
  ["expected process.env.apiBase to be a URL", "apiBase"],
  ['process.env["FOO"] is required', "FOO"],
  ["bash: line 1: AWS_REGION: unbound variable", "AWS_REGION"],
  ["first line\nmissing $AWS_REGION.", "AWS_REGION"],
])("explains %j", (message, name) => {
  expect(hint(message)).toBe(line(name));
});

it.each([
  "USER not found",
  "SHELL is a word of this sentence",
  "the environment variable BAR is not set",
  "cannot open /data/AWS_REGION/x.csv",
  "cannot open data-AWS_REGION.csv",
  "MY_AWS_REGION is missing",
  "aws_region is missing",
  "Cannot read properties of undefined (reading 'split')",
])("gives no hint for %j", (message) => {
  expect(hint(message)).toBeNull();
});

it("gives no hint for a variable that the DAG has set itself", () => {
  expect(hint("AWS_REGION is wrong", ["AWS_REGION"])).toBeNull();
});

it("has one line per name, for three names at most", () => {
  expect(hint("AWS_REGION and AWS_REGION and AWS_ACCESS_KEY_ID")).toBe(
    `${line("AWS_REGION")}\n${line("AWS_ACCESS_KEY_ID")}`,
  );
  expect(hint("env: FOO USER SHELL AWS_REGION")?.split("\n")).toHaveLength(3);
});
