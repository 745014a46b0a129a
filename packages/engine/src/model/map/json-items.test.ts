import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ItemCut, JsonItems } from "./json-items.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Splits the text at any byte, also within a character. */
function piecesOf(text: string, cuts: readonly number[]): Uint8Array[] {
  const bytes = encoder.encode(text);
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...places, bytes.length].map((end, nth) => bytes.subarray(nth === 0 ? 0 : places[nth - 1], end));
}

function read(text: string, cuts: readonly number[]): JsonItems {
  const items = new JsonItems();
  for (const piece of piecesOf(text, cuts)) items.push(piece);
  return items;
}

/** Reads like a file reader: from the last known place. */
function cutOut(text: string, items: JsonItems, index: number, cuts: readonly number[]): string {
  const near = items.before(index);
  const knife = new ItemCut(index - near.index);
  let found = "";
  const rest = decoder.decode(encoder.encode(text).subarray(near.offset));
  for (const piece of piecesOf(rest, cuts)) {
    const { from, isEnd, to } = knife.consume(piece);
    found += decoder.decode(piece.subarray(from, to), { stream: true });
    if (isEnd) return found + decoder.decode();
  }
  throw new Error("the item has no end");
}

const cuts = fc.array(fc.nat({ max: 10_000 }), { maxLength: 8 });
const spaced = fc.constantFrom(undefined, 1, "\t");

describe("JsonItems", () => {
  test("counts the items of any list and finds each of them", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 12 }), spaced, cuts, (list, indent, where) => {
        const text = JSON.stringify(list, null, indent);
        const items = read(text, where);
        expect([items.count, items.isWhole, items.isTooDeep]).toEqual([list.length, true, false]);
        const plain = JSON.parse(text) as unknown[];
        for (const index of list.keys())
          expect(JSON.parse(cutOut(text, items, index, where))).toEqual(plain[index]);
      }),
    );
  });

  test("reports any other value as not a list", () => {
    const value = fc.jsonValue().filter((each) => !Array.isArray(each));
    fc.assert(
      fc.property(value, cuts, (each, where) => {
        const items = read(JSON.stringify(each), where);
        expect([items.count, items.isWhole]).toEqual([null, true]);
      }),
    );
  });

  test("remembers a bounded number of places and finds the items between them", () => {
    const list = Array.from({ length: 300_000 }, (_, n) => n);
    const text = JSON.stringify(list);
    const items = read(text, []);
    expect(items.count).toBe(300_000);
    expect(items.before(299_999).index % 8).toBe(0);
    for (const index of [0, 1, 7, 8, 65_536, 131_077, 299_999])
      expect(cutOut(text, items, index, [])).toBe(`${index}`);
  });

  test("detects a text that is incomplete or nested too deeply", () => {
    expect(read('[1,"a', []).isWhole).toBe(false);
    expect(read("[1,[2]", []).isWhole).toBe(false);
    expect(new JsonItems().isWhole).toBe(false);
    expect(read("[".repeat(1_001) + "]".repeat(1_001), []).isTooDeep).toBe(true);
  });
});
