/** The colours of tokens.css in one theme, with or without more contrast. Reads just the syntax that the file uses, and rejects any other. */
import { fromOklch, mixInOklab, type Rgb } from "./color.ts";

export type Theme = "light" | "dark";

const OKLCH = /^oklch\(([\d.]+)% ([\d.]+) ([\d.]+)\)$/;
const MIX = /^color-mix\(in oklab, var\((--[\w-]+)\) ([\d.]+)%, var\((--[\w-]+)\)\)$/;
const SAME = /^var\((--[\w-]+)\)$/;
const BOTH = /^light-dark\((.+\)), (.+\))\)$/;

export function tokenColors(css: string, theme: Theme, hasMoreContrast: boolean): (name: string) => Rgb {
  const sources = new Map([
    ...declarations(css, ":root"),
    ...(hasMoreContrast ? declarations(css, ':root[data-contrast="more"]') : []),
  ]);
  const colors = new Map<string, Rgb>();
  const colorOf = (name: string): Rgb => {
    const known = colors.get(name);
    if (known !== undefined) return known;
    const source = sources.get(name);
    if (source === undefined) throw new Error(`tokens.css has no ${name}`);
    const color = parse(source);
    colors.set(name, color);
    return color;
  };
  const parse = (source: string): Rgb => {
    const both = BOTH.exec(source);
    if (both !== null) return parse(theme === "light" ? both[1]! : both[2]!);
    const same = SAME.exec(source);
    if (same !== null) return colorOf(same[1]!);
    const mix = MIX.exec(source);
    if (mix !== null) return mixInOklab(colorOf(mix[1]!), colorOf(mix[3]!), Number(mix[2]) / 100);
    return parseOklch(source);
  };
  return colorOf;
}

/** Of the rule with this selector, which begins a line. */
function declarations(css: string, selector: string): [name: string, value: string][] {
  const start = css.indexOf(`\n${selector} {`);
  if (start < 0) throw new Error(`tokens.css has no rule for ${selector}`);
  const rule = css.slice(start, css.indexOf("\n}", start));
  return [...rule.matchAll(/^\s*(--[\w-]+):\s*([^;]+);/gm)].map(([, name, value]) => [name!, value!]);
}

export function parseOklch(source: string): Rgb {
  const parts = OKLCH.exec(source);
  if (parts === null) throw new Error(`unknown colour: ${source}`);
  return fromOklch(Number(parts[1]) / 100, Number(parts[2]), Number(parts[3]));
}
