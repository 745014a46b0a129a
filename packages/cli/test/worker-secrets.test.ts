/** What the code of a task on a worker can find of the worker's credentials, in a real worker process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { adhoc } from "../../engine/src/store/database/database.ts";
import { WorkerRig } from "../../engine/test/support/worker-rig.ts";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const DATABASE_URL = "postgresql://ann:data-base-pass@127.0.0.1:1/shop";
const SECRETS = /tw_[\w-]{43}|redis[-]pass[-]word|data[-]base[-]pass/g;

const DAGS = `
  import { dag } from "tradewind";
  import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from "node:fs";
  import { join } from "node:path";

  const reach = (use) => {
    try { return use() ?? "reached"; } catch (error) { return error.code; }
  };
  /** What the pattern finds in the memory of a process. */
  const inMemory = (pid, pattern) => {
    const found = new Set();
    const mem = openSync("/proc/" + pid + "/mem", "r");
    for (const line of readFileSync("/proc/" + pid + "/maps", "utf8").split("\\n")) {
      const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
      if (from === undefined || to === undefined) continue;
      for (let at = BigInt("0x" + from); at < BigInt("0x" + to); at += 1_048_576n) {
        const piece = Buffer.alloc(1_048_576 + 200);
        try { readSync(mem, piece, 0, piece.length, at); } catch { continue; }
        for (const [text] of piece.toString("latin1").matchAll(pattern)) found.add(text);
      }
    }
    closeSync(mem);
    return [...found];
  };
  const filesBelow = (folder) => {
    const names = reach(() => readdirSync(folder, { recursive: true }));
    return Array.isArray(names) ? names.map((name) => join(folder, name)) : [];
  };
  const texts = (paths) =>
    paths.map((path) => reach(() => (statSync(path).isFile() ? readFileSync(path, "latin1") : ""))).join("\\n");

  export default dag("spy", {}, (d) => {
    d.task("spy", { retries: 0 }, async (_, ctx) => {
      // From the run: the code itself must not have what it looks for.
      const { home, secrets, attempts } = ctx.params;
      const control = ["con", "trol", "text"].join("-");
      const [secret, attempt] = [new RegExp(secrets, "g"), new RegExp(attempts, "g")];
      const parent = "/proc/" + process.ppid + "/";
      const processes = readdirSync("/proc").filter((name) => /^\\d+$/.test(name));
      return {
        uid: process.getuid(),
        parent: readFileSync(parent + "cmdline", "latin1").includes("worker"),
        environment: texts(["/proc/self/environ"]).match(secret) ?? JSON.stringify(process.env).match(secret),
        parentEnvironment: reach(() => readFileSync(parent + "environ", "latin1").match(secret) ?? "clean"),
        parentMemory: reach(() => { closeSync(openSync(parent + "mem", "r")); }),
        parentFiles: reach(() => { readdirSync(parent + "fd"); }),
        parentFolder: reach(() => { readdirSync(parent + "root/proc/self/cwd"); readdirSync(parent + "cwd"); }),
        commandLines: texts(processes.map((pid) => "/proc/" + pid + "/cmdline")).match(secret),
        home: texts(filesBelow(home)).match(secret),
        homeList: reach(() => { readdirSync(home); }),
        logs: reach(() => { readdirSync(home + "/logs"); }),
        // That the search finds what is there.
        control: inMemory(process.pid, /con[-]trol[-]text/g).includes(control),
        attemptToken: inMemory(process.pid, attempt),
        workerToken: inMemory(process.pid, secret),
      };
    });
  });
`;

/** The text after an attempt's id in its token. A pattern that does not match itself. */
const ATTEMPT_TOKEN = String.raw`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.\d+\.[\w-]{43}`;

const asRoot = process.getuid?.() === 0;

describe.runIf(existsSync("/proc/self/environ"))("a task on a worker", () => {
  let on: WorkerRig;

  beforeAll(async () => {
    on = await WorkerRig.open();
    await on.rig.publish({ "spy.ts": DAGS });
  }, 60_000);

  /** What the task found. @param uid The account of the worker; undefined: that of the test. */
  async function findings(uid?: number): Promise<Record<string, unknown>> {
    const folder = await mkdtemp(join(tmpdir(), "tradewind-spied-"));
    await chmod(folder, 0o755);
    const home = join(folder, "home");
    await mkdir(home);
    if (uid !== undefined) for (const path of [folder, home]) await chown(path, uid, uid);
    const child = spawn(
      process.execPath,
      ["--conditions=source", MAIN, "worker", "--home", home, "--concurrency", "2", "--name", folder],
      {
        cwd: process.cwd(),
        env: {
          PATH: process.env.PATH,
          HOME: folder,
          TMPDIR: folder,
          TRADEWIND_URL: on.proxy.url,
          TRADEWIND_TOKEN: on.workerToken,
          REDIS_URL: on.redisUrl,
          DATABASE_URL,
        },
        stdio: ["ignore", "ignore", "pipe"],
        ...(uid !== undefined && { uid, gid: uid }),
      },
    );
    onTestFinished(async () => {
      await ended(child);
      await rm(folder, { recursive: true });
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    await on.rig.until(async () => {
      if (child.exitCode !== null) throw new Error(`the worker ended:\n${said}`);
      return said.includes("The worker is running");
    }, "the worker");
    const conf = { home, secrets: SECRETS.source, attempts: ATTEMPT_TOKEN };
    const run = await on.rig.trigger("spy", { conf });
    expect([await on.rig.ended(run, 60_000), (await on.rig.tasks(run)).spy?.reason]).toEqual([
      "success",
      null,
    ]);
    const [job] = await on.rig.db.rows<{ pid: number }>(adhoc("SELECT pid FROM job WHERE name = $1"), [
      folder,
    ]);
    expect(job?.pid).toBe(child.pid);
    return (await on.rig.output(run, "spy")) as Record<string, unknown>;
  }

  it.runIf(asRoot)(
    "finds no credential if the worker was started as root",
    async () => {
      expect(await findings()).toEqual({
        uid: 60_802,
        parent: true,
        environment: null,
        parentEnvironment: "EACCES",
        parentMemory: "EACCES",
        parentFiles: "EACCES",
        parentFolder: "EACCES",
        commandLines: null,
        home: null,
        homeList: "EACCES",
        logs: "EACCES",
        control: true,
        attemptToken: [],
        workerToken: [],
      });
    },
    90_000,
  );

  it("finds none in environments, command lines, files and its own memory if it has the account of the worker", async () => {
    const uid = asRoot ? 60_901 : undefined;
    const {
      parentFiles: _,
      parentFolder: _f,
      parentMemory: _m,
      homeList: _l,
      logs: _g,
      ...found
    } = await findings(uid);
    expect(found).toEqual({
      uid: uid ?? process.getuid?.(),
      parent: true,
      environment: null,
      parentEnvironment: "clean",
      commandLines: null,
      home: null,
      control: true,
      attemptToken: [],
      workerToken: [],
    });
  }, 90_000);
});

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}
