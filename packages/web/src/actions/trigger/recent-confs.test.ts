import { expect, it } from "vitest";
import { recentConfs } from "./recent-confs.ts";

it("has each conf once, with its latest use, and none of runs with the defaults", () => {
  const runs = [
    { conf: { b: 2, a: "x" }, run_after: "3" },
    { conf: {}, run_after: "2" },
    { conf: null, run_after: "2" },
    { conf: { a: "x", b: 2 }, run_after: "1" },
    { conf: { a: "y", c: [1] }, run_after: "0" },
  ];
  expect(recentConfs(runs)).toEqual([
    { conf: { b: 2, a: "x" }, at: "3", text: "b=2, a=x" },
    { conf: { a: "y", c: [1] }, at: "0", text: "a=y, c=[1]" },
  ]);
});
