import { describe, expect, test } from "vitest";
import { cross, type DagBuilder, dag } from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

const ITEMS = [{ name: "a", place: { city: "Rome" }, size: 1 }];

function labelOf(build: (d: DagBuilder) => void) {
  return dag("labelled", build)[PROGRAM].describe().maps![0]!.label;
}

describe("a label", () => {
  test("consists of the item, of its fields, or of members of a pair", () => {
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

  test("accepts signs in words and calls that make text", () => {
    const of = (label: unknown) =>
      labelOf((d) => void d.map("m", { over: ITEMS, label: label as () => string }, () => 1));
    // Why not? "a" || 'b'
    const what = "a ?? b";
    expect(of((x: { name: string }) => `is it ${x.name}? yes && no ${"{"}${`}${what}`}`)).toEqual([
      "is it ",
      ["name"],
      "? yes && no {}a ?? b",
    ]);
    expect(of((x: { name: string; size: number }) => [x.name, String(x.size)].join(" || "))).toEqual([
      ["name"],
      " || ",
      ["size"],
    ]);
    const { label } = {
      label({ place: { city } }: (typeof ITEMS)[0]) {
        return `in ${city?.toString()}`;
      },
    };
    expect(of(label)).toEqual(["in ", ["place", "city"]]);
  });

  test("leaves the manifest of a map without a label unchanged", () => {
    const manifest = dag("plain", (d) => void d.map("m", { over: [1] }, (n) => n))[PROGRAM].describe();
    expect(manifest.maps![0]).not.toHaveProperty("label");
  });
});

test("rejects an invalid label with the remedy when the file is loaded", () => {
  const refused = (label: unknown) => () =>
    labelOf((d) => void d.map("m", { over: ITEMS, label: label as () => string }, () => 1));
  expect(refused("name")).toThrow(
    /task "m": label must be a function of the item, got "name"; write it like/,
  );
  expect(refused(() => 7)).toThrow(/label must return text, or a field of the item, got 7/);
  expect(refused(() => "same")).toThrow(/label reads no field of the item/);
  expect(refused((item: { name: string }) => item.name.toUpperCase())).toThrow(
    /can only join fields .* not a function/,
  );
  expect(refused((item: { size: number }) => `${item.size * 2}`)).toThrow(/a field is not a number yet/);
  expect(refused((item: string[]) => [...item].join())).toThrow(/one by one/);
  // The recorder cannot see these: the source text of the function shows them.
  type Item = { n: number; name: string; day: string; nick?: string };
  const nameOf = (text: unknown) => String(text);
  for (const [label, part] of [
    [(x: Item) => (x.n ? x.name : x.day), "?"],
    [(x: Item) => `${x.nick ?? x.name}`, "??"],
    [(x: Item) => (x.n === 1 ? "big" : "small"), "==="],
    [(x: Item) => `in ${x.nick || "none"}`, "||"],
    [(x: Item) => x.nick && x.name, "&&"],
    [({ nick = "none" }: Item) => nick, "="],
    [({ name, ...rest }: Item) => `${name} ${rest.day}`, "..."],
    [(x: Item) => nameOf(x.name), "nameOf("],
    [nameOf.bind(null), "[native code]"],
    // Built from text, because a compiler would rewrite the function.
    [new Function("x", "if (x.n) return x.name; return x.day"), "if"],
    [new Function("x", "return x.n?.5:x.day"), "?"],
  ] as const)
    expect(refused(label), part).toThrow(
      `label has "${part}" in it: it is called once, before the items exist`,
    );
  expect(refused((x: Record<string, string>) => `${x["a"]} ${x[x["kind"]!]}`)).toThrow(
    /uses a field for something else/,
  );
  // @ts-expect-error A field is no text that could be changed.
  expect(() => labelOf((d) => void d.map("m", { over: ["x"], label: (x) => x.trim() }, (x) => x))).toThrow();
});
