import { describe, expect, test } from "vitest";
import { LogModel, type LogSource } from "./log-model.ts";

/** A log in memory that answers like the server. */
class StoredLog implements LogSource {
  text_ = "";
  isOver = false;
  readonly reads: string[] = [];

  add(...messages: string[]): void {
    for (const message of messages)
      this.text_ += `${JSON.stringify({ t: "2026-01-01T00:00:00.000Z", level: "info", source: "task", message })}\n`;
  }

  async index(after: number, withTail: boolean) {
    const text = this.text_.slice(after);
    const lines = text.split("\n").slice(0, -1);
    const chunk_lines: number[] = [];
    const chunk_starts: number[] = [];
    let start = after;
    for (const [at, line] of lines.entries()) {
      if (at === 0 || start - chunk_starts.at(-1)! >= 65_536) {
        chunk_lines.push(at);
        chunk_starts.push(start);
      }
      start += line.length + 1;
    }
    const kinds = btoa(String.fromCharCode(...lines.map(() => 1)));
    return {
      size: this.text_.length,
      lines: lines.length,
      chunk_lines,
      chunk_starts,
      kinds,
      tail: withTail && chunk_starts.length > 0 ? this.text_.slice(chunk_starts.at(-1)) : null,
      more: false,
      is_over: this.isOver,
    };
  }

  async text(from: number, to: number): Promise<string> {
    this.reads.push(`${from}-${to}`);
    return this.text_.slice(from, to);
  }
}

/** Reads a line as a page does: asks, waits for a change, asks again. */
async function read(model: LogModel, line: number): Promise<string | undefined> {
  const changed = new Promise<void>((done) => {
    const stop = model.subscribe(() => {
      stop();
      done();
    });
  });
  const known = model.line(line);
  if (known !== undefined) return known.message;
  await changed;
  return model.line(line)?.message;
}

describe("LogModel", () => {
  test("reads only the chunks whose lines are shown", async () => {
    const log = new StoredLog();
    log.add(...Array.from({ length: 4_000 }, (_, at) => `line ${at}`));
    const model = new LogModel(log);
    await model.refresh();
    expect(model.lines).toBe(4_000);
    expect(log.reads).toEqual([]);
    expect(await read(model, 3_999)).toBe("line 3999");
    expect(await read(model, 3_990)).toBe("line 3990");
    expect(log.reads).toEqual([]);
    expect(await read(model, 0)).toBe("line 0");
    expect(log.reads).toHaveLength(1);
  });

  test("adds what is written to the last chunk, without reading it again", async () => {
    const log = new StoredLog();
    log.add("a", "b");
    const model = new LogModel(log);
    await model.refresh();
    expect(await read(model, 1)).toBe("b");
    const before = log.text_.length;
    log.add("c");
    log.isOver = true;
    await model.refresh();
    expect(log.reads.at(-1)).toBe(`${before}-${log.text_.length}`);
    expect(await read(model, 2)).toBe("c");
    expect(log.reads).toHaveLength(1);
    expect(model.isOver).toBe(true);
  });

  test("begins new chunks in a log that keeps growing", async () => {
    const log = new StoredLog();
    const model = new LogModel(log);
    for (let part = 0; part < 20; part += 1) {
      log.add(...Array.from({ length: 100 }, (_, at) => `part ${part} line ${at}`));
      await model.refresh();
    }
    expect(await read(model, 1_999)).toBe("part 19 line 99");
    expect(await read(model, 0)).toBe("part 0 line 0");
    expect(await read(model, 1_000)).toBe("part 10 line 0");
    expect(log.reads.length).toBeLessThan(12);
  });

  test("yields a range of lines for copies", async () => {
    const log = new StoredLog();
    log.add(...Array.from({ length: 3_000 }, (_, at) => `line ${at}`));
    const model = new LogModel(log);
    await model.refresh();
    const found = (await Array.fromAsync(model.range(998, 2_001))).flat().map(({ message }) => message);
    expect([found.length, found[0], found.at(-1)]).toEqual([1_003, "line 998", "line 2000"]);
  });

  test("keeps its lines when a reading fails", async () => {
    const log = new StoredLog();
    log.add("a");
    const model = new LogModel(log);
    await model.refresh();
    log.index = () => Promise.reject(new Error("offline"));
    await model.refresh();
    expect(model.error).toEqual(new Error("offline"));
    expect(await read(model, 0)).toBe("a");
  });
});
