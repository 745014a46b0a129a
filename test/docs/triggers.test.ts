/** Every built-in trigger of the SDK has a sensor and a row in docs/guides/triggers.md. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as sdk from "@tradewind/sdk";
import { describe, expect, it } from "vitest";

/** Base classes of custom triggers. */
const BASES = ["Trigger", "PollTrigger"];
const TRIGGERS = Object.keys(sdk).filter((name) => name.endsWith("Trigger") && !BASES.includes(name));

describe("built-in triggers", () => {
  it("are all in the table of triggers.md", () => {
    const text = readFileSync(join(import.meta.dirname, "../../docs/guides/triggers.md"), "utf8");
    expect(TRIGGERS.length).toBeGreaterThan(10);
    expect(TRIGGERS.filter((name) => !text.includes(`| \`${name}\``))).toEqual([]);
  });

  it("have a sensor of the same name", () => {
    expect(TRIGGERS.filter((name) => !Object.hasOwn(sdk, name.replace(/Trigger$/, "Sensor")))).toEqual([]);
  });
});
