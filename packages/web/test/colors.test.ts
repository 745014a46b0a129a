/** Proves the colours of tokens.css, in light and dark, with usual and more contrast: states stay apart for every kind of vision, glyphs and texts are readable. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { INK, type StateLook, TASK_LOOKS } from "../src/state/states.ts";
import { contrast, deltaE2000, type Rgb, seenWith, toLab, type Vision } from "./support/color.ts";
import { parseOklch, type Theme, tokenColors } from "./support/color-tokens.ts";

const CSS = readFileSync(new URL("../src/styles/tokens.css", import.meta.url), "utf8");
const THEMES: readonly (readonly [Theme, contrast: string])[] = [
  ["light", "usual"],
  ["dark", "usual"],
  ["light", "more"],
  ["dark", "more"],
];
const VISIONS: readonly Vision[] = ["normal", "deutan", "protan", "tritan"];
const looks = Object.values(TASK_LOOKS);

/**
 * Every fill of a state, once. States that share one differ by their glyph, and mean nearly the same. The colour of pending and
 * removed is excused: they are never filled, and their outline with a dash in it differs from every fill in form.
 */
const FILLS = [
  ...new Set([
    ...looks.map(({ color }) => color).filter((color) => color !== "--s-pending"),
    "--s-success-soft",
    "--s-skipped-soft",
  ]),
];

const pairs = <Value>(values: readonly Value[]): [Value, Value][] =>
  values.flatMap((one, at) => values.slice(at + 1).map((other): [Value, Value] => [one, other]));

/** A colour and its softer shade are the same state. */
const areOneState = (one: string, other: string) => one.replace("-soft", "") === other.replace("-soft", "");

describe.each(THEMES)("colours in the %s theme with %s contrast", (theme, wanted) => {
  const hasMore = wanted === "more";
  const color = tokenColors(CSS, theme, hasMore);

  it.each(VISIONS)("keeps the colours of states apart in %s vision", (vision) => {
    const close = pairs(FILLS)
      .filter(([one, other]) => !areOneState(one, other))
      .map(([one, other]) => {
        const [a, b] = [one, other].map((name) => toLab(seenWith(vision, color(name))));
        return { pair: `${one} and ${other}`, distance: deltaE2000(a!, b!) };
      })
      .filter(({ distance }) => distance <= 10);
    expect(close).toEqual([]);
  });

  it("draws every glyph with a contrast of 3 to 1", () => {
    const faint = looks
      .map((look) => ({ look: look.label, ratio: contrast(...glyphAndGround(look, color)) }))
      .filter(({ ratio }) => ratio < 3);
    expect(faint).toEqual([]);
  });

  it(`writes every text with a contrast of ${hasMore ? 7 : 4.5} to 1`, () => {
    const faint = TEXTS.flatMap(([text, ...grounds]) =>
      grounds.map((ground) => ({ text, ground, ratio: contrast(color(text), color(ground)) })),
    ).filter(({ ratio }) => ratio < (hasMore ? 7 : 4.5));
    expect(faint).toEqual([]);
  });

  it.runIf(hasMore)("draws lines and states with a contrast of 3 to 1", () => {
    // Skipped in dense views is excused: it is the ground of a glyph or a text.
    const faint = ["--line", "--line-strong", "--s-pending", ...FILLS]
      .filter((name) => name !== "--s-skipped-soft")
      .map((name) => ({ name, ratio: contrast(color(name), color("--surface")) }))
      .filter(({ ratio }) => ratio < 3);
    expect(faint).toEqual([]);
  });
});

it("computes ΔE2000 as the published test data", () => {
  // Sharma, Wu and Dalal 2005, pairs 1, 19, 25 and 34.
  expect(deltaE2000([50, 2.6772, -79.7751], [50, 0, -82.7485])).toBeCloseTo(2.0425, 4);
  expect(deltaE2000([50, 2.5, 0], [50, 3.2592, 0.335])).toBeCloseTo(1, 4);
  expect(deltaE2000([60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387])).toBeCloseTo(1.2644, 4);
  expect(deltaE2000([2.0776, 0.0795, -1.135], [0.9033, -0.0636, -0.5514])).toBeCloseTo(0.9082, 4);
});

it("names states that share a colour with different glyphs or outlines", () => {
  const alike = pairs(looks).filter(
    ([one, other]) =>
      one.color === other.color && one.glyph === other.glyph && one.isOutlined === other.isOutlined,
  );
  // Both are outlines with a dash: neither has been started, and a removed task has no later state.
  expect(alike.map((pair) => pair.map(({ label }) => label))).toEqual([["Pending", "Removed"]]);
});

/** The surfaces on which each text is written. */
const SURFACES = ["--bg", "--surface", "--raised", "--hover"] as const;
const SOFT = ["--accent-soft", "--danger-soft", "--warn-soft"] as const;
const TEXTS: readonly (readonly [string, ...string[]])[] = [
  ["--text", ...SURFACES, ...SOFT],
  ["--muted", ...SURFACES, ...SOFT],
  ["--faint", ...SURFACES, ...SOFT],
  ["--accent", ...SURFACES, ...SOFT],
  ["--danger", ...SURFACES, ...SOFT],
  ["--warn", ...SURFACES, ...SOFT],
  ["--wait", ...SURFACES],
  ["--on-accent", "--accent"],
  ["--text", "--s-skipped-soft", "--diff-added", "--diff-added-text"],
  ["--code-string", ...SURFACES],
  ["--code-number", ...SURFACES],
];

function glyphAndGround(look: StateLook, color: (name: string) => Rgb): [Rgb, Rgb] {
  return look.isOutlined === true
    ? [color(look.color), color("--surface")]
    : [parseOklch(INK[look.ink]), color(look.color)];
}
