import { fork, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { userEnvironment } from "../service/user-environment.ts";
import { adhoc } from "../store/database/database.ts";
import type { BundlerReply, BundlerRequest } from "./bundler/protocol.ts";
import { dagText, FolderFixture, importErrors, processorOn, versions } from "./dag-folder-fixture.ts";

let test: TestDatabase;
beforeEach(async () => {
  test = await testDatabase();
  return () => test.close();
});

describe("a broken file", () => {
  it("gets an error with a code frame, and keeps its last good version", async () => {
    const folder = new FolderFixture();
    await folder.write({ "a.ts": dagText("a"), "b.ts": dagText("b") });
    const processor = processorOn(test.db, folder);
    await processor.runOnce();
    await folder.write({
      "a.ts": `import { dag } from "tradewind";\n\nconst x: number = = 1;\n`,
      "b.ts": dagText("b", "return 2"),
    });
    expect(await processor.runOnce()).toMatchObject({ failed: 1, published: 1 });
    expect(await versions(test.db)).toEqual({ a: 1, b: 2 });
    const error = (await importErrors(test.db))["a.ts"];
    expect(error).toContain('a.ts:3:19: Unexpected "=" [DAG_FILE_SYNTAX]\n');
    expect(error).toContain("> 3 | const x: number = = 1;\n    |                   ^");
    expect(await processor.runOnce()).toMatchObject({ failed: 1, bundled: 0 });

    await folder.write({ "a.ts": dagText("a") });
    expect(await processor.runOnce()).toMatchObject({ failed: 0 });
    expect(await importErrors(test.db)).toEqual({});
    expect(await versions(test.db)).toEqual({ a: 1, b: 2 });
  });

  it("points at the line of an unresolved import, and loads when the import appears", async () => {
    const folder = new FolderFixture();
    await folder.write({ "a.ts": `${dagText("a")}\nimport "./missing.ts";\n` });
    const processor = processorOn(test.db, folder);
    await processor.runOnce();
    expect((await importErrors(test.db))["a.ts"]).toMatch(
      /^a\.ts:6:8: Could not resolve ".\/missing.ts" \[DAG_IMPORT_UNRESOLVED\]. There is no such file/,
    );
    await folder.write({ "missing.ts": "export {};", "b.ts": dagText("b") });
    expect(await processor.runOnce()).toMatchObject({ failed: 0, published: 2 });
  });

  it("gets advice for its author: install the package, without esbuild's options", async () => {
    const folder = new FolderFixture();
    await folder.write({
      "plain.ts": `${dagText("a")}\nimport "left-pad/lib/index.js";\n`,
      "scoped.ts": `${dagText("b")}\nimport "@acme/warehouse/client";\n`,
      "dynamic.ts": dagText("c", `await import("left-pad");`),
      "subpath.ts": `${dagText("d")}\nimport "zod/none";\n`,
      "misspelt.ts": `${dagText("e")}\nimport { Sensr } from "tradewind";\nconsole.log(Sensr);\n`,
      "node_modules/zod/package.json": `{ "name": "zod", "exports": { ".": "./index.js" } }`,
      "node_modules/zod/index.js": "",
    });
    await processorOn(test.db, folder).runOnce();
    const errors = await importErrors(test.db);
    expect(errors["plain.ts"]).toContain(
      `Could not resolve "left-pad/lib/index.js" [DAG_IMPORT_UNRESOLVED]. Install the package in the DAG's project: npm install left-pad\n`,
    );
    expect(errors["scoped.ts"]).toContain("npm install @acme/warehouse\n");
    expect(errors["dynamic.ts"]).toContain("npm install left-pad\n");
    expect(errors["subpath.ts"]).toContain('The path "./none" is not exported by package "zod"');
    expect(errors["misspelt.ts"]).toMatch(
      /^misspelt\.ts:6:10: No matching export in "tradewind" for import "Sensr" \[DAG_IMPORT_UNRESOLVED\]/,
    );
    expect(Object.values(errors).join()).not.toContain("external");
  });

  it("that throws points at the author's own line, in the file of that line", async () => {
    const folder = new FolderFixture();
    await folder.write({
      "a.ts": `import { dag } from "tradewind";\nimport { check } from "./lib/check.ts";\ncheck();\nexport default dag("a", {}, () => {});\n`,
      "lib/check.ts": `interface Unused { a: string }\n// A comment that the artefact does not have.\nexport function check(): void {\n  throw new RangeError("too far");\n}\n`,
      "sdk.ts": `import { dag } from "tradewind";\n\nexport default dag("no spaces", {}, () => {});\n`,
    });
    await processorOn(test.db, folder).runOnce();
    const errors = await importErrors(test.db);
    expect(errors["a.ts"]).toMatch(/^lib\/check\.ts:4:9: RangeError: too far/);
    expect(errors["a.ts"]).toContain('> 4 |   throw new RangeError("too far");');
    expect(errors["a.ts"]).toContain("(a.ts:3:1)");
    expect(errors["sdk.ts"]).toMatch(/^sdk\.ts:3:16: DagDefinitionError/);
    expect(errors["sdk.ts"]).not.toContain("../");
  });

  it("is reported with the error code, the failing task and the remedy", async () => {
    const folder = new FolderFixture();
    const around = (line: string) =>
      `import { dag, HttpSensor } from "tradewind";\nexport default dag("x", (d) => {\n  ${line}\n});\n`;
    await folder.write({
      "option.js": around(`d.task("a", { retires: 1 }, () => 1);`),
      "sensor.js": around(`d.operator("job", new HttpSensor({ url: "https://x.example", verb: "GET" }));`),
      "trigger.js": around(`d.trigger("t", { run() {} });`),
      "early.js": around(`const a = d.task("a", { after: b }, () => 1);\n  const b = d.task("b", () => 1);`),
    });
    await processorOn(test.db, folder).runOnce();
    const errors = await importErrors(test.db);
    expect(errors["option.js"]).toMatch(
      /^option\.js:3:5: .* did you mean "retries"\? \[TW_UNKNOWN_OPTION\]\n/,
    );
    expect(errors["sensor.js"]).toMatch(
      /dag "x", task "job": HttpTrigger: unknown option "verb".*\[TW_TRIGGER_ARGS\]$/,
    );
    expect(errors["trigger.js"]).toMatch(
      /:3:5: .*task "t": an object is not a trigger.*\[TW_BAD_TRIGGER\]\n/,
    );
    expect(errors["early.js"]).toMatch(
      /^early\.js:3:34: ReferenceError: .*\. A task can only use tasks that are defined before it: this keeps cycles out\n/,
    );
  });

  it("is rejected with a reason if its DAGs are invalid", async () => {
    const folder = new FolderFixture();
    const program = (manifest: string) =>
      `import "@tradewind/sdk"; export default { [Symbol.for("tradewind.program")]: { protocol: 1, describe: () => (${manifest}) } };`;
    await folder.write({
      "cycle.js": program(
        `{ dagId: "c", tasks: [{ taskId: "a", upstream: ["b"] }, { taskId: "b", upstream: ["a"] }] }`,
      ),
      "unknown.js": program(`{ dagId: "u", tasks: [{ taskId: "a", upstream: ["z"] }] }`),
      "date.js": program(`{ dagId: "d", start: new Date(), tasks: [] }`),
      "start.js": program(
        `{ dagId: "s", tasks: [{ taskId: "a", upstream: [], startTrigger: { trigger: { kind: "x", args: {}, source: "bundle", queue: "q".repeat(3000), replicas: 1, wake: null, timed: null }, method: null, kwargs: {}, timeoutMs: null, onTimeout: "fail" } }] }`,
      ),
      "moment.js": program(
        `{ dagId: "m", tasks: [], schedule: { kind: "trigger", trigger: { kind: "x", args: {}, source: "builtin", queue: "q", replicas: 1, wake: { at: "+012345-01-01T00:00:00Z" }, timed: { payload: null } } } }`,
      ),
      "needs.js": program(
        `{ dagId: "n", tasks: [], schedule: { kind: "once" }, paramsSchema: { type: "object", required: ["region"] } }`,
      ),
      "twice.ts": `${dagText("t")}export const again = dag("t", {}, (d) => { d.task("x", {}, () => 1); });`,
      "future.js": `import "tradewind"; export default { [Symbol.for("tradewind.program")]: { protocol: 2 } };`,
      "none.ts": `import { dag } from "tradewind"; export const helper = () => dag;`,
    });
    expect(await processorOn(test.db, folder).runOnce()).toMatchObject({ failed: 8, unchanged: 1 });
    const errors = await importErrors(test.db);
    expect(errors["cycle.js"]).toContain("cycle among its tasks (a, b)");
    expect(errors["unknown.js"]).toContain('comes after "z"');
    expect(errors["date.js"]).toContain("start is an instance of Date");
    expect(errors["start.js"]).toContain("begins with a wait that cannot be stored");
    expect(errors["moment.js"]).toContain("is a trigger that cannot be stored");
    expect(errors["needs.js"]).toContain('its params need "region", which scheduled runs are not given');
    expect(errors["twice.ts"]).toContain('"t" is exported twice');
    expect(errors["future.js"]).toContain("protocol 2");
  });
});

describe("a file that breaks its process", () => {
  const good = Object.fromEntries(
    Array.from({ length: 12 }, (_, n) => [`good${n}.ts`, dagText(`good_${n}`)]),
  );
  const bad = {
    "exit.ts": `import "tradewind";\n\nprocess.exit(3);\n`,
    "kill.ts": `import "tradewind"; process.kill(process.pid, "SIGSEGV"); await new Promise(() => {});`,
    "late.ts": `import "tradewind"; setTimeout(() => { throw new Error("late"); }, 5); await new Promise(() => {});`,
    "loop.ts": `import "tradewind"; for (;;) {}`,
    "never.ts": `import "tradewind"; await new Promise(() => {});`,
    "flood.ts": `import "tradewind"; import { writeSync } from "node:fs"; for (;;) writeSync(1, "x".repeat(65536));`,
    "reject.ts": `import "tradewind"; void Promise.reject(new Error("unhandled"));`,
  };

  it("fails alone, and every other file is loaded", { timeout: 180_000 }, async () => {
    const folder = new FolderFixture();
    await folder.write({ ...good, ...bad });
    const report = await processorOn(test.db, folder, { importTimeoutMs: 1_500 }).runOnce();
    const errors = await importErrors(test.db);
    expect(Object.keys(errors).sort()).toEqual(Object.keys(bad).sort());
    expect(report).toMatchObject({ published: 12, failed: 7 });
    expect(errors["exit.ts"]).toMatch(/^exit\.ts:3:9: Error: process\.exit\(3\) was called/);
    expect(errors["kill.ts"]).toContain("ended its process (SIGSEGV)");
    expect(errors["late.ts"]).toMatch(/^late\.ts:1:46: Error: late/);
    for (const file of ["loop.ts", "never.ts", "flood.ts"]) {
      expect(errors[file]).toContain(`${file}: importing this file did not finish within 1.5 s`);
    }
    expect(errors["reject.ts"]).toContain("unhandled");
  });

  it("fails alone if it uses up all memory", async () => {
    const folder = new FolderFixture();
    await folder.write({
      "good.ts": dagText("good"),
      "eat.ts": `import "tradewind"; const a = []; for (;;) a.push({ n: a.length, s: [a.length] });`,
    });
    const report = await processorOn(test.db, folder, { memoryMb: 64 }).runOnce();
    expect(report).toMatchObject({ published: 1, failed: 1 });
    expect((await importErrors(test.db))["eat.ts"]).toContain(
      "ran out of memory (its heap is limited to 64 MB)",
    );
  });
});

it("leaves no child behind when the processor is killed, not even one in an endless loop", async () => {
  const folder = new FolderFixture();
  const pool = fileURLToPath(new URL("./bundler-pool.ts", import.meta.url));
  await folder.write({
    "out/placeholder": "",
    "loop.ts": `import "tradewind"; import { writeFileSync } from "node:fs"; writeFileSync("pid", String(process.pid)); for (;;) {}`,
  });
  const script = `
    import { BundlerPool } from ${JSON.stringify(pool)};
    const folder = ${JSON.stringify(folder.path)};
    const pool = new BundlerPool({ folder, outFolder: folder + "/out", importTimeoutMs: 60000, onOutput() {} });
    await pool.bundle([{ file: "loop.ts", path: folder + "/loop.ts" }], { onResult() {} });`;
  const parent = spawn(process.execPath, ["--conditions=source", "--input-type=module", "-e", script], {
    stdio: "ignore",
  });
  const pid = await vi.waitFor(
    async () => Number(await readFile(join(folder.path, "pid"), "utf8")) || Promise.reject(),
    {
      timeout: 20_000,
    },
  );
  expect(isAlive(pid)).toBe(true);
  parent.kill("SIGKILL");
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 20_000, interval: 100 });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie still has a process id, but does not run.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

it("gives DAG files neither credentials nor the channel, and restores what they change", async () => {
  const folder = new FolderFixture();
  vi.stubEnv("DATABASE_URL", "postgres://secret");
  vi.stubEnv("TRADEWIND_SECRET_KEY", "secret");
  onTestFinished(() => void vi.unstubAllEnvs());
  await folder.write({
    "a.ts": `import { dag } from "tradewind"; process.env.LEAK = "1"; process.chdir("/");
      export default dag("a", { docs: JSON.stringify([process.env, typeof process.send]) }, (d) => { d.task("t", {}, () => 1); });`,
    "b.ts": dagText("b", "", "{ docs: JSON.stringify([process.env.LEAK ?? null, process.cwd()]) }"),
  });
  await processorOn(test.db, folder, { children: 1 }).runOnce();
  const docs = await test.db.rows<{ docs: string }>(
    adhoc("SELECT manifest->>'docs' AS docs FROM dag_version ORDER BY dag_id"),
  );
  expect(docs[0]?.docs).toContain("PATH");
  expect(docs[0]?.docs).not.toContain("secret");
  expect(docs[0]?.docs).toContain('"undefined"');
  expect(docs[1]?.docs).toBe(JSON.stringify([null, folder.path]));
});

it("gives DAG files the environment of tasks, and names a variable that an import lacks", async () => {
  const folder = new FolderFixture();
  vi.stubEnv("SHOP_REGION", "eu");
  vi.stubEnv("SHOP_KEY", "not-passed");
  vi.stubEnv("TRADEWIND_TASK_ENV", "SHOP_REG*");
  onTestFinished(() => void vi.unstubAllEnvs());
  await folder.write({
    "a.ts": dagText("a", "", "{ docs: JSON.stringify(process.env) }"),
    "b.ts": `if (!process.env.SHOP_KEY) throw new Error("SHOP_KEY is not set");\n${dagText("b")}`,
    "c.ts": `const key = process.env.SHOP_KEY;\nthrow new Error("something else");\n${dagText("c")}`,
  });
  await processorOn(test.db, folder, { children: 1 }).runOnce();
  const [version] = await test.db.rows<{ docs: string }>(
    adhoc("SELECT manifest->>'docs' AS docs FROM dag_version WHERE dag_id = 'a'"),
  );
  expect(JSON.parse(version?.docs ?? "{}")).toEqual(userEnvironment(process.env));
  expect(version?.docs).toContain('"SHOP_REGION":"eu"');
  const { "b.ts": error, "c.ts": other } = await importErrors(test.db);
  expect(other).toContain("> 2 | throw");
  expect(other).not.toContain("TRADEWIND_TASK_ENV");
  expect(error).toMatch(
    /\nSHOP_KEY is set for the DAG processor but not passed to tasks: add it to TRADEWIND_TASK_ENV\.$/,
  );
  expect(error).not.toContain("not-passed");
});

it("sends the result of a file before the next one is imported, even without a reader", async () => {
  const folder = new FolderFixture();
  const large = `export const text = "${"x".repeat(4_000_000)}";`;
  await folder.write({
    "large.ts": `${dagText("large")}\n${large}\nawait new Promise((go) => setTimeout(go, 1_000));\n`,
    "loop.ts": `${dagText("loop")}\nfor (;;) {}\n`,
  });
  const main = fileURLToPath(new URL("./bundler/main.ts", import.meta.url));
  const child = fork(main, { execArgv: ["--conditions=source", "--no-warnings"], cwd: folder.path });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ask = (file: string) =>
    child.send({ type: "bundle", pass: 1, file, path: join(folder.path, file) } satisfies BundlerRequest);
  const said: string[] = [];
  child.on("message", (message: BundlerReply) => {
    said.push("file" in message ? `${message.type} ${message.file}` : message.type);
    if (said.at(-1) !== "importing large.ts") return;
    ask("loop.ts");
    // Blocks this process while the large file is finished and the other one is imported.
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500));
  });
  child.send({ type: "setup", folder: folder.path, outFolder: folder.path } satisfies BundlerRequest);
  ask("large.ts");
  await vi.waitFor(() => expect(said.at(-1)).toBe("importing loop.ts"), { timeout: 20_000 });
  expect(said.slice(1)).toEqual(["importing large.ts", "done large.ts", "importing loop.ts"]);
});
