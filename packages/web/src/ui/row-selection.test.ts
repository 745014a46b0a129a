import { describe, expect, it } from "vitest";
import { toggled } from "./row-selection.ts";

const KEYS = ["a", "b", "c", "d", "e"];
const after = (before: string[], at: string, from: string | null) =>
  [...toggled(new Set(before), KEYS, KEYS.indexOf(at), from)].sort().join("");

describe("a toggled row", () => {
  it("is selected, or no longer", () => {
    expect(after([], "b", null)).toBe("b");
    expect(after(["a", "b"], "b", null)).toBe("a");
  });

  it("gives its new state to all rows since the one before it, in both directions", () => {
    expect(after(["b"], "d", "b")).toBe("bcd");
    expect(after(["d"], "b", "d")).toBe("bcd");
    expect(after(["a", "b", "c", "d"], "c", "a")).toBe("d");
  });

  it("is alone if the row before it has left the list", () => {
    expect(after(["z"], "b", "z")).toBe("bz");
  });
});
