import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { privatePostgres } from "../../../test/support/private-postgres.ts";
import { seedFolder } from "../../../test/support/seed-folder.ts";
import { isRunning } from "../../service/process-identity.ts";
import { POSTGRES_UID } from "../../service/process-user.ts";
import { adhoc, call, Database } from "../database/database.ts";
import { accountFor } from "./account.ts";
import { findBinaries, locatePackage } from "./binaries.ts";
import { EmbeddedPostgres } from "./embedded-postgres.ts";

const asRoot = process.getuid?.() === 0;
const NOBODY = 65_534;
const PROGRAM = join(import.meta.dirname, "../../../test/support/embedded-program.ts");

let home: string;
let dataDir: string;
const children: ChildProcess[] = [];
const servers = new Map<string, number>();

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "tw-embedded-"));
  dataDir = join(home, "postgres");
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const pid of servers.values()) {
    if (isRunning(pid)) process.kill(pid, "SIGQUIT");
    await until(() => !isRunning(pid));
  }
  servers.clear();
  await rm(home, { recursive: true, force: true });
});

describe("start", () => {
  it("creates a durable server that requires its password, with files that only the owner can read", async () => {
    const server = await start();
    expect(server.adopted).toBe(false);
    expect(
      await ask(server.url, "SELECT current_setting('fsync') || current_setting('synchronous_commit') AS x"),
    ).toBe("onon");
    expect(await ask(server.url, "SELECT upper('straße ä') || 'a' < 'B' AS x")).toBe(false);
    expect(await ask(server.url, "SELECT current_setting('listen_addresses') AS x")).toBe("127.0.0.1");
    const wrong = new URL(server.url);
    wrong.password = "wrong";
    await expect(ask(wrong.href, "SELECT 1 AS x")).rejects.toMatchObject({ code: "28P01" });
    expect((await stat(join(dataDir, "password"))).mode & 0o777).toBe(0o600);
    expect((await stat(server.dataDirectory)).mode & 0o777).toBe(0o700);
    await server.stop();
    expect(isRunning(server.pid)).toBe(false);
  });

  it("keeps its data and its port across starts", async () => {
    await seedFolder(dataDir);
    const first = await start();
    await ask(first.url, "CREATE TABLE kept AS SELECT 7 AS x");
    await first.stop();
    const second = await start();
    expect(second.url).toBe(first.url);
    expect(await ask(second.url, "SELECT x FROM kept")).toBe(7);
    await second.stop();

    const thief = createServer().listen(first.port, "127.0.0.1");
    await once(thief, "listening");
    const third = await start();
    expect(third.port).not.toBe(first.port);
    expect(await ask(third.url, "SELECT x FROM kept")).toBe(7);
    await third.stop();
    thief.close();
  });

  it("rejects a folder that is not its own, and data of another PostgreSQL version", async () => {
    await mkdir(dataDir);
    await writeFile(join(dataDir, "thesis.tex"), "");
    await expect(start()).rejects.toMatchObject({ code: "EMBEDDED_POSTGRES_FOLDER" });
    await rm(dataDir, { recursive: true });
    await seedFolder(dataDir);
    const server = await start();
    await server.stop();
    await writeFile(join(server.dataDirectory, "PG_VERSION"), "12\n");
    await expect(start()).rejects.toThrow(/belongs to PostgreSQL 12/);
  });

  it("rejects a password file that does not match the server", async () => {
    await seedFolder(dataDir);
    const server = await start();
    await writeFile(join(dataDir, "password"), "another");
    await expect(start()).rejects.toThrow(/does not accept the password/);
    await server.stop();
  });

  it("reports PostgreSQL's error if the server does not start", async () => {
    await seedFolder(dataDir);
    const failed = EmbeddedPostgres.start({ dataDir, settings: { shared_buffers: "lots" } });
    await expect(failed).rejects.toMatchObject({ code: "EMBEDDED_POSTGRES_START" });
    await expect(failed).rejects.toThrow(/invalid value for parameter "shared_buffers"/);
  });

  it("starts one server for concurrent processes; the others adopt it", async () => {
    const all = await Promise.all([program(), program(), program()]);
    expect(new Set(all.map((each) => each.pid)).size).toBe(1);
    expect(all.filter((each) => !each.adopted)).toHaveLength(1);
    expect(await ask(all[0]?.url as string, "SELECT 1 AS x")).toBe(1);
  });

  it("starts one server for concurrent callers in one process", async () => {
    await seedFolder(dataDir);
    const all = await Promise.all([start(), start()]);
    expect(new Set(all.map((each) => each.pid)).size).toBe(1);
    await all[0]?.stop();
  });
});

