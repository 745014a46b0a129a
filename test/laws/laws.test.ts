import { describe, expect, it } from "vitest";
import { LAWS } from "./laws.ts";
import { readTree, treeOf } from "./source-tree.ts";

const tree = readTree();

describe("the laws hold", () => {
  it("for an existing tree", () => {
    expect(tree.size).toBeGreaterThan(300);
    const imports = [...tree.values()].flatMap((file) => file.imports);
    expect(imports.length).toBeGreaterThan(1_000);
    expect(imports.filter(({ isTypeOnly }) => isTypeOnly).length).toBeGreaterThan(200);
  });

  for (const { says, violations } of LAWS) {
    it(says, () => expect(violations(tree)).toEqual([]));
  }
});

/** A law that cannot be broken proves nothing: for each, files that break it. */
const BREACHES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "web knows the server only by the types of its API: it imports from no other package of this repository": {
    "packages/web/src/a.ts": 'import { b } from "../../engine/src/model/b.ts";',
    "packages/web/src/b.tsx": 'import type { Config } from "@tradewind/engine";',
    "packages/web/src/c.ts": 'import { readFile } from "node:fs/promises";',
  },
  "model/ imports nothing but itself, the SDK's types and its tables and texts": {
    "packages/engine/src/model/a.ts": 'import { b } from "../store/b.ts";',
    "packages/engine/src/model/b.ts": 'import { c } from "@tradewind/sdk/manifest";',
    "packages/engine/src/model/c.ts": 'import type { C } from "node:fs";',
  },
  "model/ uses no clock, no randomness, no process and nothing asynchronous": {
    "packages/engine/src/model/a.ts": "export const now = () => Date.now();",
    "packages/engine/src/model/b.ts": "export const now = () => new Date();",
    "packages/engine/src/model/c.ts": "export const chance = Math.random();",
    "packages/engine/src/model/d.ts": "setTimeout(() => {}, process.pid);",
  },
  "user code is loaded only where it runs: bundler child, task runner, trigger runner, the child of `dags test`":
    {
      "packages/engine/src/run/a.ts": "const dag = await import(path);",
      "packages/cli/src/b.ts": "const dag = require(path);",
      "packages/engine/src/trigger/c.ts": "const trigger = await import(path);",
      "packages/engine/src/signal/d.ts": "const service = await import(path);",
    },
  "outside those children nothing is run from text: no eval, no new Function, no vm, no worker thread": {
    "packages/engine/src/api/a.ts": 'import { runInThisContext } from "node:vm";',
    "packages/engine/src/api/b.ts": 'export const answer = eval("6 * 7");',
    "packages/engine/src/api/c.ts": 'export const answer = new Function("return 42");',
    "packages/engine/src/trigger/d.ts": 'import { Worker } from "node:worker_threads";',
  },
  "no service reaches, over any number of imports, a module that loads user code": {
    "packages/engine/src/run/a.ts": 'import { b } from "../bundle/b.ts";',
    "packages/engine/src/bundle/b.ts": 'export { c as b } from "./bundler/c.ts";',
    "packages/engine/src/bundle/bundler/c.ts": "export const c = await import(url);",
  },
  "services do not import from the folders of those children, except types": {
    "packages/engine/src/process/a.ts": 'import { b } from "../execute/task-runner/b.ts";',
    "packages/engine/src/trigger/b.ts": 'import { c } from "./runner/c.ts";',
  },
  "only store/ holds SQL and talks to the driver": {
    "packages/engine/src/api/a.ts": "db.rows(`SELECT 1\n FROM dag WHERE dag_id = 'x'`);",
    "packages/engine/src/run/b.ts": 'db.rows("UPDATE dag SET is_paused = true");',
    "packages/engine/src/service/c.ts": 'import pg from "pg";',
    "packages/engine/src/builtin/http.ts": 'import pg from "pg";',
    "packages/engine/src/builtin/sql-d.ts": 'import { Database } from "../store/database/database.ts";',
  },
  "the state of a task instance is written by claim, batch and edit only": {
    "packages/engine/src/store/a.ts":
      'export const A = statement("a", "UPDATE task_instance t SET note = $1, state = $2 WHERE t.dag_run_id = $3");',
    "packages/engine/src/store/b.ts":
      'export const B = statement("b", "INSERT INTO task_instance DEFAULT VALUES");',
    "packages/engine/src/store/c.ts":
      'export const C = statement("c", `UPDATE task_instance t SET $' + "{all}, pid = 1 WHERE t.pid = 2`);",
  },
  "every prepared statement has a name of its own": {
    "packages/engine/src/store/a.ts": 'const A = statement("same", "SELECT 1");',
    "packages/engine/src/store/b.ts": 'const B = statement(\n  "same",\n  "SELECT 1",\n);',
  },
  "a folder of the engine imports only from the folders below it, and no stage from another stage": {
    "packages/engine/src/store/a.ts": 'import { b } from "../execute/b.ts";',
    "packages/engine/src/store/list/b.ts": 'import type { C } from "../../api/c.ts";',
    "packages/engine/src/execute/c.ts": 'import type { D } from "../trigger/d.ts";',
    "packages/engine/src/run/job/d.ts": 'import { e } from "../../execute/local/e.ts";',
    "packages/engine/src/new-room/e.ts": 'import { f } from "../store/f.ts";',
  },
  "the contract of executors is imported by other stages for its types only": {
    "packages/engine/src/run/a.ts": 'import { b } from "../execute/contract.ts";',
  },
  "a folder holds at most 26 source files": Object.fromEntries(
    Array.from({ length: 27 }, (_, n) => [`packages/engine/src/run/job/f${n}.ts`, ""]),
  ),
  "sdk imports nothing outside itself, and none of Node's modules": {
    "packages/sdk/src/a.ts": 'import type { B } from "node:fs";',
    "packages/sdk/src/b.ts": 'import { c } from "@tradewind/engine";',
  },
  "packages import each other by name, never by path": {
    "packages/cli/src/a.ts": 'import { b } from "../../engine/src/b.ts";',
  },
  "no source file has more than 400 lines, no test more than 600": {
    "packages/cli/src/a.ts": "//\n".repeat(401),
    "packages/cli/src/a.test.ts": "//\n".repeat(601),
  },
  "a file is named after what it owns": {
    "packages/cli/src/utils.ts": "",
    "packages/cli/src/run-manager.ts": "",
    "packages/cli/src/input/types.ts": "",
  },
};

