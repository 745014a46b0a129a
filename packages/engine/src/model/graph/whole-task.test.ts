import { expect, it } from "vitest";
import { ALL_TASK_STATES } from "../run/states.ts";
import { wholeState, worstState } from "./whole-task.ts";

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

it.each(ALL_TASK_STATES)("%s alone is the worst state", (state) => {
  expect(worstState([state])).toBe(state);
});

it("agrees with the state of the whole task where all instances have ended", () => {
  const ended = ["success", "skipped", "failed", "upstream_failed"] as const;
  for (let chosen = 1; chosen < 2 ** ended.length; chosen++) {
    const states = ended.filter((_, index) => chosen & (1 << index));
    expect([states, worstState(states)]).toEqual([states, wholeState(states)]);
  }
});

it("puts failures before what is being done, and that before what is still to do", () => {
  expect(worstState(["success", "running", "failed"])).toBe("failed");
  expect(worstState(["success", "scheduled", "running"])).toBe("running");
  expect(worstState(["success", "pending"])).toBe("pending");
});
