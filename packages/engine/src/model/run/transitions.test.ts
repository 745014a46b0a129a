import { expect, test } from "vitest";
import { runStateDiagram, taskStateDiagram } from "../graph/diagram.ts";
import {
  ALL_RUN_STATES,
  ALL_TASK_STATES,
  FAILED,
  FINISHED,
  isFinished,
  OCCUPYING,
  SUCCEEDED,
  UNFINISHED,
} from "./states.ts";
import { mayMove, mayMoveRun, RUN_MOVES, TASK_MOVES } from "./transitions.ts";

test("the states and their sets are those of the specification", () => {
  expect(ALL_TASK_STATES).toHaveLength(13);
  expect(FINISHED).toEqual(new Set(["success", "failed", "skipped", "upstream_failed", "removed"]));
  expect(UNFINISHED.size + FINISHED.size).toBe(13);
  expect(FAILED).toEqual(new Set(["failed", "upstream_failed"]));
  expect(SUCCEEDED).toEqual(new Set(["success", "skipped"]));
  expect(OCCUPYING).toEqual(new Set(["queued", "running", "restarting"]));
  expect(ALL_RUN_STATES).toEqual(["queued", "running", "success", "failed"]);
});

test("a finished instance can only return to `none`, a finished run or removed instance cannot change", () => {
  for (const from of ALL_TASK_STATES) {
    const ways = ALL_TASK_STATES.filter((to) => mayMove(from, to));
    if (isFinished(from)) expect(ways, from).toEqual(from === "removed" ? [] : ["pending"]);
    else expect(ways.length, from).toBeGreaterThan(0);
    expect(ways).not.toContain(from);
  }
  expect(ALL_RUN_STATES.filter((to) => mayMoveRun("success", to) || mayMoveRun("failed", to))).toEqual([]);
});

test("only admission occupies slots, and a try begins nowhere else", () => {
  const intoQueued = ALL_TASK_STATES.filter((from) => mayMove(from, "queued"));
  expect(intoQueued).toEqual(["scheduled"]);
  expect(ALL_TASK_STATES.filter((from) => mayMove(from, "running"))).toEqual(["queued"]);
});

test("every state can be reached, and every unfinished state can end", () => {
  const reach = (from: readonly string[], table: Readonly<Record<string, object>>) => {
    const seen = new Set(from);
    for (const state of seen) for (const to of Object.keys(table[state]!)) seen.add(to);
    return seen;
  };
  // Only an edit removes an instance: the run continues with a version without the task.
  const reached = reach(["pending"], TASK_MOVES);
  expect(ALL_TASK_STATES.filter((state) => !reached.has(state))).toEqual(["removed"]);
  for (const state of UNFINISHED) expect(reach([state], TASK_MOVES), state).toContain("failed");
  expect(reach(["queued"], RUN_MOVES).size).toBe(4);
});

test("the diagrams show every move of the table", () => {
  const tasks = taskStateDiagram();
  expect(tasks).toMatch(/^stateDiagram-v2\n {2}\[\*\] --> pending\n/);
  for (const [from, targets] of Object.entries(TASK_MOVES)) {
    for (const to of Object.keys(targets)) expect(tasks).toContain(`  ${from} --> ${to}: `);
  }
  expect(runStateDiagram()).toBe(`stateDiagram-v2
  [*] --> queued
  queued --> running: scheduler · it is due and the DAG may have one more active run
  running --> queued: scheduler · it only waits for earlier runs, and an earlier date needs its slot
  running --> success: scheduler · all tasks ended, no leaf failed
  running --> failed: scheduler · all tasks ended and a leaf failed, or no task can run
  success --> [*]
  failed --> [*]
  note right of queued
    clear · any state to queued
    mark success · any state to success
    mark failed or cancel · any state to failed
  end note
`);
});
