import { describe, expect, it } from "vitest";
import { plainLine, plainText, Terminal } from "./terminal.ts";

function terminal(env: NodeJS.ProcessEnv, isTTY: boolean, columns: number | undefined = 40) {
  const written = { stdout: "", stderr: "" };
  const sink = (name: "stdout" | "stderr") => ({
    isTTY,
    columns,
    write: (text: string) => (written[name] += text),
  });
  return { written, terminal: new Terminal({ stdout: sink("stdout"), stderr: sink("stderr") }, env) };
}

describe("colour", () => {
  it.each([
    [{}, true, true],
    [{}, false, false],
    [{ NO_COLOR: "1" }, true, false],
    [{ NO_COLOR: "" }, true, true],
    [{ FORCE_COLOR: "1" }, false, true],
    [{ FORCE_COLOR: "0" }, true, false],
    [{ NO_COLOR: "1", FORCE_COLOR: "1" }, true, false],
    [{ TERM: "dumb" }, true, false],
  ] as const)("with %j and terminal %s, colours are %s", (env, isTTY, expected) => {
    expect(terminal({ ...env }, isTTY).terminal.colour("stdout")).toBe(expected);
  });

  it("--color overrides the environment", () => {
    const { terminal: t } = terminal({ NO_COLOR: "1" }, false);
    t.chooseColour("always");
    expect(t.paint("red", "x")).toBe("\u001b[31mx\u001b[39m");
    t.chooseColour("never");
    expect(t.paint("red", "x")).toBe("x");
  });
});

it("treats a terminal of 0 columns as one of unknown width", () => {
  expect(terminal({}, true).terminal.width).toBe(40);
  expect(terminal({}, false).terminal.width).toBeUndefined();
  const unknown = terminal({}, true, 0);
  expect(unknown.terminal.width).toBe(80);
  unknown.terminal.status("working");
  expect(unknown.written.stderr).toContain("working");
});

it("replaces a status line on a terminal and never writes it elsewhere", () => {
  const live = terminal({}, true);
  live.terminal.status("working");
  live.terminal.note("done");
  expect(live.written.stderr).toBe("\r\u001b[2Kworking\r\u001b[2Kdone\n");
  const piped = terminal({}, false);
  piped.terminal.status("working");
  expect(piped.written).toEqual({ stdout: "", stderr: "" });
});

it("keeps only colours of foreign text", () => {
  const hostile = "\u001b]0;title\u0007a\u001b[31mred\u001b[0m\u001b[2J\u001b[1Ab\rc";
  expect(plainText(hostile, true)).toBe("a\u001b[31mred\u001b[0mbc");
  expect(plainText(hostile, false)).toBe("aredbc");
  expect(plainLine("one\ntwo\u0000")).toBe("one two ");
});
