import { describe, expect, test } from "vitest";
import { datedText, occurrences, parseLine, shownText } from "./log-line.ts";
import { allRows, type Filter, filteredRows, type Kind } from "./log-rows.ts";

const stored = (message: string, fields?: object) =>
  JSON.stringify({ t: "2026-01-01T00:00:00.500Z", level: "warn", source: "stdout", message, fields });

describe("parseLine", () => {
  test("keeps what a carriage return left, and shows fields as JSON", () => {
    const line = parseLine(stored("\rprogress 1 %\rprogress 100 %", { rows: 3 }));
    expect(shownText(line)).toBe('progress 100 % {"rows":3}');
    expect(datedText(line)).toBe('2026-01-01T00:00:00.500Z WARN  progress 100 % {"rows":3}');
  });

  test("shows the title of a group without its mark", () => {
    expect(shownText(parseLine(stored("::group::Load files")))).toBe("Load files");
    expect(shownText(parseLine(stored("::endgroup::")))).toBe("");
    expect(shownText(parseLine(stored("a ::group::b")))).toBe("a ::group::b");
  });

  test("shows a line that is not JSON as it is", () => {
    expect(parseLine('{"t":"half')).toMatchObject({ at: null, message: '{"t":"half', level: "warn" });
  });

  test("shows a message of several lines on one row", () => {
    expect(shownText(parseLine(stored("a\nb")))).toBe("a ⏎ b");
  });
});

describe("occurrences", () => {
  test("ignores case only without capitals", () => {
    expect(occurrences("Overflow overflow", "overflow")).toEqual([0, 9]);
    expect(occurrences("Overflow overflow", "Over")).toEqual([0]);
    expect(occurrences("aaaa", "aa")).toEqual([0, 2]);
    expect(occurrences("abc", "")).toEqual([]);
  });
});

describe("rows", () => {
  const [debug, info, error, trigger] = [0, 1, 3, 17];
  const kinds = Uint8Array.from([info, info, error, info, info, info, debug, error, trigger, info]);
  const rowsOf = (shown: Kind[], context: number) => {
    const rows = filteredRows(kinds, { kinds: new Set(shown), source: null }, context);
    return Array.from({ length: rows.count }, (_, row) => rows.at(row));
  };

  test("stand for the hidden lines between those of a level", () => {
    expect(rowsOf(["error"], 0)).toEqual([-2, 2, -4, 7, -2]);
    expect(rowsOf(["trigger"], 0)).toEqual([-8, 8, -1]);
    expect(rowsOf([], 0)).toEqual([-10]);
  });

  test("have lines around, none twice", () => {
    expect(rowsOf(["error"], 1)).toEqual([-1, 1, 2, 3, -2, 6, 7, 8, -1]);
    expect(rowsOf(["error"], 3)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test("are those of a source, and of a level of it", () => {
    const [stdout, stderr] = [1 | (1 << 2), 3 | (2 << 2)];
    const mixed = Uint8Array.from([info, stdout, error, stderr, stdout]);
    const lines = (filter: Filter) => {
      const rows = filteredRows(mixed, filter, 0);
      return Array.from({ length: rows.count }, (_, row) => rows.at(row));
    };
    expect(lines({ kinds: null, source: "stdout" })).toEqual([-1, 1, -2, 4]);
    expect(lines({ kinds: new Set(["error"]), source: "stderr" })).toEqual([-3, 3, -1]);
  });

  test("are found by line, also by a hidden one", () => {
    const rows = filteredRows(kinds, { kinds: new Set<Kind>(["error"]), source: null }, 0);
    expect([0, 1, 2, 3, 6, 7, 9].map((line) => rows.rowOf(line))).toEqual([0, 0, 1, 2, 2, 3, 4]);
    expect(allRows(3).rowOf(9)).toBe(2);
  });
});
