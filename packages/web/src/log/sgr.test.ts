import { describe, expect, test } from "vitest";
import { stripEscapes, styledPieces } from "./sgr.ts";

const E = "\u001b";

describe("styledPieces", () => {
  test("splits a line where its style changes", () => {
    expect(styledPieces(`a ${E}[1;32mOK${E}[0m b`)).toEqual([
      { text: "a ", style: {} },
      { text: "OK", style: { bold: true, color: 2 } },
      { text: " b", style: {} },
    ]);
  });

  test("keeps other attributes when one is reset", () => {
    const [, , last] = styledPieces(`${E}[4m${E}[91mx${E}[24my${E}[39mz`);
    expect(last).toEqual({ text: "z", style: {} });
    expect(styledPieces(`${E}[4;91mx`)).toEqual([{ text: "x", style: { underline: true, color: 9 } }]);
  });

  test("reads colours of the cube, of the grey ramp and of three bytes", () => {
    const colorOf = (code: string) => styledPieces(`${E}[${code}mx`)[0]!.style;
    expect(colorOf("38;5;196")).toEqual({ color: "#ff0000" });
    expect(colorOf("38;5;232")).toEqual({ color: "#080808" });
    expect(colorOf("48;2;1;2;300")).toEqual({ background: "#0102ff" });
    expect(colorOf("38;5;9;1")).toEqual({ color: 9, bold: true });
  });

  test("drops other sequences, titles and links", () => {
    const line = `${E}[2K${E}]8;;https://example.com${E}\\link${E}]8;;${E}\\ ${E}[?25lend`;
    expect(stripEscapes(line)).toBe("link end");
    expect(
      styledPieces(line)
        .map(({ text }) => text)
        .join(""),
    ).toBe("link end");
  });

  test("leaves a line without escapes alone", () => {
    expect(styledPieces("[1m plain")).toEqual([{ text: "[1m plain", style: {} }]);
  });
});