describe("the parent", () => {
  it("leaves the server running after kill -9, and the next start adopts it", async () => {
    await seedFolder(dataDir);
    const first = await program();
    await ask(first.url, "CREATE TABLE kept AS SELECT 7 AS x");
    first.child.kill("SIGKILL");
    await once(first.child, "exit");
    const second = await program();
    expect(second).toMatchObject({ adopted: true, pid: first.pid, url: first.url });
    expect(await ask(second.url, "SELECT x FROM kept")).toBe(7);
    second.child.stdin?.write("exit");
    await until(() => !isRunning(second.pid));
  });

  it.each(["SIGTERM", "SIGINT"] as const)("stops the server on %s", async (signal) => {
    await seedFolder(dataDir);
    const { child, pid, data } = await program();
    child.kill(signal);
    expect(await once(child, "exit")).toEqual([null, signal]);
    await until(() => !isRunning(pid));
    await expect(stat(join(data, "postmaster.pid"))).rejects.toMatchObject({ code: "ENOENT" });
  });
});

describe("a stale postmaster.pid", () => {
  it("is replaced if its process id belongs to another program of the same user", async () => {
    await seedFolder(dataDir);
    const server = await start();
    await server.crash();
    const { uid, gid } = await stat(server.dataDirectory);
    const stranger = spawn("sleep", ["600"], asRoot ? { uid, gid } : {});
    children.push(stranger);
    const note = join(server.dataDirectory, "postmaster.pid");
    await writeFile(note, (await readFile(note, "utf8")).replace(/^\d+/, `${stranger.pid}`));
    const again = await start();
    expect(again.adopted).toBe(false);
    expect(again.pid).not.toBe(stranger.pid);
    expect(isRunning(stranger.pid as number)).toBe(true);
    await again.stop();
  });
});

describe("a crash", () => {
  it.each(["immediate", "kill"] as const)("loses no acknowledged row (%s)", async (how) => {
    const server = await privatePostgres();
    const db = Database.connect(server.url, { maxPipelines: 4 });
    await db.rows(adhoc("CREATE TABLE ledger (id int PRIMARY KEY)"));
    const acknowledged: number[] = [];
    let next = 0;
    let crashed = false;
    const writer = async () => {
      while (!crashed) {
        const id = next++;
        try {
          await db.pipeline([call(adhoc("INSERT INTO ledger VALUES ($1)"), id)]);
          acknowledged.push(id);
        } catch {
          return;
        }
      }
    };
    const writers = Promise.all([writer(), writer(), writer(), writer()]);
    await until(() => acknowledged.length > 300);
    await server.crash(how);
    crashed = true;
    await writers;
    await server.resume();
    const stored = new Set(
      (await db.rows<{ id: number }>(adhoc("SELECT id FROM ledger"))).map(({ id }) => id),
    );
    expect(acknowledged.length).toBeGreaterThan(300);
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
    await db.close();
    await server.close();
  });

  it("is followed by a restart with respawn", async () => {
    await seedFolder(dataDir);
    const server = await EmbeddedPostgres.start({ dataDir, respawn: true });
    servers.set(server.dataDirectory, server.pid);
    const { pid, url } = server;
    process.kill(pid, "SIGKILL");
    await until(() => server.pid !== pid);
    servers.set(server.dataDirectory, server.pid);
    expect(server.url).toBe(url);
    expect(await ask(url, "SELECT 1 AS x")).toBe(1);
    await server.stop();
    await sleep(600);
    expect(isRunning(server.pid)).toBe(false);
  });
});

