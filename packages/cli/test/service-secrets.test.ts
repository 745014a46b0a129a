/**
 * What the code of a task can find of the credentials of the service that runs it: real workers and schedulers, started as
 * root, with the account of their tasks, and with that account and a Node.js binary that it may execute but not read.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, chown, copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { newToken } from "../../engine/src/service/home.ts";
import { hasOtherAccount } from "../../engine/test/support/other-account.ts";
import { SchedulerRig } from "../../engine/test/support/scheduler-rig.ts";
import { WorkerRig } from "../../engine/test/support/worker-rig.ts";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));
/** Patterns that do not match themselves. Tokens of other tests may be in command lines, so that of the service is added. */
const SECRETS = /redis[-]pass[-]word|data[-]base[-]pass|[B]wcHBwcHBwc/;
/** That of `SchedulerRig`. */
const SECRET_KEY = Buffer.alloc(32, 7).toString("base64");

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
  const parentOf = (pid) => reach(() => readFileSync("/proc/" + pid + "/stat", "latin1").split(") ")[1].split(" ")[1]);

  export default dag("spy", {}, (d) => {
    d.task("spy", { retries: 0 }, async (_, ctx) => {
      // From the run: the code itself must not have what it looks for.
      const { folder, secrets, attempts } = ctx.params;
      const control = ["con", "trol", "text"].join("-");
      const [secret, attempt] = [new RegExp(secrets, "g"), new RegExp(attempts, "g")];
      const service = String(process.ppid);
      const parent = "/proc/" + service + "/";
      const processes = readdirSync("/proc").filter((name) => /^\\d+$/.test(name));
      const siblings = processes.filter((pid) => parentOf(pid) === service && pid !== String(process.pid));
      const home = join(folder, "home");
      return {
        uid: process.getuid(),
        siblings: siblings.length,
        parent: readFileSync(parent + "cmdline", "latin1").includes(folder),
        environment: texts(["/proc/self/environ"]).match(secret) ?? JSON.stringify(process.env).match(secret),
        files: readdirSync("/proc/self/fd").map((fd) => texts(["/proc/self/fd/" + fd])).join().match(secret),
        parentEnvironment: reach(() => readFileSync(parent + "environ", "latin1").match(secret) ?? "clean"),
        parentMemory: reach(() => { closeSync(openSync(parent + "mem", "r")); }),
        parentMaps: reach(() => { readFileSync(parent + "maps"); }),
        parentFiles: reach(() => { readdirSync(parent + "fd"); }),
        parentFolder: reach(() => { readdirSync(parent + "root/proc/self/cwd"); readdirSync(parent + "cwd"); }),
        parentInspector: reach(() => { process.kill(process.ppid, "SIGUSR1"); }),
        siblingEnvironments: texts(siblings.map((pid) => "/proc/" + pid + "/environ")).match(secret),
        siblingMemories: siblings.flatMap((pid) => reach(() => inMemory(pid, secret))).filter((text) => !/^E[A-Z]+$/.test(text)),
        commandLines: texts(processes.map((pid) => "/proc/" + pid + "/cmdline")).match(secret),
        folder: texts(filesBelow(folder)).match(secret),
        homeList: reach(() => { readdirSync(home); }),
        logs: reach(() => { readdirSync(home + "/logs"); }),
        // That the search finds what is there.
        control: reach(() => inMemory(process.pid, /con[-]trol[-]text/g).includes(control)),
        attemptToken: reach(() => inMemory(process.pid, attempt)),
        token: reach(() => inMemory(process.pid, secret)),
      };
    });
  });
