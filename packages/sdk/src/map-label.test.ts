import { describe, expect, test } from "vitest";
import { cross, type DagBuilder, dag } from "./index.ts";
import { PROGRAM } from "./program.ts";

const ITEMS = [{ name: "a", place: { city: "Rome" }, size: 1 }];

function labelOf(build: (d: DagBuilder) => void) {
  return dag("labelled", build)[PROGRAM].describe().maps![0]!.label;
}

describe("a label becomes words and fields", () => {
  test("of the item itself, of fields of it, of members of a pair", () => {
    expect(labelOf((d) => void d.map("m", { over: ["x"], label: (item) => item }, (x) => x))).toEqual([[]]);
    expect(
      labelOf((d) => {
        const list = d.task("list", () => ITEMS);
        d.map("m", { over: list, label: ({ name, place }) => `${name} in ${place.city}` }, (x) => x.size);
      }),
    ).toEqual([["name"], " in ", ["place", "city"]]);
    expect(
      labelOf((d) => {
        const over = cross(["a"], [1, 2]);
        d.mapGroup("g", { over, label: ([letter, n]) => `${letter}${n}` }, (g) => g.task("t", () => 1));
      }),
    ).toEqual([["0"], ["1"]]);
  });

  test("without one, the manifest is what it was", () => {
    const manifest = dag("plain", (d) => void d.map("m", { over: [1] }, (n) => n))[PROGRAM].describe();
    expect(manifest.maps![0]).not.toHaveProperty("label");
  });
});

test("what is no label is refused when the file is loaded, with what to write", () => {
  const refused = (label: unknown) => () =>
    labelOf((d) => void d.map("m", { over: ITEMS, label: label as () => string }, () => 1));
  expect(refused("name")).toThrow(
    /task "m": label must be a function of the item, got "name"; write it like/,
  );
  expect(refused(() => 7)).toThrow(/label must return text, or a field of the item, got 7/);
  expect(refused(() => "same")).toThrow(/label reads nothing of the item/);
  expect(refused((item: { name: string }) => item.name.toUpperCase())).toThrow(
    /can only put fields .* not a function/,
  );
  expect(refused((item: { size: number }) => `${item.size * 2}`)).toThrow(/a field is not a number yet/);
  expect(refused((item: string[]) => [...item].join())).toThrow(/one by one/);
  // @ts-expect-error A field is no text that could be changed.
  expect(() => labelOf((d) => void d.map("m", { over: ["x"], label: (x) => x.trim() }, (x) => x))).toThrow();
});
