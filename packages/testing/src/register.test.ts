/** Runs in a process of its own: module hooks cannot be removed, and other tests share this process. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";

it("lets Node import what a bundle imports, besides Node's own formats", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tradewind-register-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const files = {
    "q.sql": "SELECT 1",
    "c.yaml": "list: [1, two]",
    "c.json": `{ "n": 1 }`,
    "b.bin": "\u0001\u0002",
    "main.mjs": `import { readFileSync } from "node:fs";
      import text from "./q.sql"; import typed from "./q.sql" with { type: "text" };
      import yaml from "./c.yaml" with { type: "yaml" }; import plain from "./c.yaml";
      import json from "./c.json" with { type: "json" }; import bytes from "./b.bin" with { type: "bytes" };
      const beside = readFileSync(new URL("./q.sql", import.meta.url), "utf8");
      console.log(JSON.stringify([text, typed, yaml, plain, json, [...bytes], beside]));`,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const register = fileURLToPath(new URL("./register.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--import",
    register,
    join(folder, "main.mjs"),
  ]);
  expect(JSON.parse(stdout)).toEqual([
    "SELECT 1",
    "SELECT 1",
    { list: [1, "two"] },
    "list: [1, two]",
    { n: 1 },
    [1, 2],
    "SELECT 1",
  ]);
});
