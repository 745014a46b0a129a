import { expect, it } from "vitest";
import { wrapLine } from "./wrap.ts";

it("breaks a sentence between words and indents further lines", () => {
  expect(wrapLine("  because it waits for a file", 16)).toEqual([
    "  because it",
    "      waits for",
    "      a file",
  ]);
});

it("breaks nothing without a width, or if the line fits", () => {
  const text = "  because  it waits";
  expect(wrapLine(text, undefined)).toEqual([text]);
  expect(wrapLine(text, text.length)).toEqual([text]);
});

it("breaks neither commands in backticks nor instants", () => {
  expect(wrapLine("since 2026-11-18 17:05:07.779Z, see `tradewind tasks logs etl r1`.", 20)).toEqual([
    "since",
    "    2026-11-18 17:05:07.779Z,",
    "    see",
    "    `tradewind tasks logs etl r1`.",
  ]);
});

it("does not count colours", () => {
  const red = "\u001b[31mred\u001b[39m";
  expect(wrapLine(`${red} ${red} ${red}`, 7)).toEqual([`${red} ${red}`, `    ${red}`]);
});