`;

/** The text after an attempt's id in its token. A pattern that does not match itself. */
const ATTEMPT_TOKEN = String.raw`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.\d+\.[\w-]{43}`;

interface Place {
  readonly rig: SchedulerRig;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

const PLACES: Readonly<Record<string, () => Promise<Place>>> = {
  worker: async () => {
    const { proxy, redisUrl, rig, workerToken } = await WorkerRig.open();
    const address = { TRADEWIND_URL: proxy.url, TRADEWIND_TOKEN: workerToken, REDIS_URL: redisUrl };
    const DATABASE_URL = "postgresql://ann:data-base-pass@127.0.0.1:1/shop";
    return { rig, command: ["worker", "--concurrency", "2"], environment: { ...address, DATABASE_URL } };
  },
  scheduler: async () => {
    const rig = await SchedulerRig.open();
    const url = new URL(rig.url);
    // The server of the tests accepts any.
    url.password ||= "data-base-pass";
    const environment = {
      DATABASE_URL: url.href,
      TRADEWIND_SECRET_KEY: SECRET_KEY,
      TRADEWIND_TOKEN: newToken(),
    };
    return { rig, command: ["scheduler", "--parallelism", "2"], environment };
  },
};

describe.runIf(existsSync("/proc/self/environ")).each(Object.keys(PLACES))("a task of a %s", (kind) => {
  let place: Place;

  beforeAll(async () => {
    place = await PLACES[kind]!();
    await place.rig.publish({ "spy.ts": DAGS });
  }, 60_000);

  /** What the task found. @param uid The account of the service; undefined: that of the test. */
  async function findings({
    node = process.execPath,
    uid,
  }: {
    readonly node?: string;
    readonly uid?: number | undefined;
  }): Promise<Record<string, unknown>> {
    const { command, environment, rig } = place;
    const folder = await mkdtemp(join(tmpdir(), "tradewind-spied-"));
    await chmod(folder, 0o755);
    const home = join(folder, "home");
    await mkdir(home);
    if (uid !== undefined) for (const path of [folder, home]) await chown(path, uid, uid);
    const child = spawn(node, ["--conditions=source", MAIN, ...command, "--home", home], {
      cwd: process.cwd(),
      env: { PATH: process.env.PATH, HOME: folder, TMPDIR: folder, ...environment },
      stdio: ["ignore", "ignore", "pipe"],
      ...(uid !== undefined && { uid, gid: uid }),
    });
    onTestFinished(async () => {
      await ended(child);
      await rm(folder, { recursive: true });
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    await expect
      .poll(
        () => {
          if (child.exitCode !== null) throw new Error(`the service ended:\n${said}`);
          return said;
        },
        { timeout: 60_000 },
      )
      .toContain(`The ${kind} is running`);
    const token = `[t]w_${environment.TRADEWIND_TOKEN?.slice("tw_".length)}`;
    const conf = { folder, secrets: `${token}|${SECRETS.source}`, attempts: ATTEMPT_TOKEN };
    const run = await rig.trigger("spy", { conf });
    expect([await rig.ended(run, 60_000), (await rig.tasks(run)).spy?.reason]).toEqual(["success", null]);
    expect(said).not.toContain("Debugger listening");
    return (await rig.output(run, "spy")) as Record<string, unknown>;
  }

  const nothing = {
    siblings: expect.any(Number),
    parent: true,
    environment: null,
    files: null,
    siblingEnvironments: null,
    siblingMemories: [],
    commandLines: null,
    folder: null,
  };
  const nothingInItself = { control: true, attemptToken: [], token: [] };
  const closedParent = {
    parentEnvironment: "EACCES",
    parentMemory: "EACCES",
    parentMaps: "EACCES",
    parentFiles: "EACCES",
    parentFolder: "EACCES",
  };

  it.runIf(hasOtherAccount)(
    "finds no credential if the service was started as root",
    async () => {
      expect(await findings({})).toEqual({
        ...{ ...nothing, ...nothingInItself, ...closedParent },
        uid: 60_802,
        parentInspector: "EPERM",
        homeList: "EACCES",
        logs: "EACCES",
      });
    },
    120_000,
  );

  const uid = hasOtherAccount ? 60_901 : undefined;

  it("finds none with the account of the service if that cannot read the binary of Node.js", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tradewind-node-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await chmod(folder, 0o755);
    const node = join(folder, "node");
    await copyFile(process.execPath, node);
    await chmod(node, 0o111);
    expect(await findings({ node, uid })).toEqual({
      ...{ ...nothing, ...closedParent },
      uid: uid ?? process.getuid?.(),
      parentInspector: "reached",
      homeList: "reached",
      logs: "reached",
      // A process cannot even read its own memory.
      control: "EACCES",
      attemptToken: "EACCES",
      token: "EACCES",
    });
  }, 120_000);

  it("finds none outside of the memory of the service if it has the account of the service", async () => {
    const { homeList, logs, parentFiles, parentFolder, parentMaps, parentMemory, ...found } = await findings({
      uid,
    });
    expect(found).toEqual({
      ...{ ...nothing, ...nothingInItself },
      uid: uid ?? process.getuid?.(),
      parentEnvironment: "clean",
      parentInspector: "reached",
    });
  }, 120_000);
});

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}