/** Read from a manifest, not from the tree. */
const WITHOUT_BREACH = ["sdk has no runtime dependency"];

describe("a violation", () => {
  it("is detected by every law", () => {
    expect([...Object.keys(BREACHES), ...WITHOUT_BREACH].sort()).toEqual(LAWS.map(({ says }) => says).sort());
  });

  for (const [says, files] of Object.entries(BREACHES)) {
    it(says, () => {
      const found = LAWS.find((law) => law.says === says)?.violations(treeOf(files)) ?? [];
      const blamed = (path: string) => found.some((violation) => violation.startsWith(path));
      // A duplicate and a chain are one violation of several files.
      if (says.includes("folder holds")) expect(found).toHaveLength(1);
      else
        expect(Object.keys(files).filter(blamed).length).toBeGreaterThanOrEqual(
          says.includes("statement") || says.includes("reaches") ? 1 : Object.keys(files).length,
        );
    });
  }

  it("is not reported for allowed code", () => {
    const allowed = treeOf({
      "packages/engine/src/model/a.ts":
        'import type { M } from "@tradewind/sdk/manifest";\nimport { b } from "./b.ts"; // Date.now\nnew Date(0);',
      "packages/engine/src/store/a.ts":
        'import type { W } from "../model/run/run.ts"; const s = "SELECT 1 FROM dag";',
      "packages/engine/src/run/a.ts": 'import type { E } from "../execute/contract.ts";',
      "packages/engine/src/store/edit/notes.ts":
        'statement("n", "UPDATE task_instance SET note = $1 WHERE state = $2");',
      "packages/engine/src/api/a.test.ts": 'db.rows("SELECT 1 FROM dag");',
      "packages/engine/src/builtin/sql-pool.ts": 'import pg from "pg";',
      "packages/engine/src/bundle/bundler/main.ts": "await import(url);",
      "packages/engine/src/service/configured-module.ts": "await import(url);",
      "packages/engine/src/process/e.ts": 'import { f } from "../signal/configured-service.ts";',
      "packages/engine/src/bundle/child.ts": 'import type { Reply } from "./bundler/protocol.ts";',
      "packages/cli/src/program.ts": 'const { a } = await import("./commands/a.ts");',
    });
    for (const { violations } of LAWS) expect(violations(allowed)).toEqual([]);
  });
});
