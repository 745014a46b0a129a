import { expect, it } from "vitest";
import { blocksOf, spansOf } from "./markdown-blocks.ts";

it("splits a message into blocks", () => {
  const text =
    "# Check\nFirst line\nsecond line\n\n- one\n- **two**\n1. first\n2. second\n```\n- code\n```\nlast";
  expect(blocksOf(text)).toEqual([
    { kind: "heading", text: "Check" },
    { kind: "paragraph", text: "First line\nsecond line" },
    { kind: "list", isNumbered: false, items: ["one", "**two**"] },
    { kind: "list", isNumbered: true, items: ["first", "second"] },
    { kind: "code", text: "- code" },
    { kind: "paragraph", text: "last" },
  ]);
  expect(blocksOf("```\nopen")).toEqual([{ kind: "code", text: "open" }]);
});

it("finds code, emphasis and links", () => {
  expect(spansOf("run **r1** of `etl`, see [docs](https://a.example/b) or https://c.example.")).toEqual([
    { kind: "text", text: "run " },
    { kind: "strong", text: "r1" },
    { kind: "text", text: " of " },
    { kind: "code", text: "etl" },
    { kind: "text", text: ", see " },
    { kind: "link", text: "docs", href: "https://a.example/b" },
    { kind: "text", text: " or " },
    { kind: "link", text: "https://c.example", href: "https://c.example" },
    { kind: "text", text: "." },
  ]);
});

it.each(["[x](javascript:alert(1))", "<b>bold</b>", "2 * 3 * 4", "a ** b", "data:text/html,x"])(
  "leaves %j as text",
  (text) => {
    expect(spansOf(text)).toEqual([{ kind: "text", text }]);
  },
);

it("reads 20,000 characters of unfinished marks at once", () => {
  for (const mark of ["*", "**", "`", "[", "[a](", "https://"]) {
    const before = performance.now();
    spansOf(`${mark}a `.repeat(20_000 / (mark.length + 2)));
    blocksOf(`${mark}\n`.repeat(10_000));
    expect(performance.now() - before).toBeLessThan(2_000);
  }
});
