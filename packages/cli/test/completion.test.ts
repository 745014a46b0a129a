/** Completion in a real bash on a terminal, against a real standalone. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCaptured } from "./support/captured-host.ts";
import { StandaloneProcess } from "./support/standalone-process.ts";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));
let standalone: StandaloneProcess;

async function completed(line: string, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
  const { code, stderr, stdout } = await runCaptured(["__complete", `tradewind ${line}`], {
    env: { TRADEWIND_HOME: standalone.home, ...env },
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout.split("\n").flatMap((each) => (each === "" ? [] : [each.split("\t", 1)[0] as string]));
}

beforeAll(async () => {
  standalone = await StandaloneProcess.startWith(["hello.ts"], []);
  await standalone.until(/✓ hello/);
  const tw = (...argv: string[]) => runCaptured(argv, { env: { TRADEWIND_HOME: standalone.home } });
  await tw("pools", "set", "gpu", "2");
  await tw("variables", "set", "region", "eu");
}, 120_000);
afterAll(() => standalone?.remove());

describe("candidates", () => {
  it("completes commands and options", async () => {
    expect(await completed("dag")).toEqual(["dags", "dag-processor"]);
    expect(await completed("variables ")).toContain("show");
    expect(await completed("variables ")).not.toContain("get");
    expect(await completed("signals dead-letters re")).toEqual(["retry"]);
    expect(await completed("runs list --st")).toEqual(["--state"]);
    expect(await completed("dags show --ho")).toEqual(["--home"]);
    expect(await completed("version nothing ")).toEqual([]);
  });

  it("completes the values of an option or argument", async () => {
    expect(await completed("runs list --state ")).toEqual(["queued", "running", "success", "failed"]);
    expect(await completed("runs list --state queued f")).toEqual(["failed"]);
    expect(await completed("-o ")).toEqual(["table", "json", "yaml"]);
    expect(await completed("runs list --output=j")).toEqual(["--output=json"]);
    expect(await completed("tasks mark hello @latest who s")).toEqual(["success", "skipped"]);
    expect(await completed("completion z")).toEqual(["zsh"]);
  });

  it("completes names from the server", async () => {
    expect(await completed("dags show he")).toEqual(["hello"]);
    expect(await completed("runs show hello ")).toEqual([
      "@latest",
      "@failed",
      expect.stringMatching(/^scheduled__/),
    ]);
    expect(await completed("tasks logs hello @latest sh")).toEqual(["shout"]);
    expect(await completed("events list --dag hello --task gr")).toEqual(["greet"]);
    expect(await completed("pools show g")).toEqual(["gpu"]);
    expect(await completed("variables show ")).toEqual(["region"]);
    expect(await completed("executors show ")).toEqual(["local"]);
  });

  it("completes no names and prints nothing if the server is unreachable or slow", async () => {
    expect(await completed("dags show ", { TRADEWIND_URL: "http://127.0.0.1:1" })).toEqual([]);
    expect(await completed("dags show ", { TRADEWIND_HOME: "/nonexistent" })).toEqual([]);
    const silent = createServer();
    await once(silent.listen(0, "127.0.0.1"), "listening");
    const { port } = silent.address() as { port: number };
    expect(await completed("dags show ", { TRADEWIND_URL: `http://127.0.0.1:${port}` })).toEqual([]);
    expect(await completed(`--url http://127.0.0.1:${port} dags show `)).toEqual([]);
    silent.close();
  });
});

const has = (program: string) => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;

describe("scripts", () => {
  it("calls the command behind an alias, or a program by its name, in bash", async () => {
    const { stdout: script } = await runCaptured(["completion", "bash"]);
    const call = (setUp: string) =>
      spawnSync(
        "bash",
        ["--norc", "-c"].concat(`${script}
        npm() { local IFS=,; printf '%s\\n' "npm,$*"; }
        ${setUp}
        COMP_LINE='tradewind dags sh'; COMP_POINT=17; COMP_WORDS=(tradewind dags sh)
        _tradewind; printf '%s|' "\${COMPREPLY[@]}"`),
      ).stdout.toString();
    expect(call("alias tradewind='npm run -s tradewind --'")).toBe(
      "npm,run,-s,tradewind,--,__complete,tradewind dags sh|",
    );
    expect(call(`tradewind() { local IFS=,; printf '%s\\n' "own,$*"; }`)).toBe(
      "own,__complete,tradewind dags sh|",
    );
  });

  it.each(["bash", "zsh", "fish"].filter(has))("prints a valid script for %s", async (shell) => {
    const file = join(standalone.folder, `completion.${shell}`);
    await writeFile(file, (await runCaptured(["completion", shell])).stdout);
    const { status, stderr } = spawnSync(shell, ["-n", file], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  it("prints scripts that call tradewind, and rejects other shells", async () => {
    for (const shell of ["bash", "zsh", "fish"])
      expect((await runCaptured(["completion", shell])).stdout).toMatch(/__complete .*2>\/dev\/null/);
    expect((await runCaptured(["completion", "tcsh"])).code).toBe(2);
  });
});

/** Types into a bash on a pseudo-terminal; calls are recorded, not run. */
class TypedBash {
  readonly #folder: string;
  readonly #bash: ChildProcess;
  #calls = 0;

