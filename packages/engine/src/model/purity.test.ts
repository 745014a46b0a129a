import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const sources = readdirSync(import.meta.dirname).filter(
  (name) => name.endsWith(".ts") && !name.endsWith(".test.ts"),
);
const textOf = (name: string) => readFileSync(join(import.meta.dirname, name), "utf8");

test("the model imports nothing but itself and the manifest's types", () => {
  expect(sources.length).toBeGreaterThan(15);
  for (const name of sources) {
    for (const [statement, from] of textOf(name).matchAll(/^(?:import|export)\b[^;]*?from "([^"]+)";/gms)) {
      const isOwn = /^\.\/[a-z-]+\.ts$/.test(from!);
      const isManifestType = from === "@tradewind/sdk/manifest" && statement.startsWith("import type");
      expect(isOwn || isManifestType, `${name}: ${statement}`).toBe(true);
    }
  }
});

test("the model knows no clock, no chance and no process", () => {
  for (const name of sources) {
    const code = textOf(name).replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
    expect(code, name).not.toMatch(
      /Date\.now|new Date\(\)|Math\.random|performance\.|process\.|setTimeout|\bawait\b|import\(/,
    );
  }
});
