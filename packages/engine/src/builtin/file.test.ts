import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callOf, expectPromptStop, startTrigger, TestHost } from "../../test/support/trigger-host.ts";
import { processIdentity } from "../service/process-identity.ts";
import { globMatcher, literalPrefix } from "./glob.ts";
import { checkBuiltin } from "./index.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tw-file-trigger-"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const KIND = "tradewind.file";
const args = (path: string, intervalMs = 20) => ({ path, intervalMs });

describe("a file", () => {
  it("fires when it appears, not before", async () => {
    const host = new TestHost();
    const path = join(folder, "plain.csv");
    const pending = (await startTrigger(KIND, args(path), host)).begin();
    await host.morePolls(3);
    expect(pending.hasFired).toBe(false);
    await writeFile(path, "12345");
    expect(await pending.outcome).toMatchObject({ kind: "event", payload: { path, size: 5 } });
    expect(await checkBuiltin(callOf(KIND, args(path)), host)).toMatchObject({ path, size: 5 });
  });

  it("fires at once if the folder can be watched, long before the next poll", async () => {
    const host = new TestHost();
    const trigger = await startTrigger(KIND, args(join(folder, "watched"), 3_600_000), host);
    const { outcome } = trigger.begin();
    await host.morePolls(1);
    await writeFile(join(folder, "watched"), "");
    expect(await outcome).toMatchObject({ kind: "event" });
  });

  it("shares its folder's watch, and is not woken by a file that does not match", async () => {
    const hosts = [new TestHost(), new TestHost()];
    const names = ["left", "right"];
    const pending = [];
    for (const [at, host] of hosts.entries()) {
      const trigger = await startTrigger(KIND, args(join(folder, `${names[at]}-*`), 3_600_000), host);
      pending.push(trigger.begin());
      if (host.polls === 0) await host.morePolls(1);
    }
    await writeFile(join(folder, "left-1"), "");
    expect(await pending[0]?.outcome).toMatchObject({ payload: { path: join(folder, "left-1") } });
    expect(hosts[1]?.polls).toBe(1);
    await writeFile(join(folder, "right-1"), "");
    expect(await pending[1]?.outcome).toMatchObject({ payload: { path: join(folder, "right-1") } });
  });

  it("returns the first match by name, and no folder", async () => {
    const inner = join(folder, "matches");
    await mkdir(join(inner, "sales-0.csv"), { recursive: true });
    for (const name of ["sales-3.csv", "sales-2.csv", "sales-1.txt"]) await writeFile(join(inner, name), "");
    const trigger = await startTrigger(KIND, args(join(inner, "sales-?.csv")), new TestHost());
    expect(await trigger.next()).toMatchObject({ payload: { path: join(inner, "sales-2.csv") } });
  });

  it("survives a missing folder, and finds the file when the folder returns", async () => {
    const host = new TestHost();
    const away = join(folder, "mount");
    const pending = (await startTrigger(KIND, args(join(away, "x*")), host)).begin();
    await host.morePolls(2);
    expect(pending.hasFired).toBe(false);
    await mkdir(join(folder, "elsewhere"));
    await writeFile(join(folder, "elsewhere/x1"), "");
    await rename(join(folder, "elsewhere"), away);
    expect(await pending.outcome).toMatchObject({ payload: { path: join(away, "x1") } });
  });

  it("fires with every file, identified by path, size and modification time", async () => {
    const inner = join(folder, "each");
    await mkdir(inner);
    for (const name of ["a.csv", "b.csv"]) await writeFile(join(inner, name), name);
    const started = async () => startTrigger(KIND, args(join(inner, "*.csv")), new TestHost());
    const trigger = await started();
    const both = [await trigger.next(), await trigger.next()];
    expect(both).toMatchObject(["a.csv", "b.csv"].map((name) => ({ payload: { path: join(inner, name) } })));
    // A second start of the trigger finds the same files.
    const again = await started();
    expect([await again.next(), await again.next()]).toEqual(both);
    await writeFile(join(inner, "a.csv"), "longer than before");
    const changed = await trigger.next();
    expect(changed).toMatchObject({ payload: { path: join(inner, "a.csv"), size: 18 } });
    expect((changed as { key: string }).key).not.toBe((both[0] as { key: string }).key);
  });

  it("fires again after the file was changed", async () => {
    const host = new TestHost();
    const path = join(folder, "again");
    await writeFile(path, "1");
    const trigger = await startTrigger(KIND, args(path), host);
    expect(await trigger.next()).toMatchObject({ payload: { size: 1 } });
    const pending = trigger.begin();
    await host.morePolls(2);
    expect(pending.hasFired).toBe(false);
    await writeFile(path, "22");
    expect(await pending.outcome).toMatchObject({ payload: { size: 2 } });
  });

  it("rejects a pattern in a folder's name at once", async () => {
    const host = new TestHost();
    const trigger = await startTrigger(KIND, args(join(folder, "a*/b.csv")), host);
    await expect(trigger.next()).rejects.toMatchObject({ code: "TRIGGER_ARGS_INVALID" });
    expect(host.polls).toBe(0);
  });

  it("stops at the abort within 100 ms", { retry: 2 }, async () => {
    const host = new TestHost();
    const trigger = await startTrigger(KIND, args(join(folder, "never"), 3_600_000), host);
    const { outcome } = trigger.begin();
    await host.morePolls(1);
    await expectPromptStop(trigger, outcome);
  });
});

