import { expect, test } from "vitest";
import type { Report } from "./in-hand.ts";
import { ReportBox } from "./report-box.ts";

const ended = (attempt: string, more: { heir?: string; vacates?: string } = {}): Report => ({
  type: "ended",
  attempt,
  at: 0,
  outcome: { kind: "cancelled" },
  ...more,
});
const heirs = (reports: readonly Report[]) =>
  reports.map((report) => [report.attempt, report.type === "ended" ? report.heir : "starts"]);

test("slots that nobody has inherited go, each once, to those of their lane that come before the end is dealt with", () => {
  const box = new ReportBox();
  box.hear(ended("a", { vacates: "lane" }));
  box.hear(ended("b", { heir: "c" }));
  box.hear(ended("d", { vacates: "lane" }));
  box.hear(ended("e", { vacates: "another" }));
  box.hear(ended("f"));
  expect(["x", "y", "z"].map((attempt) => box.inherits("lane", attempt))).toEqual([true, true, false]);
  expect(box.inherits("nobody's", "z")).toBe(false);
  expect(heirs(box.take())).toEqual([
    ["a", "x"],
    ["b", "c"],
    ["d", "y"],
    ["e", undefined],
    ["f", undefined],
  ]);
  expect(box.inherits("another", "z")).toBe(false);
});

test("none is inherited once a part was taken, for who deals with one end deals with all slots that are free", () => {
  const box = new ReportBox();
  box.hear(ended("a", { vacates: "lane" }));
  box.hear(ended("b", { vacates: "lane" }));
  expect(heirs(box.take(1))).toEqual([["a", undefined]]);
  expect(box.inherits("lane", "x")).toBe(false);
  expect(heirs(box.take())).toEqual([["b", undefined]]);
});