describe.runIf(asRoot)("as root", () => {
  it('runs the server under a dedicated account, and denies the account "nobody" access to its data', async () => {
    await chmod(home, 0o755);
    const server = await start();
    expect((await stat(`/proc/${server.pid}`)).uid).toBe(POSTGRES_UID);
    const open = await readdir(`/proc/${server.pid}/fd`);
    const targets = await Promise.all(
      open.map((fd) => readlink(`/proc/${server.pid}/fd/${fd}`).catch(() => "")),
    );
    expect(targets).not.toContain(server.dataDirectory);
    for (const path of ["cwd/pg_hba.conf", "fd/0", "environ"].map((each) => `/proc/${server.pid}/${each}`)) {
      const read = spawnSync("cat", [path], { uid: NOBODY, gid: NOBODY, encoding: "utf8" });
      expect(read.stderr).toContain("Permission denied");
    }
    await server.stop();
  });

  it('gives data of the account "nobody" to the dedicated account, and does not adopt a server that runs as "nobody"', async () => {
    await seedFolder(dataDir);
    const data = join(dataDir, "data");
    spawnSync("chown", ["-R", "60900:60900", data]);
    const former = await start();
    expect((await stat(`/proc/${former.pid}`)).uid).toBe(60_900);
    await ask(former.url, "CREATE TABLE kept AS SELECT 7 AS x");
    former.release();
    // As an earlier version left it; the running server looks like one that runs as "nobody".
    await chown(data, NOBODY, NOBODY);
    const server = await start();
    expect(isRunning(former.pid)).toBe(false);
    expect((await stat(`/proc/${server.pid}`)).uid).toBe(POSTGRES_UID);
    expect(await ask(server.url, "SELECT x FROM kept")).toBe(7);
    for (const file of ["", "PG_VERSION", "base", "pg_wal"]) {
      expect((await stat(join(data, file))).uid).toBe(POSTGRES_UID);
    }
    await server.stop();
  });

  it("works in folders that other users cannot enter, and keeps their permissions", async () => {
    await chmod(home, 0o700);
    dataDir = join(home, "project", ".tradewind", "postgres");
    const server = await start();
    expect(server.dataDirectory).toBe(join(dataDir, "data"));
    await ask(server.url, "CREATE TABLE kept AS SELECT 7 AS x");
    await server.restart("immediate");
    expect(await ask(server.url, "SELECT x FROM kept")).toBe(7);
    await server.stop();
    expect(await ask((await start()).url, "SELECT x FROM kept")).toBe(7);
    for (const folder of [home, dirname(dataDir), dataDir])
      expect((await stat(folder)).mode & 0o777).toBe(0o700);
  });

  it("runs on an ordinary user's data and keeps its owner", async (context) => {
    const user = await ordinaryUser();
    if (user === undefined) return context.skip("this checkout cannot be read by ordinary users");
    await chown(home, user, user);
    const theirs = await program({ uid: user });
    expect(theirs.uid).toBe(user);
    expect((await stat(`/proc/${theirs.pid}`)).uid).toBe(user);
    await ask(theirs.url, "CREATE TABLE kept AS SELECT 7 AS x");
    theirs.child.stdin?.write("exit");
    await until(() => !isRunning(theirs.pid));
    const ours = await start();
    expect((await stat(`/proc/${ours.pid}`)).uid).toBe(user);
    expect(await ask(ours.url, "SELECT x FROM kept")).toBe(7);
    await ours.stop();
    const back = await program({ uid: user });
    expect(await ask(back.url, "SELECT x FROM kept")).toBe(7);
  });

  it("copies binaries that other users cannot read, adds missing links, and allows concurrent copies", async () => {
    const account = await accountFor(join(home, "none"));
    const installed = locatePackage();
    await findBinaries(account);
    const root = join(home, "package");
    const open = await mkdtemp(join(tmpdir(), "tw-cache-"));
    try {
      await chmod(open, 0o755);
      await chmod(home, 0o700);
      await cp(installed, root, { recursive: true, filter: (path) => !/\.so(\.\d+)?$/.test(path) });
      const links = JSON.parse(await readFile(join(root, "native/pg-symlinks.json"), "utf8")) as {
        source: string;
      }[];
      for (const { source } of links) await cp(join(installed, source), join(root, source));
      for (const plain of await plainLibraries(installed)) await cp(plain, plain.replace(installed, root));
      const find = () => findBinaries(account, { root, caches: [join(open, "cache")] });
      const [one, two] = await Promise.all([find(), find()]);
      expect(one).toEqual(two);
      expect(one.postgres.startsWith(open)).toBe(true);
      expect((await find()).postgres).toBe(one.postgres);
      await chmod(join(open, "cache"), 0o777);
      await expect(find()).rejects.toMatchObject({ code: "EMBEDDED_POSTGRES_COPY" });
    } finally {
      await rm(open, { recursive: true });
    }
  });
});

/** Starts a server in this process and stops it after the test. */
async function start(): Promise<EmbeddedPostgres & { crash(): Promise<void> }> {
  const server = await EmbeddedPostgres.start({ dataDir });
  servers.set(server.dataDirectory, server.pid);
  return Object.assign(server, {
    crash: async () => {
      process.kill(server.pid, "SIGKILL");
      await until(() => !isRunning(server.pid));
      server.release();
    },
  });
}

interface Program {
  readonly child: ChildProcess;
  readonly url: string;
  readonly pid: number;
  readonly adopted: boolean;
  readonly data: string;
  readonly uid: number;
}

/** Starts a process that owns the server. */
async function program(as: { uid?: number } = {}): Promise<Program> {
  const identity = as.uid === undefined ? {} : { uid: as.uid, gid: as.uid };
  const child = spawn(process.execPath, ["--conditions=source", PROGRAM, dataDir], {
    ...identity,
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const said = JSON.parse(line) as Omit<Program, "child">;
    servers.set(said.data, said.pid);
    return { ...said, child };
  }
  throw new Error("the program ended without output");
}

/** An account that can run this checkout, unless it is under a private folder. */
async function ordinaryUser(): Promise<number | undefined> {
  const uid = 1000;
  const child = spawn(process.execPath, ["--check", PROGRAM], { uid, gid: uid, cwd: "/", stdio: "ignore" });
  const [code] = await once(child, "exit").catch(() => [1]);
  return code === 0 ? uid : undefined;
}

async function plainLibraries(installed: string): Promise<string[]> {
  const names = [
    "libcrypto.so.1.1",
    "libssl.so.1.1",
    "libxml2.so.2",
    "libxslt.so.1",
    "libz.so.1",
    "liblzma.so.5",
    "libossp-uuid.so.16",
  ];
  const paths = names.map((name) => join(installed, "native/lib", name));
  const present = await Promise.all(
    paths.map((path) =>
      stat(path).then(
        () => true,
        () => false,
      ),
    ),
  );
  return paths.filter((_, index) => present[index]);
}

async function ask(url: string, sql: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<{ x: unknown }>(sql)).rows[0]?.x;
  } finally {
    await client.end();
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(10);
}
