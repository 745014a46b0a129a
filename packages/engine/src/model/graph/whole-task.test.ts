import { expect, it } from "vitest";
import { wholeState } from "./whole-task.ts";

it.each([
  [["success"], "success"],
  [["success", "skipped"], "success"],
  [["skipped"], "skipped"],
  [["success", "failed", "skipped"], "failed"],
  [["success", "upstream_failed"], "upstream_failed"],
  [["upstream_failed", "failed"], "failed"],
  [["running"], "pending"],
  [[], "pending"],
])("a task with instances %j is %s", (states, whole) => {
  expect(wholeState(states)).toBe(whole);
});