  private constructor(folder: string, bash: ChildProcess) {
    this.#folder = folder;
    this.#bash = bash;
    bash.stdout?.resume();
  }

  static async start(): Promise<TypedBash> {
    const folder = await mkdtemp(join(tmpdir(), "tradewind-bash-"));
    const program = join(folder, "tradewind");
    await writeFile(
      program,
      `#!/bin/sh
case "$1" in __complete|completion) exec '${process.execPath}' --conditions=source '${MAIN}' "$@";; esac
printf '%s\\n' "$*" >> '${folder}/calls'
`,
    );
    await chmod(program, 0o755);
    await writeFile(join(folder, "calls"), "");
    const env = {
      ...process.env,
      PATH: `${folder}:${process.env.PATH}`,
      TRADEWIND_HOME: standalone.home,
      TERM: "dumb",
      HISTFILE: "/dev/null",
    };
    const shell = "bash --norc --noprofile -i";
    const typed = new TypedBash(folder, spawn("script", ["-qec", shell, "/dev/null"], { env }));
    await typed.type("source <(tradewind completion bash); tradewind ready");
    return typed;
  }

  /** Types a line, with tabs where they are pressed; returns the arguments of the recorded call. */
  async type(line: string): Promise<string> {
    this.#bash.stdin?.write(`${line}\n`);
    const index = this.#calls++;
    for (const deadline = Date.now() + 60_000; ; ) {
      const calls = (await readFile(join(this.#folder, "calls"), "utf8")).split("\n");
      if (calls.length > index + 1) return calls[index] as string;
      if (Date.now() > deadline) throw new Error(`bash made no call for ${JSON.stringify(line)}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async stop(): Promise<void> {
    const closed = once(this.#bash, "close");
    this.#bash.stdin?.end("exit\n");
    await closed;
    await rm(this.#folder, { recursive: true });
  }
}

describe.skipIf(!has("bash") || !has("script"))("bash", () => {
  it("completes typed words", { timeout: 180_000 }, async () => {
    const bash = await TypedBash.start();
    try {
      expect(await bash.type("tradewind dags sh\thel\t")).toBe("dags show hello");
      expect(await bash.type("tradewind runs list --sta\tfai\t--js\t")).toBe(
        "runs list --state failed --json",
      );
      expect(await bash.type("tradewind runs list --output=js\t")).toBe("runs list --output=json");
      // Bash splits words at the colons of a time.
      const [, , run] = await completed("runs show hello ");
      const upToColon = run!.slice(0, run!.indexOf(":") + 1);
      expect(await bash.type(`tradewind runs show hello sched\t`)).toBe(`runs show hello ${run}`);
      expect(await bash.type(`tradewind runs show hello ${upToColon}\t`)).toBe(`runs show hello ${run}`);
    } finally {
      await bash.stop();
    }
  });
});
