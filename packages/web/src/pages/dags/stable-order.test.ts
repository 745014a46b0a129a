import { expect, it } from "vitest";
import { inOrder } from "./stable-order.ts";

it("keeps known rows where they are, and adds new ones at the end", () => {
  const rows = (...keys: string[]) => keys.map((key) => ({ key }));
  const ordered = (now: string[], order: string[]) =>
    inOrder(rows(...now), order, ({ key }) => key).map(({ key }) => key);
  expect(ordered(["c", "a", "b"], ["a", "b", "c"])).toEqual(["a", "b", "c"]);
  expect(ordered(["d", "c", "a"], ["a", "b", "c"])).toEqual(["a", "c", "d"]);
  expect(ordered(["b", "a"], [])).toEqual(["b", "a"]);
});
