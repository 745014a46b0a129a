/** Every command against a real standalone with its own process, database, child processes and port. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { runCaptured } from "./support/captured-host.ts";
import { runCli, StandaloneProcess } from "./support/standalone-process.ts";

let standalone: StandaloneProcess;
const tw = (...argv: string[]) => runCaptured(argv, { env: { TRADEWIND_HOME: standalone.home } });
const json = async (...argv: string[]): Promise<never> =>
  JSON.parse((await tw(...argv, "--json")).stdout) as never;

beforeAll(async () => {
  standalone = await StandaloneProcess.start();
  await standalone.until(/✓ hello /);
}, 120_000);
afterAll(() => standalone?.remove());

describe("standalone", () => {
  it("prints its address, the loaded DAGs, broken files and the first finished run", async () => {
    const { url, pid } = await standalone.about();
    expect(pid).toBe(standalone.child.pid);
    expect(standalone.stderr).toContain(url);
    expect(standalone.stderr).toMatch(/DAGs? loaded:.*hello/);
    await standalone.until(/broken\.ts failed to load/);
    expect(standalone.stderr).toContain("this file does not load");
    // Once: not in the log, too.
    const frames = standalone.stderr.match(/^ +> 3 \| throw new Error\("this file does not load"\);$/gm);
    expect(frames).toHaveLength(1);
    expect(standalone.stderr).toMatch(/WARN +DAG file creates a DAG and does not export it.*forgotten/);
    expect(await standalone.tokenMode()).toBe(0o600);
  });

  it("rejects a second standalone on the same home", async () => {
    const dags = join(standalone.folder, "dags");
    const second = await runCli(["standalone", "--home", standalone.home, "--dags", dags], {});
    expect(second.code).toBe(5);
    expect(second.stderr).toContain("already runs on");
  });
});

describe("dags", () => {
  it("lists DAGs as table, JSON and YAML", async () => {
    const table = await tw("dags", "list");
    expect(table.code).toBe(0);
    expect(table.stdout).toMatch(/^DAG +STATUS +SCHEDULE +LAST RUN +NEXT RUN/);
    expect(table.stdout).toMatch(/^hello +active +@once +success \d+ . ago +- /m);
    expect(table.stderr).toContain("broken.ts");
    const ids = ["crowded", "failing", "hello", "slow", "surroundings", "typed"];
    expect(((await json("dags", "list")) as { dag_id: string }[]).map((dag) => dag.dag_id)).toEqual(ids);
    const yaml = parse((await tw("dags", "list", "-o", "yaml")).stdout) as { dag_id: string }[];
    expect(yaml.map((dag) => dag.dag_id)).toEqual(ids);
  });

  it("fits the lines of a table to a narrow terminal", async () => {
    const env = { TRADEWIND_HOME: standalone.home, NO_COLOR: "1" };
    const { stdout } = await runCaptured(["dags", "list"], { env, columns: 50 });
    for (const line of stdout.trimEnd().split("\n")) expect(line.length).toBeLessThanOrEqual(50);
  });

  it("lists removed DAGs only with --all, and marks them", async () => {
    const file = join(standalone.folder, "dags", "short_lived.ts");
    const ids = async (...options: string[]) =>
      ((await json("dags", "list", ...options)) as { dag_id: string }[]).map((dag) => dag.dag_id);
    await writeFile(
      file,
      'import { dag } from "tradewind";\nexport default dag("short_lived", (d) => void d.task("only", () => 1));\n',
    );
    await expect.poll(() => ids(), { timeout: 30_000 }).toContain("short_lived");
    await rm(file);
    await expect.poll(() => ids(), { timeout: 30_000 }).not.toContain("short_lived");
    expect((await tw("dags", "list", "--all")).stdout).toMatch(/^short_lived +removed +- +- +- /m);
    await tw("dags", "delete", "short_lived", "--yes");
  });

  it("draws a DAG in other formats, and rejects these formats elsewhere", async () => {
    expect((await tw("dags", "graph", "hello")).stdout).toMatch(/^TASK .*\n● who /);
    expect((await tw("dags", "graph", "hello", "-o", "mermaid")).stdout).toContain("  t0 --> t1\n");
    expect((await tw("dags", "graph", "hello", "--output=dot")).stdout).toContain('"who" -> "greet";');
    expect((await tw("-o", "svg", "dags", "graph", "hello")).stdout).toMatch(/^<svg [\s\S]+<\/svg>\n$/);
    expect(await json("dags", "graph", "hello")).toMatchObject({
      nodes: [{ id: "who" }, { id: "greet" }, {}],
    });
    const unknown = await tw("dags", "graph", "hello", "-o", "png");
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain("Allowed choices are table, json, yaml, mermaid, dot, svg.");
    const elsewhere = await tw("dags", "list", "-o", "svg");
    expect(elsewhere.code).toBe(2);
    expect(elsewhere.stderr).toContain("Allowed choices are table, json, yaml.");
    expect((await tw("dags", "graph", "helo")).stderr).toContain('did you mean "hello"?');
  });

  it("shows dates in the time zone of --tz", async () => {
    const started = async (...options: string[]) =>
      /^started +(.+)$/m.exec((await tw("runs", "show", "hello", "@latest", ...options)).stdout)?.[1];
    const utc = await started();
    const tokyo = await started("--tz", "Asia/Tokyo");
    expect(utc).toMatch(/Z$/);
    expect(tokyo).toMatch(/\+09:00$/);
    expect(Date.parse(tokyo!)).toBe(Date.parse(utc!));
    const wrong = await tw("runs", "list", "hello", "--tz", "Asia/Tokio");
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain('Did you mean "Asia/Tokyo"?');
  });

  it("shows a DAG with its tasks", async () => {
    const { code, stdout } = await tw("dags", "show", "hello");
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^TASK +OPERATOR +RETRIES\n● who +task +0\n│\n● greet +task +2\n│\n● shout +task +0\n$/m,
    );
    expect(stdout).toMatch(/^schedule +@once\n +Once, as soon as possible$/m);
    expect(stdout).toMatch(/^last run +success \d+ . ago: scheduled__/m);
    expect(stdout).toMatch(/^version +1 \(.* ago\)$/m);
    const typed = await tw("dags", "show", "typed");
    expect(typed.stdout).toMatch(/^params +limit: integer, required\n +region: "eu" \| "us", default "eu"$/m);
  });

  it("names the remedy for a run of a paused DAG, in the same way as `tasks why`", async () => {
    await tw("dags", "pause", "slow");
    const { stderr } = await tw("dags", "trigger", "slow", "--run-id", "paused", "--conf", '{"lines":1}');
    expect(stderr).toMatch(
      /slow is paused\. The run starts when you unpause it: `tradewind dags unpause slow`/,
    );
    const why = await tw("tasks", "why", "slow", "paused", "count");
    expect(why.stdout).toMatch(
      /^count is pending\n {2}because DAG "slow" is paused: its runs do not start\..* \[DAG_PAUSED\]\n$/,
    );
    expect(await json("tasks", "why", "slow", "paused", "count")).toMatchObject({
      reasons: [{ code: "DAG_PAUSED" }],
      because: [{ code: "DAG_PAUSED", because: [] }],
    });
    await tw("dags", "unpause", "slow");
    expect((await tw("runs", "wait", "slow", "paused", "--timeout", "30s")).code).toBe(0);
    expect((await tw("tasks", "output", "slow", "paused", "after")).stdout).toBe("1\n");
    expect(await json("tasks", "output", "slow", "paused", "after")).toMatchObject({ value: 1 });
  });

  it("names the allowed values of a param", async () => {
    const { code, stderr } = await tw("dags", "trigger", "typed", "--conf", '{"region":"mars","limit":1}');
    expect(code).toBe(2);
    expect(stderr).toContain("conf.region: must be one of: eu, us");
  });

  it("pauses and unpauses a DAG", async () => {
    expect((await tw("dags", "pause", "slow")).stderr).toContain("paused");
    expect((await tw("dags", "list", "--paused")).stdout).toMatch(/^slow +paused/m);
    expect((await tw("dags", "unpause", "slow")).code).toBe(0);
    expect(await json("dags", "show", "slow")).toMatchObject({ is_paused: false });
  });

  it("triggers a run, waits, and returns the outcome as exit code", async () => {
    const good = await tw("dags", "trigger", "hello", "--wait", "--run-id", "mine", "--conf", '{"a":1}');
    expect(good.code).toBe(0);
    expect(good.stderr).toMatch(/^Run mine of hello is queued\.\n/);
    expect(good.stderr).toMatch(/^✓ success in /m);
    expect(good.stderr.match(/mine/g)).toHaveLength(1);
    expect(await json("runs", "show", "hello", "mine")).toMatchObject({ state: "success", conf: { a: 1 } });
    const bad = await tw("dags", "trigger", "failing", "--wait");
    expect(bad.code).toBe(1);
    expect(bad.stderr).toMatch(
      /failed first: broken, try 1: .*the disk is full\n +its log: tradewind tasks logs failing /,
    );
  });

  it("prints only the id of the new run on stdout", async () => {
    const { stdout } = await tw("dags", "trigger", "hello", "--run-id", "for-scripts");
    expect(stdout).toBe("for-scripts\n");
  });

  it("has separate exit codes for missing objects, conflicts and rejected tokens", async () => {
    const missing = await tw("dags", "show", "nothing");
    expect(missing).toMatchObject({ code: 3, stdout: "" });
    expect(missing.stderr).toContain(
      'cannot show the DAG nothing: DAG "nothing" does not exist [NOT_FOUND]\n  → `tradewind dags list` shows all DAGs',
    );
    expect((await tw("runs", "list", "helo")).stderr).toContain(
      '→ did you mean "hello"? `tradewind dags list`',
    );
    const run = await tw("runs", "show", "hello", "nope", "--json");
    expect(JSON.parse(run.stderr)).toEqual({
      code: "NOT_FOUND",
      message: expect.stringContaining("nope"),
      exit_code: 3,
      remedy: "`tradewind runs list hello` shows its runs",
    });
    const said = async (...words: string[]) => (await tw(...words)).stderr.replace(/^error: /, "");
    expect(await said("tasks", "logs", "hello", "mime", "hello")).toBe(
      'cannot find the task hello in the run mime of hello: DAG "hello" has no run "mime" [NOT_FOUND]\n  → did you mean "mine"? `tradewind runs list hello` shows its runs\n',
    );
    expect(await said("tasks", "why", "hello", "mine", "helo")).toMatch(
      /\[NOT_FOUND\]\n {2}→ .*`tradewind tasks list hello mine` shows its tasks\n$/,
    );
    expect(await said("backfill", "create", "helo", "--from", "2025-01-01", "--to", "2025-01-02")).toMatch(
      /DAG "helo" does not exist \[NOT_FOUND\]\n {2}→ did you mean "hello"\? /,
    );
    expect(await said("backfill", "show", "99")).toMatch(
      /Backfill 99 does not exist \[NOT_FOUND\]\n {2}→ `tradewind backfill list` lists those that exist/,
    );
    expect((await tw("dags", "trigger", "hello", "--run-id", "mine")).code).toBe(5);
    const wrong = await tw("dags", "list", "--token", "tw_wrong");
    expect(wrong.code).toBe(4);
    expect(wrong.stderr).toMatch(/\[UNAUTHENTICATED\]\n.*--token/);
    expect((await tw("dags", "trigger", "hello", "--run-id", "not/allowed")).code).toBe(2);
  });
});

describe("runs", () => {
  it("lists runs by DAG and state", async () => {
    expect((await tw("runs", "list")).stdout).toMatch(/^DAG +RUN +STATE/);
    const failed = (await json("runs", "list", "failing", "--state", "failed")) as { state: string }[];
    expect(failed.length).toBeGreaterThan(0);
    expect(new Set(failed.map((run) => run.state))).toEqual(new Set(["failed"]));
    expect(await json("runs", "list", "--dag", "failing", "--state", "failed")).toEqual(failed);
    expect((await tw("runs", "list", "hello", "--dag", "failing")).code).toBe(2);
  });

  it("shows the first failed task and the log of callbacks of a failed run", async () => {
    expect((await tw("runs", "show", "failing", "@latest")).stdout).toMatch(
      /^failed first +broken, try 1, .*: .*the disk is full/m,
    );
    await expect
      .poll(async () => (await tw("runs", "logs", "failing", "@latest", "--callbacks")).stdout, {
        timeout: 20_000,
      })
      .toMatch(/ Callback "failure" of run ".*"\.\n.* the run has failed run=/);
    expect((await tw("runs", "show", "hello", "mine")).stdout).not.toContain("failed first");
  });

  it("waits with a timeout, detaches, and cancels a run", async () => {
    await tw("dags", "trigger", "slow", "--run-id", "long", "--conf", '{"lines":600}');
    const late = await tw("runs", "wait", "slow", "long", "--timeout", "300ms");
    expect(late.code).toBe(124);
    expect(late.stderr).toMatch(/^Waiting for run long of slow\.\n/);
    expect(late.stderr).toMatch(/^Timed out; the run continues\. .*`.* runs wait slow long`\.$/m);
    expect(late.stderr.match(/long/g)).toHaveLength(2);
    const left = await runCli(
      ["runs", "wait", "slow", "@latest"],
      { TRADEWIND_HOME: standalone.home },
      (child, stderr) => {
        const watch = setInterval(() => {
          if (!stderr().includes("running")) return;
          clearInterval(watch);
          child.kill("SIGINT");
        }, 20);
      },
    );
    expect(left.code).toBe(130);
    expect(left.stderr).toContain("Detached; the run continues");
    expect(await json("runs", "show", "slow", "long")).toMatchObject({ state: "running" });
    expect((await tw("runs", "cancel", "slow", "long", "--yes")).code).toBe(0);
    expect((await tw("runs", "wait", "slow", "long")).code).toBe(1);
    expect((await tw("runs", "cancel", "slow", "long", "--yes")).code).toBe(5);
  });

  it("clears a run, and changes nothing in a dry run", async () => {
    await tw("dags", "trigger", "failing", "--run-id", "again", "--wait");
    const dry = await tw("runs", "clear", "failing", "again", "--only-failed", "--dry-run");
    expect(dry.stderr).toMatch(/Would rerun .*: .*broken/);
    expect(await json("runs", "show", "failing", "again")).toMatchObject({ state: "failed" });
    const real = await tw("runs", "clear", "failing", "again", "--only-failed", "--yes", "--wait");
    expect(real.code).toBe(1);
    const instances = (await json("tasks", "list", "failing", "again")) as {
      task_id: string;
      try_number: number;
    }[];
    expect(instances.find((each) => each.task_id === "broken")?.try_number).toBe(2);
    expect(instances.find((each) => each.task_id === "first")?.try_number).toBe(1);
  });

  it("runs all tasks after clearing a run that was cancelled before its start", async () => {
    await tw("dags", "pause", "slow");
    await tw("dags", "trigger", "slow", "--run-id", "unbegun", "--conf", '{"lines":1}');
    expect((await tw("runs", "cancel", "slow", "unbegun", "--yes")).code).toBe(0);
    const clear = ["runs", "clear", "slow", "unbegun", "--only-failed"];
    expect((await tw(...clear, "--dry-run")).stderr).toContain("Would rerun all tasks");
    await tw("dags", "unpause", "slow");
    expect((await tw(...clear, "--yes", "--wait")).code).toBe(0);
    expect((await tw("tasks", "output", "slow", "unbegun", "after")).stdout).toBe("1\n");
  });

  it("deletes only after a confirmation", async () => {
    expect((await tw("runs", "delete", "failing", "again")).code).toBe(2);
    expect((await tw("runs", "delete", "failing", "again", "--yes")).code).toBe(0);
    expect((await tw("runs", "show", "failing", "again")).code).toBe(3);
  });
});

describe("tasks", () => {
  it("follows a log from before the start of the run until the end of the task", async () => {
    await tw("dags", "trigger", "slow", "--run-id", "followed", "--conf", '{"lines":5}');
    const { code, stdout, stderr } = await tw("tasks", "logs", "slow", "followed", "count", "-f");
    expect(code).toBe(0);
    expect(stdout.match(/line \d/g)).toEqual(["line 1", "line 2", "line 3", "line 4", "line 5"]);
    expect(stderr).toContain("success");
  });

  it("prints the log of a try, and reports a missing try", async () => {
    const log = await tw("tasks", "logs", "slow", "followed", "count", "--try", "1");
    expect(log.stdout).toContain("line 1 of=5");
    expect((await tw("tasks", "logs", "slow", "followed", "count", "--try", "2")).code).toBe(3);
  });

  it("says why", async () => {
    await tw("dags", "trigger", "failing", "--run-id", "why", "--wait");
    const failed = await tw("tasks", "why", "failing", "why", "never");
    expect(failed.stdout).toMatch(
      /never is upstream_failed\n +because broken is failed\n +because try 1 failed: .*the disk is full/,
    );
    await tw("dags", "trigger", "slow", "--run-id", "why", "--conf", '{"lines":600}');
    await expect
      .poll(async () => (await tw("tasks", "why", "slow", "why", "after")).stdout, { timeout: 20_000 })
      .toMatch(/after is pending\n +because .*allSuccess.*\n +because count is running for/);
    await tw("runs", "cancel", "slow", "why", "--yes");
  });

  it("explains that a task can never get its pool slots", async () => {
    await tw("pools", "set", "tiny", "1");
    await tw("dags", "trigger", "crowded", "--run-id", "pool");
    await expect
      .poll(async () => (await tw("tasks", "why", "crowded", "pool", "waits")).stdout, { timeout: 20_000 })
      .toMatch(
        /because pool "tiny" has 1 slot in total, .* tradewind pools set tiny 2, .* \[POOL_TOO_SMALL\]$/m,
      );
    await tw("pools", "set", "tiny", "2");
    expect((await tw("runs", "wait", "crowded", "pool", "--timeout", "30s")).code).toBe(0);
  });

  it("marks and clears tasks", async () => {
    expect((await tw("tasks", "mark", "failing", "why", "broken", "success", "--yes")).code).toBe(0);
    // Later tasks may have run by then.
    const succeeded = (await json("tasks", "list", "failing", "why", "--state", "success")) as {
      task_id: string;
    }[];
    expect(succeeded.map(({ task_id }) => task_id)).toEqual(expect.arrayContaining(["broken", "first"]));
    await tw("runs", "wait", "failing", "why", "--timeout", "30s");
    const clear = ["tasks", "clear", "failing", "why", "broken", "--downstream"];
    expect((await tw(...clear, "--dry-run")).stderr).toMatch(/Would rerun: .*broken/);
    expect((await tw(...clear, "--yes")).code).toBe(0);
    expect((await tw("runs", "wait", "failing", "why", "--timeout", "30s")).code).toBe(1);
  });
});

describe("pools, variables, connections", () => {
  it("pools", async () => {
    expect((await tw("pools", "set", "wide", "-1", "--description", "no limit")).code).toBe(0);
    expect((await tw("pools", "list")).stdout).toMatch(/^wide +unlimited/m);
    expect((await tw("pools", "set", "wide", "3")).stderr).toContain("changed");
    expect(await json("pools", "show", "wide")).toMatchObject({ slots: 3, description: "no limit" });
    expect((await tw("pools", "delete", "wide", "--yes")).code).toBe(0);
    expect((await tw("pools", "show", "wide")).code).toBe(3);
    expect((await tw("pools", "delete", "default_pool", "--yes")).code).not.toBe(0);
  });

  it("sets, imports and exports variables", async () => {
    expect((await tw("variables", "set", "region", "eu", "--description", "where")).code).toBe(0);
    expect((await tw("variables", "show", "region", "--value")).stdout).toBe("eu\n");
    await tw("variables", "set", "api_key", "s3cr3t");
    expect(await tw("variables", "show", "api_key", "--value")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(
        "variable api_key is a secret, and the server does not return its value. [TW_CLI_SECRET_HIDDEN]",
      ),
    });
    await tw("variables", "delete", "api_key", "--yes");
    await tw("variables", "set", "region", "us");
    expect(await json("variables", "show", "region")).toMatchObject({ value: "us", description: "where" });
    expect((await tw("variables", "list")).stdout).not.toContain("us\n");
    const file = join(standalone.folder, "variables.json");
    await writeFile(file, JSON.stringify({ a: "1", b: { value: "2", description: "two" } }));
    expect((await tw("variables", "import", file)).stderr).toContain("2 variables: 2 created");
    expect(JSON.parse((await tw("variables", "export")).stdout)).toEqual({
      a: "1",
      b: { value: "2", description: "two" },
      region: { value: "us", description: "where" },
    });
    expect((await tw("variables", "delete", "a", "--yes")).code).toBe(0);
    expect((await tw("variables", "show", "a")).code).toBe(3);
  });

  it("does not show secrets of connections", async () => {
    const uri = "postgres://ann:s3cret@db.example:5432/sales";
    const untyped = await tw("connections", "set", "warehouse", "--host", "db.example");
    expect([untyped.code, untyped.stderr]).toEqual([
      2,
      expect.stringMatching(/needs a type.*\n.*--type postgres/),
    ]);
    expect((await tw("connections", "set", "warehouse", "--uri", uri)).code).toBe(0);
    expect((await tw("connections", "set", "warehouse", "--host", "db2.example")).code).toBe(0);
    const shown = await tw("connections", "show", "warehouse", "--json");
    expect(JSON.parse(shown.stdout)).toMatchObject({
      conn_type: "postgres",
      host: "db2.example",
      login: "ann",
      port: 5432,
    });
    expect(shown.stdout).not.toContain("s3cret");
    expect((await tw("connections", "list")).stdout).toMatch(/^warehouse +postgres/m);
    expect((await tw("connections", "delete", "warehouse", "--yes")).code).toBe(0);
  });
});

describe("tokens", () => {
  it("creates, lists and deletes tokens", async () => {
    const made = await tw("tokens", "create", "ci", "--expires-in", "1h");
    const token = made.stdout.trim();
    expect(token).toMatch(/^tw_[\w-]{43}$/);
    expect((await tw("dags", "list", "--token", token)).code).toBe(0);
    const listed = await tw("tokens", "list");
    expect(listed.stdout).toMatch(/^ID +NAME +ROLE +MADE[\s\S]*admin .*now, by you +never$[\s\S]* ci /m);
    expect(listed.stdout).not.toContain(token);
    const [own, other] = (await json("tokens", "list")) as { id: number; is_current: boolean }[];
    expect([own?.is_current, other?.is_current]).toEqual([true, false]);
    expect((await tw("tokens", "delete", String(own?.id), "--yes")).code).toBe(5);
    expect((await tw("tokens", "delete", String(other?.id))).code).toBe(2);
    expect((await tw("tokens", "delete", String(other?.id), "--yes")).code).toBe(0);
    expect((await tw("dags", "list", "--token", token)).code).toBe(4);
  });
});

describe("db and doctor", () => {
  it("lists migrations, finds nothing to migrate, and counts rows before cleaning", async () => {
    expect((await tw("db", "status")).stdout).toMatch(/^0001_schema +\d{4}-/m);
    expect((await tw("db", "migrate")).stderr).toContain("up to date");
    expect((await tw("db", "clean", "--older-than", "30d", "--dry-run")).stderr).toContain(
      "Would delete: nothing",
    );
    const counted = JSON.parse(
      (await tw("db", "clean", "--older-than", "0s", "--dry-run", "--json")).stdout,
    ) as object;
    expect(Object.values(counted).some((count) => count > 0)).toBe(true);
    const nonsense = await tw("db", "clean", "--older-than", "0s", "--only", "everything");
    expect(nonsense).toMatchObject({ code: 2, stderr: expect.stringContaining("use one of runs, ") });
    const runs = ["db", "clean", "--older-than", "0s", "--only", "runs", "--yes"];
    expect(await tw(...runs)).toMatchObject({ code: 0, stderr: expect.stringMatching(/Deleted: \d+ runs/) });
    // The latest run by date is kept: the next run may depend on it.
    expect(await json("runs", "list", "hello")).toHaveLength(1);
    expect((await tw("db", "clean", "--older-than", "0s", "--yes")).code).toBe(0);
  });

  it("reports healthy services and the broken file in doctor", async () => {
    const { code, stdout } = await tw("doctor");
    expect(stdout).toMatch(
      /^ok +database: PostgreSQL \d+.*127\.0\.0\.1:\d+ .*database tradewind, user tradewind, password in .*postgres\/password$/m,
    );
    expect(stdout).toMatch(/^ok +migrations:/m);
    expect(stdout).toMatch(/^ok +outputs: .*outputs is writable/m);
    expect(stdout).toMatch(/^ok +scheduler: alive/m);
    expect(stdout).toMatch(/^ok +dag processor: alive/m);
    expect(stdout).toMatch(/^warn +DAG files: .*broken\.ts/m);
    expect(stdout).toMatch(/^warn +DAG files: forgotten\.ts creates forgotten but does not export it/m);
    expect(code).toBe(0);
  });

  it("keeps the database of the standalone running", async () => {
    expect((await tw("dags", "list")).code).toBe(0);
  });
});

describe("stop and restart", () => {
  it("stops gracefully on SIGTERM, and commands report the stopped server", async () => {
    expect(await standalone.stop()).toBe(0);
    expect(standalone.stderr).toMatch(/Stopping \(SIGTERM\).*[\s\S]*Stopped\./);
    const { code, stderr } = await tw("dags", "list");
    expect(code).toBe(6);
    expect(stderr).toContain("tradewind standalone");
  });

  it("shows how to start a run if no run is due", async () => {
    const again = await StandaloneProcess.startOn(standalone.folder);
    try {
      await again.until(/No run is due now/);
      expect(again.stderr).toContain(`tradewind --home ${again.home} dags trigger crowded --wait`);
    } finally {
      await again.stop();
    }
  });
});
