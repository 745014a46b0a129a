/** The grid of a DAG: one byte per task and run. */
import { beforeAll, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

const START = Date.parse("2026-03-01T00:00:00Z");
const at = (hour: number) => new Date(START + hour * 3_600_000);

beforeAll(async () => {
  tw = await Installation.open();
  const group = (groupId: string, parent: string | null = null) => ({ groupId, parent, docs: null });
  await tw.addDag(manifestOf("etl", [{ taskId: "extract.old" }, { taskId: "report" }]));
  const first = await tw.addRun("etl", {
    runId: "r0",
    state: "failed",
    runAfter: at(0),
    startedAt: at(0),
    endedAt: at(1),
  });
  await tw.addInstance(first, "extract.old", { state: "success", tryNumber: 1 });
  await tw.addInstance(first, "report", { state: "failed", tryNumber: 3 });
  await tw.addDag(
    manifestOf(
      "etl",
      [
        { taskId: "report", upstream: ["extract.inner.file", "extract.last"] },
        {
          taskId: "extract.inner.file",
          group: "extract.inner",
          upstream: ["start"],
          map: "extract.inner.file",
        },
        { taskId: "extract.last", group: "extract", upstream: ["start"] },
        { taskId: "start" },
      ],
      {
        groups: [group("extract"), group("extract.inner", "extract")],
        maps: [
          {
            mapId: "extract.inner.file",
            parent: null,
            over: { kind: "list", items: [1, 2, 3] },
            limit: null,
          },
        ],
      },
    ),
  );
  const second = await tw.addRun("etl", {
    runId: "r1",
    state: "success",
    runAfter: at(1),
    startedAt: at(1),
    endedAt: at(2),
  });
  for (const taskId of ["start", "extract.last", "report"])
    await tw.addInstance(second, taskId, { state: "success", tryNumber: 1 });
  await tw.addInstance(second, "extract.inner.file", { state: "skipped" });
  const third = await tw.addRun("etl", { runId: "r2", state: "running", runAfter: at(2), startedAt: at(2) });
  await tw.addInstance(third, "start", { state: "success", tryNumber: 2 });
  await tw.sql(
    "INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length) VALUES ($1, 'extract.inner.file', -1, 0, 3)",
    [third],
  );
  for (const [mapIndex, state] of ["success", "running", "success"].entries())
    await tw.addInstance(third, "extract.inner.file", { mapIndex, state, tryNumber: mapIndex + 1 });
  await tw.sql("UPDATE dag_run SET note = 'look', run_type = 'scheduled' WHERE id = $1", [third]);
  await tw.addRun("etl", { runId: "r3", state: "queued", runAfter: at(3) });
  await tw.addDag(manifestOf("unused", [{ taskId: "a" }]));
});

const grid = async (query = "", dag = "etl") => (await tw.call("GET", `/ui/dags/${dag}/grid${query}`)).json();
const read = (column: string | null) => (column === null ? null : [...Buffer.from(column, "base64")]);

it("shows one byte per task and run, removed tasks last", async () => {
  const shown = await grid();
  expect(shown).toMatchObject({ version: 2, removed: ["extract.old"], next_before: null });
  const ids = [...shown.tasks.map((task: { task_id: string }) => task.task_id), ...shown.removed];
  const named = (states: string) =>
    Object.fromEntries((read(states) ?? []).map((byte, index) => [ids[index], shown.task_states[byte]]));
  expect(
    shown.runs.map((run: { run_id: string; states: string }) => [run.run_id, named(run.states)]),
  ).toEqual([
    [
      "r0",
      {
        start: "none",
        "extract.inner.file": "none",
        "extract.last": "none",
        report: "failed",
        "extract.old": "success",
      },
    ],
    [
      "r1",
      {
        start: "success",
        "extract.inner.file": "skipped",
        "extract.last": "success",
        report: "success",
        "extract.old": "none",
      },
    ],
    [
      "r2",
      {
        start: "success",
        "extract.inner.file": "running",
        "extract.last": "none",
        report: "none",
        "extract.old": "none",
      },
    ],
    [
      "r3",
      {
        start: "none",
        "extract.inner.file": "none",
        "extract.last": "none",
        report: "none",
        "extract.old": "none",
      },
    ],
  ]);
});

it("names the upstream tasks by position", async () => {
  // start, extract.inner.file, extract.last, report
  expect((await grid("?runs=1")).edges).toEqual({ from: [0, 0, 1, 2], to: [1, 2, 3, 3] });
  expect((await grid("", "unused")).edges).toEqual({ from: [], to: [] });
});

it("keeps the tasks of a group together", async () => {
  const { groups, tasks } = await grid("?runs=1");
  expect(tasks).toEqual([
    { task_id: "start", group: null, operator: "task", is_mapped: false, role: "work" },
    {
      task_id: "extract.inner.file",
      group: "extract.inner",
      operator: "task",
      is_mapped: true,
      role: "work",
    },
    { task_id: "extract.last", group: "extract", operator: "task", is_mapped: false, role: "work" },
    { task_id: "report", group: null, operator: "task", is_mapped: false, role: "work" },
  ]);
  expect(groups).toEqual([
    { group_id: "extract", parent: null, is_mapped: false },
    { group_id: "extract.inner", parent: "extract", is_mapped: false },
  ]);
});

it("shows tries, the instances of mapped tasks, versions and notes", async () => {
  const { runs, task_states: legend } = await grid();
  expect(runs.map((run: { tries: string | null }) => read(run.tries))).toEqual([
    [0, 0, 0, 3, 1],
    null,
    [2, 3, 0, 0, 0],
    null,
  ]);
  expect(runs.map((run: { version: number; has_note: boolean }) => [run.version, run.has_note])).toEqual([
    [1, false],
    [2, false],
    [2, true],
    [2, false],
  ]);
  expect(runs.map((run: { mapped: unknown[] }) => run.mapped.length)).toEqual([0, 0, 1, 0]);
  const [{ at: place, counts }] = runs[2].mapped;
  expect([place, new Map(counts.map(([byte, count]: [number, number]) => [legend[byte], count]))]).toEqual([
    1,
    new Map([
      ["running", 1],
      ["success", 2],
    ]),
  ]);
});

it("continues with earlier runs, and filters by state and type", async () => {
  const ids = (shown: { runs: { run_id: string }[] }) => shown.runs.map(({ run_id }) => run_id);
  const latest = await grid("?runs=3");
  expect(ids(latest)).toEqual(["r1", "r2", "r3"]);
  const earlier = await grid(`?runs=3&before=${latest.next_before}`);
  expect([ids(earlier), earlier.next_before, earlier.removed]).toEqual([["r0"], null, ["extract.old"]]);
  expect(ids(await grid("?state=failed"))).toEqual(["r0"]);
  expect(ids(await grid("?state=failed&state=running"))).toEqual(["r0", "r2"]);
  expect(ids(await grid("?run_type=scheduled"))).toEqual(["r2"]);
});

it("returns the column of one run, as in the grid", async () => {
  const { runs } = await grid();
  const column = (runId: string) => tw.call("GET", `/ui/dags/etl/grid/runs/${runId}`);
  expect((await column("r0")).json()).toEqual({
    version: 2,
    task_count: 4,
    removed: ["extract.old"],
    run: runs[0],
  });
  const current = (await column("r2")).json();
  expect(current).toMatchObject({ task_count: 4, removed: [] });
  expect(read(current.run.states)).toEqual(read(runs[2].states)?.slice(0, 4));
  expect((await column("r9")).json()).toMatchObject({ code: "NOT_FOUND" });
});

it("answers for a DAG without runs, and rejects an unknown DAG and an invalid cursor", async () => {
  expect(await grid("", "unused")).toMatchObject({ runs: [], tasks: [{ task_id: "a" }], next_before: null });
  expect(await grid("", "nobody")).toMatchObject({ status: 404, code: "NOT_FOUND" });
  expect(await grid("?before=x")).toMatchObject({ status: 422 });
});
