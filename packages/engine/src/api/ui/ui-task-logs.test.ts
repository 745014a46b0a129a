import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;
let run: number;
const LOG = "/ui/dags/etl/runs/r1/task-instances/a/log";

function line(level: string, source: string, message: string, second = 0): string {
  const t = `2026-01-01T00:00:0${second}.000Z`;
  return `${JSON.stringify({ t, level, source, message })}\n`;
}

async function write(file: string, text: string): Promise<void> {
  const path = `${tw.logsDir}/etl/${run}/a/-1/${file}`;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("etl", [{ taskId: "a" }]));
  run = await tw.addRun("etl", { runId: "r1" });
  await tw.addInstance(run, "a", { state: "running", tryNumber: 3 });
  await write(
    "1-x.log",
    `${line("info", "task", "Grüße\n2", 1)}${line("error", "stderr", 'say "no"', 1)}{"t":"half`,
  );
  await write("1-x.trigger.log", line("debug", "engine", "looks", 2));
  await write("1-y.log", line("warn", "stdout", "grüße again", 3));
});

const get = async (path: string) => (await tw.call("GET", path)).json();

describe("the index of a log", () => {
  test("has the level and source of each line, in the order of attempts and triggers", async () => {
    const index = await get(`${LOG}/1`);
    expect([...Buffer.from(index.kinds, "base64")]).toEqual([1, 3 | (2 << 2), (3 << 2) | 16, 2 | (1 << 2)]);
    expect(index).toMatchObject({ lines: 4, more: false, is_over: true, chunk_lines: [0, 2, 3] });
  });

  test("leads to the text of each chunk, without the half line of a dead writer", async () => {
    const { chunk_starts: starts, size } = await get(`${LOG}/1`);
    const texts: string[] = [];
    for (const [at, from] of starts.entries()) {
      const to = starts[at + 1] ?? size;
      texts.push((await tw.call("GET", `${LOG}/1/text?from=${from}&to=${to}`)).body);
    }
    expect(texts.map((text) => text.split("\n").length - 1)).toEqual([2, 1, 1]);
    expect(texts.join("")).not.toContain("half");
    expect((await get(`${LOG}/1?tail=true`)).tail).toBe(texts[2]);
    expect(texts[2]).toContain("grüße again");
  });

  test("continues where an earlier answer ended", async () => {
    await write("2-x.log", line("info", "task", "first") + line("info", "task", "second").slice(0, 20));
    const first = await get(`${LOG}/2`);
    expect(first.lines).toBe(1);
    await appendFile(
      `${tw.logsDir}/etl/${run}/a/-1/2-x.log`,
      line("info", "task", "second").slice(20) + line("error", "task", "third"),
    );
    const rest = await get(`${LOG}/2?after=${first.size}`);
    expect(rest).toMatchObject({ lines: 2, chunk_lines: [0], chunk_starts: [first.size] });
    expect([...Buffer.from(rest.kinds, "base64")]).toEqual([1, 3]);
  });

  test("marks the lines that begin and end a group, but none of the engine", async () => {
    await write(
      "2-x.log",
      line("info", "task", "::group::Load") +
        line("warn", "stderr", "in ::group:: it") +
        line("info", "stdout", "::endgroup::") +
        line("info", "engine", "::group::"),
    );
    const { kinds } = await get(`${LOG}/2`);
    expect([...Buffer.from(kinds, "base64")]).toEqual([
      1 | 32,
      2 | (2 << 2),
      1 | (1 << 2) | 64,
      1 | (3 << 2),
    ]);
  });

  test("divides a large log into chunks of whole lines that cover it", async () => {
    const text = Array.from({ length: 20_000 }, (_, at) =>
      line("info", "task", `line ${at} ${"x".repeat(at % 97)}`),
    );
    await write("3-x.log", text.join(""));
    const index = await get(`${LOG}/3`);
    expect(index).toMatchObject({ lines: 20_000, is_over: false, size: text.join("").length });
    for (const at of [0, 1, 17, index.chunk_starts.length - 1]) {
      const from = index.chunk_starts[at];
      const { body } = await tw.call(
        "GET",
        `${LOG}/3/text?from=${from}&to=${index.chunk_starts[at + 1] ?? index.size}`,
      );
      const first = index.chunk_lines[at];
      expect(body).toBe(text.slice(first, index.chunk_lines[at + 1] ?? 20_000).join(""));
    }
  });
});

describe("the search in a log", () => {
  test("finds lines by number in all parts, in both cases without capitals", async () => {
    expect(await get(`${LOG}/1/search?q=gr%C3%BC%C3%9Fe`)).toEqual({ total: 2, lines: [0, 3] });
    expect(await get(`${LOG}/1/search?q=Gr%C3%BC`)).toEqual({ total: 1, lines: [0] });
    expect(await get(`${LOG}/1/search?q=${encodeURIComponent('"no"')}`)).toEqual({ total: 1, lines: [1] });
  });

  test("does not find the names and values before the message", async () => {
    for (const word of ["stderr", "level", "2026-01", "message"])
      expect(await get(`${LOG}/1/search?q=${word}`)).toEqual({ total: 0, lines: [] });
  });

  test("counts a line once, and lines beyond the first megabyte", async () => {
    const { lines, total } = await get(`${LOG}/3/search?q=line%20199`);
    const expected = Array.from({ length: 20_000 }, (_, at) => at).filter((at) => `${at}`.startsWith("199"));
    expect({ lines, total }).toEqual({ lines: expected, total: expected.length });
  });

  test("rejects an unknown try, and finds nothing for an empty text", async () => {
    expect((await tw.call("GET", `${LOG}/9/search?q=x`)).statusCode).toBe(404);
    expect((await tw.call("GET", `${LOG}/1/search`)).json()).toEqual({ total: 0, lines: [] });
  });
});
