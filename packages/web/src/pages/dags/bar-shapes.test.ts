import { expect, it } from "vitest";
import { type BarRun, barPaths, runsOf, tookOf, usualOf } from "./bar-shapes.ts";

const run = (state: string, started: number | null, ended: number | null): BarRun => ({
  runId: `${state}-${started}`,
  ...{ state, started, ended, runAfter: started, logicalDate: null },
});

it("reads runs from columns", () => {
  const [first, second] = runsOf(
    {
      run_ids: ["a", "b"],
      states: btoa(String.fromCharCode(2, 1)),
      ...{ run_after: [1, 2], logical_dates: [null, 2], started: [5, null], ended: [9, null] },
    },
    ["queued", "running", "success"],
  );
  expect(first).toEqual({
    runId: "a",
    state: "success",
    started: 5,
    ended: 9,
    runAfter: 1,
    logicalDate: null,
  });
  expect(second).toMatchObject({ state: "running", started: null, logicalDate: 2 });
});

it("measures a run until now while it has not ended", () => {
  expect(tookOf(run("running", 10, null), 30)).toBe(20);
  expect(tookOf(run("success", 10, 15), 30)).toBe(5);
  expect(tookOf(run("queued", null, null), 30)).toBeNull();
});

it("takes the median of successful runs as usual", () => {
  expect(usualOf([run("success", 0, 10), run("success", 0, 30), run("failed", 0, 900)])).toBe(20);
  expect(usualOf([run("success", 0, 10), run("success", 0, 30), run("success", 0, 40)])).toBe(30);
  expect(usualOf([run("running", 0, null)])).toBeNull();
});

it("draws one path per state, right-aligned, with short failures at half height", () => {
  const paths = barPaths([run("success", 0, 100), run("failed", 0, 1), run("success", 0, 50)], {
    ...{ slots: 5, height: 20, now: 0 },
  });
  expect([...paths]).toEqual([
    ["success", "M10 20v-20h4v20zM20 20v-10h4v10z"],
    ["failed", "M15 20v-10h4v10z"],
  ]);
  expect(barPaths([run("success", 0, 1), run("success", 0, 2)], { slots: 1, height: 8, now: 0 }).size).toBe(
    1,
  );
});
