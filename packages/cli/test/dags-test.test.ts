/**
 * `dags test`: no server, no database. The command runs in this process, its tasks in a child process. First use, failures,
 * the environment of tasks and Ctrl-C are tested with real processes.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { runCaptured } from "./support/captured-host.ts";
import { runCli } from "./support/standalone-process.ts";

const DAGS = fileURLToPath(new URL("./dags", import.meta.url));
const SIGNAL = fileURLToPath(new URL("./waiting-dags/signal.ts", import.meta.url));
const WAITING = fileURLToPath(new URL("./waiting-dags/waiting.ts", import.meta.url));
const TROUBLE = fileURLToPath(new URL("./trouble-dags/trouble.ts", import.meta.url));
const DRIVEN = fileURLToPath(new URL("./driven-dags/driven.ts", import.meta.url));
const EXAMPLES = fileURLToPath(new URL("../../../examples", import.meta.url));
const ENVIRONMENT = {
  DATABASE_URL: "postgres://secret@db/x",
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
};
const test = (...args: string[]) => runCaptured(["dags", "test", ...args], { env: ENVIRONMENT });
const testAsProcess = (...args: string[]) => runCli(["dags", "test", ...args], ENVIRONMENT);

describe("dags test", () => {
  it("runs a file, prints progress on stderr and nothing on stdout", async () => {
    const { code, stdout, stderr } = await testAsProcess(`${EXAMPLES}/hello.ts`);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr).toMatch(/✓ greet success in .* → "Hello, world!"/);
    expect(stderr).toContain("greeting world");
    expect(stderr).toMatch(/hello: success in .*, 3 tasks/);
  });

  it("gives tasks the files beside the DAG and its packages, and names the remedy for missing ones", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tradewind-dags-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const addon = join(folder, "node_modules/addon");
    await mkdir(addon, { recursive: true });
    await writeFile(join(addon, "package.json"), `{ "name": "addon", "version": "1.0.0", "gypfile": true }`);
    await writeFile(join(addon, "index.js"), `exports.load = () => require("./addon.node");`);
    await writeFile(join(addon, "addon.node"), "built for something else");
    await writeFile(join(folder, "q.sql"), "SELECT 1");
    await writeFile(
      join(folder, "files.ts"),
      `import { readFile } from "node:fs/promises";
       import { dag } from "tradewind";
       import { load } from "addon";
       export default dag("files", (d) => {
         d.task("query", () => readFile(new URL("./q.sql", import.meta.url), "utf8"));
         d.task("other", (_, ctx) => readFile(new URL(ctx.run.dagId + ".sql", import.meta.url), "utf8"));
         d.task("addon", () => load());
       });`,
    );
    const { code, stderr } = await test(join(folder, "files.ts"));
    expect(code).toBe(1);
    expect(stderr).toMatch(/✓ query success in .* → "SELECT 1"/);
    expect(stderr).toContain("The DAG's bundle does not contain this file.");
    expect(stderr).toContain(`cd ${folder} && PATH="${dirname(process.execPath)}:$PATH" npm rebuild addon`);
  });

  it("has no logical date unless one is given, like dags trigger", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tradewind-dags-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await writeFile(
      join(folder, "dated.ts"),
      `import { dag } from "tradewind";
       export default dag("dated", (d) => {
         d.task("date", (_, ctx) => [ctx.run.logicalDate?.toISOString() ?? null, ctx.run.dataInterval === null]);
       });`,
    );
    const file = join(folder, "dated.ts");
    expect((await test(file)).stderr).toContain("→ [null,true]");
    const { stderr } = await test(file, "--logical-date", "2026-11-15");
    expect(stderr).toContain('→ ["2026-11-15T00:00:00.000Z",false]');
  });

  it("finds a DAG by id, passes conf and prints the result as JSON on stdout", async () => {
    const { code, stdout } = await test("etl", "--dags", EXAMPLES, "--conf", '{"orders":2000}', "--json");
    expect(code).toBe(0);
    const result = JSON.parse(stdout) as {
      state: string;
      tasks: { task_id: string; state: string; output?: unknown }[];
    };
    expect(result.state).toBe("success");
    expect(result.tasks.find((task) => task.task_id === "load_in_parts")).toMatchObject({ output: 2000 });
    expect(result.tasks.find((task) => task.task_id === "load_at_once")).toMatchObject({ state: "skipped" });
  });

  it("exits with 1 for a failing DAG and shows the source line", async () => {
    const { code, stderr } = await testAsProcess(`${DAGS}/failing.ts`);
    expect(code).toBe(1);
    expect(stderr).toContain("✗ broken failed");
    expect(stderr).toMatch(/Error: the disk is full\n.*failing\.ts:10/);
    expect(stderr).toContain("! signal broken: task.failed of broken (delivered to this run only)");
    expect(stderr).toContain("! webhook pager: run.failed (not sent, because this is a test)");
  });

  it("shows errors of the engine with their code and only user frames", async () => {
    const { code, stderr } = await test(TROUBLE, "--dag", "refused");
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /TaskError: connection "warehouse" is not stored.* \[TW_CONNECTION_MISSING\]\n +at async warehouse \(.*trouble\.ts:4:\d+\)\n +at async .*trouble\.ts:9:\d+\)\n[^ ]/,
    );
    expect(stderr).toMatch(/TaskError: output\.at is a bigint.* \[TW_OUTPUT_NOT_JSON\]\n[^ ]/);
  });

  it("rejects an invalid conf by field before anything runs", async () => {
    const { code, stderr } = await test(`${DAGS}/typed.ts`, "--conf", '{"region":"mars","limit":1}');
    expect(code).toBe(2);
    expect(stderr).toBe(
      "error: cannot test typed: the conf does not match its params. [TW_PARAMS_INVALID]\n  conf.region: must be one of: eu, us\n  → correct --conf\n",
    );
    const told = JSON.parse((await test("typed", "--dags", DAGS, "--json", "-q")).stderr) as object;
    expect(told).toMatchObject({
      code: "TW_PARAMS_INVALID",
      exit_code: 2,
      fields: [{ field: "conf.limit", message: "must have required property 'limit'" }],
    });
    expect((await test(`${DAGS}/typed.ts`, "--conf", '{"limit":1}')).code).toBe(0);
  });

  it("fails only the task that would exit or crash its process", async () => {
    const { code, stderr, stdout } = await test(TROUBLE, "--dag", "crashes", "--json");
    expect(code, stderr).toBe(1);
    const { tasks } = JSON.parse(stdout) as { tasks: { task_id: string; error?: object; state: string }[] };
    const ends = Object.fromEntries(tasks.map(({ task_id, error, state }) => [task_id, { state, error }]));
    expect(ends).toMatchObject({
      first: { state: "success" },
      works: { state: "success" },
      leaves: { state: "failed", error: { code: "TASK_PROCESS_DIED" } },
      rejects: { state: "failed", error: { message: "not awaited" } },
      throws: { state: "failed", error: { message: "from a timer" } },
      forgets: {
        error: {
          code: "TW_WORK_LEFT_OPEN",
          message: expect.stringMatching(/trouble\.ts:\d+:\d+; is an await/),
        },
      },
      hangs: { state: "failed", error: { code: "TASK_NEVER_SETTLED" } },
    });
  });

  it("gives tasks the variables and connections of the command line, but no secret of the engine", async () => {
    const { code, stderr } = await testAsProcess(
      `${DAGS}/surroundings.ts`,
      "--variable",
      "region=eu",
      "--connection",
      "db=postgres://ann:pw@h:5/x",
    );
    expect(code).toBe(0);
    expect(stderr).toContain('{"region":"eu","host":"h","port":5,"databaseUrl":null}');
  });

  it("gives tasks the environment of a run, and names variables of this shell that are missing there", async () => {
    const env = { SHOP_REGION: "eu", SHOP_KEY: "not-passed", TRADEWIND_TASK_ENV: "SHOP_REG*" };
    const { code, stderr } = await runCli(["dags", "test", TROUBLE, "--dag", "lacks"], env);
    expect(code).toBe(1);
    expect(stderr).toContain("Error: SHOP_KEY is not set in eu, in batch");
    expect(stderr).toContain(
      "SHOP_KEY is set in this shell but not passed to tasks: add it to TRADEWIND_TASK_ENV.",
    );
    expect(stderr).not.toContain("not-passed");
  });

  it("shows the failing line of a broken file", async () => {
    const { code, stderr } = await testAsProcess(`${DAGS}/broken.ts`);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^error: packages\/cli\/test\/dags\/broken\.ts:3:7: .*this file does not load \[TW_CLI_IMPORT\]\n/,
    );
    expect(stderr).toContain("> 3 | throw new Error");
  });

  it("reports a DAG that is not exported", async () => {
    const { code, stderr } = await test(`${DAGS}/forgotten.ts`);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /forgotten\.ts exports no DAG\. It creates forgotten without exporting it\. \[TW_CLI_USAGE\]\n.*export default dag\(/,
    );
  });

  it("exits with 3 for a missing file or DAG", async () => {
    expect((await test("nowhere.ts")).code).toBe(3);
    const { code, stderr } = await test("nothing", "--dags", EXAMPLES);
    expect(code).toBe(3);
    expect(stderr).toMatch(/no file in .* \[TW_CLI_NO_DAG\]\n/);
    expect((await test("helo", "--dags", EXAMPLES)).stderr).toContain(
      '→ did you mean "hello"? Or give the file',
    );
  });

  it("stops at Ctrl-C", async () => {
    const { code } = await runCli(
      ["dags", "test", `${DAGS}/slow.ts`, "--conf", '{"lines":600}'],
      {},
      (child, stderr) => {
        const watch = setInterval(() => {
          if (!stderr().includes("line 1")) return;
          clearInterval(watch);
          child.kill("SIGINT");
        }, 20);
      },
    );
    expect(code).toBe(130);
  });

  it("waits in real time, and runs the triggers of the file", async () => {
    const file = '{"path":"/nowhere/a.csv","size":1,"mtime":"2026-01-01T00:00:00Z"}';
    const { code, stdout, stderr } = await test(WAITING, "--event", `file=${file}`, "--json");
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const result = JSON.parse(stdout) as { duration: number; tasks: { task_id: string; output?: unknown }[] };
    expect(result.duration).toBeGreaterThanOrEqual(0.3);
    expect(result).toMatchObject({
      state: "success",
      triggered_runs: [{ dag_id: "report", dag_run_id: "r1", conf: {}, logical_date: null }],
    });
    expect(result.tasks.find((task) => task.task_id === "job")).toMatchObject({ output: 3 });
    expect(stderr).toMatch(/… job waits \(pause\) until 20\S+ \S+Z\n/);
    expect(stderr).toMatch(/… job waits for acme.job_done \(done\), at most until 20/);
    expect(stderr).toContain("▶ job resumes");
    expect(stderr).toMatch(/retries at 20/);
    expect(stderr).toContain("Not started, because this is a test: run r1 of report.");
  });

  it("names the signal that a task waits for, and how to send it", async () => {
    const unsent = await test(SIGNAL);
    expect(unsent.code).toBe(1);
    expect(unsent.stderr).toMatch(/… wait waits for the signal orders\.ready \(ready\), at most until 20/);
    expect(unsent.stderr).toContain("--signal 'orders.ready=<json>'");
    expect(await test(SIGNAL, "--signal", "orders.ready=null")).toMatchObject({ code: 0 });
    const skipped = await test(SIGNAL, "--skip-waits");
    expect(skipped.code).toBe(1);
    expect(skipped.stderr).not.toContain("--signal");
  });

  it("skips timed waits with --skip-waits", async () => {
    const { code, stderr } = await test(WAITING, "--skip-waits", "--event", "tradewind.file=null");
    expect(code).toBe(0);
    expect(stderr).toMatch(/… job waits \(pause\) until 20.*, skipped\n/);
    expect(stderr).toMatch(/retries at 20.*, skipped\n/);
  });

  it("names a trigger that cannot run in a test, with the remedy", async () => {
    const { code, stderr } = await test(WAITING);
    expect(code).toBe(2);
    expect(stderr).toContain(
      'error: task "file" waits for "tradewind.file", which has no entry in `triggers`',
    );
    expect(stderr).toContain("--event '<trigger or task>=<json>' [TW_TEST_NO_EVENT]\n");
    const told = JSON.parse((await test(WAITING, "--json", "-q")).stderr) as object;
    expect(told).toMatchObject({ code: "TW_TEST_NO_EVENT", exit_code: 2 });
    const wrong = await test(WAITING, "--event", "tradewind.file={path");
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("--event tradewind.file is not valid JSON");
  });

  it("runs signal-driven and timed tasks, and prints what starts them", async () => {
    const { code, stdout, stderr } = await test(
      DRIVEN,
      "--skip-waits",
      "--signal",
      "site.closed@25m",
      'clicks.hour@5m={"late":true}',
      "--json",
    );
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const result = JSON.parse(stdout) as { tasks: { task_id: string; tries: number; history: unknown[] }[] };
    expect(result).toMatchObject({ state: "success", closed_by: "site.closed" });
    const tries = Object.fromEntries(result.tasks.map(({ task_id, tries }) => [task_id, tries]));
    expect(tries).toMatchObject({ clicks: 1, train: 3, report: 2 });
    expect(result.tasks.find(({ task_id }) => task_id === "train")?.history.at(-1)).toMatchObject({
      try_number: 3,
      output: 3,
      start: 300,
    });
    expect(stderr).toContain("≈ clicks.hour 7 from clicks\n");
    expect(stderr).toContain('≈ clicks.hour {"late":true} from outside\n');
    expect(stderr).toContain("» train starts, by clicks.hour\n");
    expect(stderr).toContain("» serve restarts, by model.ready\n");
    expect(stderr).toMatch(/✓ serve success in .* \(restarted by model.ready\)/);
    expect(stderr).toContain("» report starts, by its time\n");
    expect(stderr).toContain("» the run is closed by site.closed\n");
  });

  it("closes a run that does not end by itself", async () => {
    const { code, stderr } = await test(DRIVEN, "--until", "200ms");
    expect(code).toBe(0);
    expect(stderr).toContain("The run was closed after the time of --until.");
    const wrong = await test(DRIVEN, "--signal", "clicks.hour={");
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("--signal clicks.hour is not valid JSON");
    const never = await test(DRIVEN, "--signal", "clicks.hour@x=7");
    expect(never.code).toBe(2);
    expect(never.stderr).toContain('"x" after "@" is not a duration');
    expect(never.stderr).toContain("--signal order.paid@10m=7");
  });
});

it("answers approvals, and names the option if an answer is missing", async () => {
  const release = fileURLToPath(new URL("../../../examples/release.ts", import.meta.url));
  const given = ["--approval", "approve=approve", `--approval`, `target={"region":"us"}`];
  const { code, stderr } = await test(release, ...given);
  expect(code).toBe(0);
  expect(stderr).toMatch(/^… approve waits for an answer, until .* at the latest$/m);
  expect(stderr).toMatch(/^✓ publish success in .* → "10 % in us"$/m);
  const missing = await test(release);
  expect(missing.stderr).toContain("answer it: --approval '<task>=approve' [TW_TEST_NO_EVENT]\n");
});
