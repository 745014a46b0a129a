import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type LogChunk, readLog, tailLog } from "./task-log.ts";

let dir: string;
let path: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "tradewind-log-"));
  path = join(dir, "a.log");
});
afterEach(async () => await rm(dir, { recursive: true }));

describe("readLog", () => {
  test("a missing log is empty", async () => {
    expect(await readLog(path)).toEqual({ lines: [], nextOffset: 0, end: true });
  });

  test("in pieces of any size it returns every line once, and never half a line", async () => {
    const messages = Array.from({ length: 30 }, (_, at) => `line ${at} ${"ü".repeat(at)}`);
    await writeFile(path, messages.map(line).join(""));
    for (const limit of [1, 7, 64, 100, 1_000, 1_000_000]) {
      const found: string[] = [];
      let chunk: LogChunk = { lines: [], nextOffset: 0, end: false };
      while (!chunk.end) {
        chunk = await readLog(path, { offset: chunk.nextOffset, limit });
        found.push(...chunk.lines.map(({ message }) => message));
      }
      expect(found).toEqual(messages);
    }
  });

  test("leaves an unfinished line for later", async () => {
    await writeFile(path, line("one") + line("two").slice(0, -5));
    const chunk = await readLog(path);
    expect(texts(chunk)).toEqual(["one"]);
    await appendFile(path, line("two").slice(-5));
    expect(texts(await readLog(path, { offset: chunk.nextOffset }))).toEqual(["two"]);
  });

  test("an offset inside a line is moved to the next line, an offset past the end finds nothing", async () => {
    await writeFile(path, line("one") + line("two"));
    expect(texts(await readLog(path, { offset: 3 }))).toEqual(["two"]);
    expect(texts(await readLog(path, { offset: line("one").length }))).toEqual(["two"]);
    expect(await readLog(path, { offset: 9_999 })).toEqual({ lines: [], nextOffset: 9_999, end: true });
  });
});

describe("tailLog", () => {
  test("follows from before the file exists until the attempt has finished", async () => {
    const finished = new AbortController();
    const tail = tailLog(path, { finished: finished.signal });
    const first = tail.next();
    await writeFile(path, line("one"));
    expect(texts((await first).value as LogChunk)).toEqual(["one"]);
    const second = tail.next();
    await appendFile(path, line("two"));
    expect(texts((await second).value as LogChunk)).toEqual(["two"]);
    await appendFile(path, line("three"));
    finished.abort();
    expect(texts((await tail.next()).value as LogChunk)).toEqual(["three"]);
    expect(await tail.next()).toEqual({ done: true, value: undefined });
  });

  test("ends at once when its reader stops", async () => {
    const stop = new AbortController();
    const tail = tailLog(path, { finished: new AbortController().signal, stop: stop.signal });
    const next = tail.next();
    stop.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });
});

function line(message: string): string {
  return `${JSON.stringify({ t: new Date(0).toISOString(), level: "info", source: "stdout", message })}\n`;
}

function texts(chunk: LogChunk): string[] {
  return chunk.lines.map(({ message }) => message);
}