describe("a process", () => {
  const start = () => spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });

  it("fires when it has ended, not before", async () => {
    const child = start();
    await once(child, "spawn");
    const host = new TestHost();
    const pid = child.pid as number;
    const pending = (await startTrigger("tradewind.process", { pid, startedAt: null }, host)).begin();
    await host.morePolls(1);
    expect(pending.hasFired).toBe(false);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await pending.outcome).toMatchObject({ payload: { pid, endedAt: expect.stringMatching(/Z$/) } });
  });

  it("treats another process with the same id as the end of the awaited one", async () => {
    const child = start();
    await once(child, "spawn");
    const startedAt = new Date().toISOString();
    const call = (at: string) => callOf("tradewind.process", { pid: child.pid as number, startedAt: at });
    try {
      expect(await checkBuiltin(call(startedAt), new TestHost())).toBeUndefined();
      const earlier = new Date(Date.parse(startedAt) - 60_000).toISOString();
      expect(await checkBuiltin(call(earlier), new TestHost())).toMatchObject({ pid: child.pid });
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  });

  it("has ended if it does not exist, and stops at the abort while it waits", {
    retry: 2,
  }, async () => {
    const child = start();
    await once(child, "spawn");
    const host = new TestHost();
    const trigger = await startTrigger("tradewind.process", { pid: process.pid, startedAt: null }, host);
    const { outcome } = trigger.begin();
    await host.morePolls(1);
    await expectPromptStop(trigger, outcome);

    child.kill("SIGKILL");
    await once(child, "exit");
    expect(processIdentity(child.pid as number)).toBeNull();
    const gone = callOf("tradewind.process", { pid: child.pid as number, startedAt: null });
    expect(await checkBuiltin(gone, new TestHost())).toMatchObject({ pid: child.pid });
  });

  it("rejects an invalid process id at once", async () => {
    await expect(
      startTrigger("tradewind.process", { pid: -1, startedAt: null }, new TestHost()),
    ).rejects.toMatchObject({
      code: "TRIGGER_ARGS_INVALID",
    });
  });
});

describe("patterns", () => {
  it("match the whole name, with * and ? only", () => {
    const isMatch = (pattern: string, text: string) => globMatcher(pattern)(text);
    expect(isMatch("a*c", "abbc")).toBe(true);
    expect(isMatch("a*c", "abbcd")).toBe(false);
    expect(isMatch("*.parquet", "x/y.parquet")).toBe(true);
    expect(isMatch("a?c", "abc")).toBe(true);
    expect(isMatch("a?c", "ac")).toBe(false);
    expect(isMatch("a.c", "abc")).toBe(false);
    expect(isMatch("[a]", "a")).toBe(false);
    expect(isMatch("**", "")).toBe(true);
    expect(literalPrefix("sales/2026-*.csv")).toBe("sales/2026-");
  });

  it("take at most pattern length times text length", () => {
    const text = "a".repeat(20_000);
    const begun = performance.now();
    expect(globMatcher(`${"*a".repeat(20)}*b`)(text)).toBe(false);
    expect(performance.now() - begun).toBeLessThan(1_000);
  });
});
