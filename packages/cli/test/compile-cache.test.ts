/** Where a command stores compiled code: what is there is executed by the next command of the account. */
import { chmod, chown, mkdir, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { compileCacheFolder } from "../src/compile-cache.ts";
import { runCli } from "./support/standalone-process.ts";

const PLACE = "tradewind/compiled";
let folder: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "tradewind-compiled-")));
  onTestFinished(() => rm(folder, { recursive: true }));
});

describe("a command", () => {
  it.each([
    ["XDG_CACHE_HOME", "", PLACE],
    ["HOME", ".cache", join(".cache", PLACE)],
  ])(
    "stores compiled code below %s, and nothing in the temporary folder",
    async (variable, parent, place) => {
      const temporary = join(folder, "tmp");
      await mkdir(join(folder, parent), { recursive: true });
      await mkdir(temporary);
      const env = { HOME: folder, XDG_CACHE_HOME: undefined, [variable]: folder, TMPDIR: temporary };
      const { code } = await runCli(["version"], { ...env, NODE_COMPILE_CACHE: undefined });
      expect(code).toBe(0);
      expect(await readdir(join(folder, place))).not.toEqual([]);
      expect(await readdir(temporary)).toEqual([]);
    },
  );

  it("works without a folder for compiled code", async () => {
    const env = { HOME: "/proc/none", XDG_CACHE_HOME: undefined, TMPDIR: folder };
    const { code, stdout } = await runCli(["version"], { ...env, NODE_COMPILE_CACHE: undefined });
    expect([code, stdout]).toEqual([0, expect.stringContaining("0.1.0")]);
    expect(await readdir(folder)).toEqual([]);
  });
});

describe.skipIf(process.getuid === undefined)("the folder of compiled code", () => {
  const chosen = () => compileCacheFolder({ XDG_CACHE_HOME: folder });

  it("is created for this account only", () => {
    expect(chosen()).toBe(join(folder, PLACE));
  });

  it.each(["", "tradewind", PLACE])(
    "is not used if others can write to it, or to a folder above it: %j",
    async (at) => {
      await mkdir(join(folder, PLACE), { recursive: true });
      await chmod(join(folder, at), 0o777);
      expect(chosen()).toBeUndefined();
    },
  );

  it("is not used if others can write to it, even if they cannot replace each other's files", async () => {
    await mkdir(join(folder, PLACE), { recursive: true });
    await chmod(join(folder, PLACE), 0o1777);
    expect(chosen()).toBeUndefined();
  });

  it.runIf(process.getuid?.() === 0).each(["", "tradewind", PLACE])(
    "is not used if it, or a folder above it, belongs to another account: %j",
    async (at) => {
      await mkdir(join(folder, PLACE), { recursive: true });
      await chown(join(folder, at), 60_802, 60_802);
      expect(chosen()).toBeUndefined();
    },
  );
});
