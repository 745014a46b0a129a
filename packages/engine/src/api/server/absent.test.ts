/** Resources below an unknown DAG, run or task return 404, not an empty list. */
import { beforeAll, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("daily", [{ taskId: "a" }]));
  const run = await tw.addRun("daily", { runId: "r1", state: "success" });
  await tw.addInstance(run, "a", { state: "success" });
});

const PRESENT: Readonly<Record<string, string>> = { dag_id: "daily", dag_run_id: "r1", task_id: "a" };
const NUMBERS =
  /number|index|^(approval|asset|asset_alias|backfill|event_log|import_error|job|deadline|delivery|trigger|worker)_id$|^version$/;

/** A webhook may have any name; `mapIndex` requires a query. */
const EXCEPT = /\/webhooks\/|\/mapIndex$/;

test("returns 404 for every GET below an unknown object", async () => {
  const paths = tw.app.swagger().paths as Record<string, { readonly get?: unknown }>;
  const answers: Record<string, number> = {};
  for (const [path, methods] of Object.entries(paths)) {
    if (methods.get === undefined || EXCEPT.test(path)) continue;
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    for (const [at, name] of names.entries()) {
      if (names.slice(0, at).some((before) => PRESENT[before] === undefined)) break;
      let position = 0;
      const url = path.replace(/\{(\w+)\}/g, (_, each: string) =>
        position++ === at ? (NUMBERS.test(name) ? "4711" : "none") : (PRESENT[each] ?? "1"),
      );
      answers[url] = (await tw.call("GET", url)).statusCode;
    }
  }
  expect(Object.keys(answers).length).toBeGreaterThan(60);
  expect(Object.entries(answers).filter(([, status]) => status !== 404)).toEqual([]);
});

test("returns an empty list for an existing task", async () => {
  for (const path of ["xcomEntries", "listMapped"]) {
    const response = await tw.call("GET", `/dags/daily/dagRuns/r1/taskInstances/a/${path}?map_index=3`);
    expect(response.statusCode, path).toBe(200);
  }
});
