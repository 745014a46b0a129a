import { type Bar, type Figure, passes } from "./result.ts";
import { digits } from "./statistics.ts";

/** Columns as wide as their widest cell; columns named by their index are right-aligned. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  numbers: ReadonlySet<number>,
): string {
  const widths = head.map((cell, at) => Math.max(cell.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const pad = (cell: string, at: number) =>
    numbers.has(at) ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0);
  const line = (cells: readonly string[]) => cells.map(pad).join("  ").trimEnd();
  return [line(head), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)].join("\n");
}

export function figureTable(figures: readonly Figure[]): string {
  return table(
    ["", "measured", "value", "bar", "", "how"],
    figures.map((figure) => {
      const passed = passes(figure);
      return [
        figure.scenario,
        figure.what,
        `${digits(figure.value)} ${figure.unit}`,
        figure.bar ? barText(figure.bar, figure.unit) : "",
        passed === null ? "" : passed ? "pass" : "FAIL",
        figure.note ?? "",
      ];
    }),
    new Set([2, 3]),
  );
}

function barText(bar: Bar, unit: string): string {
  return "atMost" in bar ? `<= ${digits(bar.atMost)} ${unit}` : `>= ${digits(bar.atLeast)} ${unit}`;
}
