import { expect, test } from "vitest";
import type { DagRun, RunGroup } from "../client/resources.ts";
import type { Terminal } from "../terminal.ts";
import { runColumns, runFields } from "./run-view.ts";

const run = (facts: Partial<DagRun>) =>
  ({ state: "running", max_tries: null, dag_versions: [], parent: null, ...facts }) as unknown as DagRun;
const group = (facts: Partial<RunGroup>): RunGroup => ({
  ...{
    group_id: "g",
    map_index: -1,
    state: "waiting",
    try_number: 1,
    max_tries: 4,
    retry_at: "2027-01-04T00:05:00Z",
  },
  ...facts,
});

test("shows each group with a failed try, and the start of the next try", () => {
  const text = (of: RunGroup, state = "running") =>
    runFields(run({ state, groups: [of] })).find(([name]) => name === "group g")?.[1];
  expect(text(group({}))).toMatch(/^try 1 of 4 failed, next try at 2027-01-04 00:05:00Z \(/);
  // Cancelled between two tries.
  expect(text(group({}), "failed")).toBe("try 1 of 4 failed");
  expect(text(group({ state: "open", try_number: 2, retry_at: null }))).toBe("try 2 of 4");
  expect(text(group({ state: "failed", try_number: 4, retry_at: null }))).toBe("try 4 of 4: failed");
  expect(text(group({ state: "success", retry_at: null }))).toBeUndefined();
});

test("shows the time since the start of a running run", () => {
  const took = (facts: Partial<DagRun>) => runFields(run(facts)).find(([name]) => name === "took")?.[1];
  const start_date = new Date(Date.now() - 3 * 3_600_000).toISOString();
  expect(took({ start_date, duration: null })).toBe("3 h so far");
  expect(took({ state: "success", start_date, duration: 12 })).toBe("12.0 s");
});

test("shows the first ten items of a mapped group with a failed try", () => {
  const groups = Array.from({ length: 12 }, (_, index) =>
    group({ map_index: index, state: "failed", try_number: 4, retry_at: null }),
  );
  const shown = runFields(run({ groups })).filter(([name]) => name.startsWith("group"));
  expect(shown).toHaveLength(11);
  expect(shown[1]).toEqual(["group g[1]", "try 4 of 4: failed"]);
  expect(shown[10]).toEqual(["groups", "and 2 more"]);
});

test("distinguishes the child runs of one map in the list of runs", () => {
  const task = { dag_id: "all", dag_run_id: "r1", task_id: "sub", is_sub_dag: true };
  const runs = [
    run({ parent: { ...task, map_index: 3, rendered_map_index: "1/0" } }),
    run({ parent: { ...task, map_index: -1, rendered_map_index: null } }),
  ];
  const column = runColumns({} as Terminal, runs).find(({ title }) => title === "PARENT");
  expect(runs.map((each) => column?.value(each))).toEqual(["all r1 sub[3] 1/0", "all r1 sub"]);
});
