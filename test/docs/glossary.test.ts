/** The glossary names every state of a task instance. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ALL_TASK_STATES } from "@tradewind/engine/model";
import { expect, it } from "vitest";

it("glossary.md lists the states of a task instance", () => {
  const text = readFileSync(join(import.meta.dirname, "../../docs/glossary.md"), "utf8");
  const section = text.split("## States of a task instance\n")[1] ?? "";
  const listed = [...section.matchAll(/^\| ([a-z_, ]+) \|/gm)].flatMap(([, names]) => names!.split(", "));
  expect(listed.filter((name) => name !== "state").sort()).toEqual([...ALL_TASK_STATES].sort());
});
