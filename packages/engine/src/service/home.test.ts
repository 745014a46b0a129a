import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SecretBox } from "../secret/secret-box.ts";
import { ensureToken, findStandalone, type Home, lockHome, openHome } from "./home.ts";

const PROGRAM = join(import.meta.dirname, "../../test/support/lock-program.ts");
const children: ChildProcess[] = [];
let folder: string;
let home: Home;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tw-home-"));
  home = await openHome(join(folder, "a", ".tradewind"));
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await rm(folder, { recursive: true });
});

describe("openHome", () => {
  it("creates folders for the owner only, and can be called again", async () => {
    await openHome(home.path);
    for (const each of [home.path, home.bundles, home.logs])
      expect((await stat(each)).mode & 0o777).toBe(0o700);
  });

  it("names a folder that it cannot use", async () => {
    await writeFile(join(folder, "file"), "");
    await expect(openHome(join(folder, "file", "home"))).rejects.toMatchObject({ code: "HOME_UNUSABLE" });
    await expect(openHome(join(folder, "file"))).rejects.toMatchObject({ code: "HOME_UNUSABLE" });
  });

  it.runIf(process.platform === "linux")(
    "does not retry forever where no folder can be created",
    async () => {
      for (const path of ["/proc/tradewind", "/proc/tradewind/deeper"]) {
        await expect(openHome(path)).rejects.toMatchObject({
          code: "HOME_UNUSABLE",
          message: expect.stringContaining("--home"),
        });
      }
    },
  );
});

describe("ensureToken", () => {
  it("creates a token of 256 bits once, readable by the owner only", async () => {
    const tokens = await Promise.all(Array.from({ length: 10 }, () => ensureToken(home)));
    expect(new Set(tokens).size).toBe(1);
    expect(tokens[0]).toMatch(/^tw_[A-Za-z0-9_-]{43}$/);
    expect(await readFile(home.token, "utf8")).toBe(tokens[0]);
    await chmod(home.token, 0o644);
    expect(await ensureToken(home)).toBe(tokens[0]);
    expect((await stat(home.token)).mode & 0o777).toBe(0o600);
    expect(await readdir(home.path)).toEqual(expect.not.arrayContaining([expect.stringContaining("token.")]));
  });

  it("rejects a file with other contents", async () => {
    await writeFile(home.token, "");
    await expect(ensureToken(home)).rejects.toMatchObject({ code: "TOKEN_FILE_INVALID" });
  });
});

describe("lockHome", () => {
  it("rejects a second standalone and names the first, until the first is gone", async () => {
    const first = await program();
    expect(first.state).toBe("locked");
    const refused = await lockHome(home).catch((error) => error);
    expect(refused).toMatchObject({ code: "HOME_IN_USE" });
    expect(refused.message).toContain(`process ${first.child.pid}`);
    expect(refused.message).toContain("http://127.0.0.1:8080");
    expect(await findStandalone(home)).toEqual({ pid: first.child.pid, url: "http://127.0.0.1:8080" });

    first.child.kill("SIGKILL");
    await once(first.child, "exit");
    expect(await findStandalone(home)).toBeUndefined();
    const lock = await lockHome(home);
    await lock.release();
  });

  it("ignores a process that reuses the process id of a dead holder", async () => {
    await mkdir(home.lock);
    // The parent of this process is alive, but did not create this entry.
    await writeFile(join(home.lock, `${process.ppid}-0123456789abcdef`), "{}");
    const lock = await lockHome(home);
    expect(await readdir(home.lock)).toHaveLength(1);
    await lock.release();
  });

  it("admits exactly one of many after one was killed, and all read the same token and key", async () => {
    const dead = await program();
    dead.child.kill("SIGKILL");
    await once(dead.child, "exit");
    const all = await Promise.all(Array.from({ length: 5 }, () => program()));
    const winners = all.filter((each) => each.state === "locked");
    expect(winners).toHaveLength(1);
    expect(all.filter((each) => each.state === "HOME_IN_USE")).toHaveLength(4);
    expect(winners[0]?.token).toBe(dead.token);
    const box = await SecretBox.load(home.secretKey);
    expect(box.open(Buffer.from(dead.sealed ?? "", "base64"), "test")).toBe("secret");
  });

  it("rejects a second standalone in the same process too", async () => {
    const lock = await lockHome(home);
    await expect(lockHome(home)).rejects.toMatchObject({ code: "HOME_IN_USE" });
    await lock.release();
    await (await lockHome(home)).release();
  });
});

interface Program {
  readonly child: ChildProcess;
  readonly state: string;
  readonly token?: string;
  readonly sealed?: string;
}

async function program(): Promise<Program> {
  const args = ["--conditions=source", PROGRAM, home.path, "http://127.0.0.1:8080"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    return { child, ...(JSON.parse(line) as Omit<Program, "child">) };
  }
  throw new Error("the program ended without a word");
}
