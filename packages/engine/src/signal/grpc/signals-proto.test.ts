import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";

it("uses only syntax that protoc 3.12 accepts: proto3 without optional, no edition", async () => {
  const text = await readFile(join(import.meta.dirname, "signals.proto"), "utf8");
  const lines = text.split("\n").map((line) => line.replace(/\/\/.*/, "").trim());
  expect(lines.filter((line) => /^(edition|syntax)\b/.test(line))).toEqual(['syntax = "proto3";']);
  expect(lines.filter((line) => /\boptional\s/.test(line))).toEqual([]);
});
