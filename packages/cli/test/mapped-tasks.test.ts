/** Commands about mapped instances, against a real server with rows written by the test. */
import type { MapManifest } from "@tradewind/sdk/manifest";
import { beforeAll, expect, it } from "vitest";
import { type Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

const LONG = `fa${"r".repeat(60)}`;

let server: Installation;
let run: number;
let tw: ServedInstallation["tw"];

const map = (mapId: string, parent: string | null): MapManifest => ({
  mapId,
  parent,
  over: { kind: "list", items: [1] },
  limit: null,
});

beforeAll(async () => {
  ({ server, tw } = await servedInstallation());
  const tasks = [
    { taskId: "load", map: "load" },
    { taskId: "each.work", map: "each.work" },
    { taskId: "odd", map: "odd" },
    { taskId: "end", upstream: ["each.work"] },
    { taskId: "list" },
    { taskId: "late.a", map: "late", upstream: ["list"] },
    { taskId: "late.b", map: "late", upstream: ["late.a"] },
  ];
  const late = { ...map("late", null), over: { kind: "output", taskId: "list" } as const };
  const maps = [map("load", null), map("each", null), map("each.work", "each"), map("odd", null), late];
  await server.addDag(manifestOf("maps", tasks, { maps }));
  await server.addJob("scheduler");
  run = await server.addRun("maps", { runId: "r1" });
  for (const [mapIndex, state] of ["success", "failed", "pending"].entries())
    await server.addInstance(run, "load", { mapIndex, state, tryNumber: state === "pending" ? 0 : 1 });
  for (const mapIndex of [0, 1]) await server.addInstance(run, "each.work", { mapIndex, state: "success" });
  // The list of item 1 is empty: the instance that stands for its items is skipped, and so are later tasks.
  await server.addInstance(run, "each.work", { mapIndex: -3, state: "skipped" });
  await server.addInstance(run, "end", { state: "skipped" });
  await server.sql("UPDATE task_instance SET reason = 'mapped over an empty list' WHERE map_index = -3");
  await server.addInstance(run, "odd", { state: "upstream_failed" });
  const reason = 'MAP_UNUSABLE: the output of "list" is an object, but a map needs a list';
  await server.sql("UPDATE task_instance SET reason = $1 WHERE task_id = 'odd'", [reason]);
  await server.sql(
    `INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length)
     VALUES ($1, 'load', -1, 0, 3), ($1, 'each', -1, 0, 3), ($1, 'each.work', 2, 0, 1), ($1, 'each.work', 0, 1, 1)`,
    [run],
  );
  await server.sql("INSERT INTO map_label VALUES ($1, 'load', 1, 'south'), ($1, 'load', 2, $2)", [run, LONG]);
});

it("shows indexes with labels or paths, and accepts each of them", async () => {
  const { stdout } = await tw("tasks", "list", "maps", "r1");
  expect(stdout).toMatch(/^load\[0\] +success/m);
  expect(stdout).toMatch(/^load\[1\] +south +failed/m);
  expect(stdout).toMatch(/^load\[2\] +far{37}… +pending/m);
  expect(stdout).toMatch(/^each\.work\[0\] +2\/0 +success/m);
  expect((await tw("tasks", "list", "maps", "r1", "--json")).stdout).toContain(LONG);
  const cleared = async (task: string, which: string) =>
    (await tw("tasks", "clear", "maps", "r1", task, "--map-index", which, "--dry-run")).stderr;
  expect(await cleared("load", "south")).toMatch(/Would rerun: load\[1\] south\./);
  expect(await cleared("each.work", "0/0")).toMatch(/Would rerun: each\.work\[1\] 0\/0\./);
  const why = await tw("tasks", "why", "maps", "r1", "load", "--map-index", "south");
  expect(why.stdout).toMatch(/^load\[1\] south is failed\n +because try 1 failed/);
  expect(why.stderr).toContain("`tradewind tasks logs maps r1 load --map-index 1`");
});

it("names instances in the same way in a dry run of `runs clear` and in `tasks mark`", async () => {
  const { stderr } = await tw("runs", "clear", "maps", "r1", "--dry-run", "--only-failed");
  expect(stderr).toContain("Would rerun 2 tasks: load[1] south, odd.");
  const marked = await tw("tasks", "mark", "maps", "r1", "load", "failed", "--map-index", "1", "--yes");
  expect(marked.stderr).toContain("Task load[1] south of r1 marked as failed.");
});

it("shows the mapped instance that started a run", async () => {
  const child = await server.addRun("maps", { runId: "child" });
  await server.sql(
    "UPDATE dag_run SET parent_run_id = $2, parent_task_id = 'load', parent_map_index = 1 WHERE id = $1",
    [child, run],
  );
  expect((await tw("runs", "list", "maps")).stdout).toMatch(/^maps +child .* maps r1 load\[1\] south$/m);
  expect((await tw("runs", "show", "maps", "child")).stdout).toMatch(
    /^started by +task load\[1\] south of run r1 of maps$/m,
  );
});

it("explains the effect of an empty nested list, and accepts the instance that stands for its items", async () => {
  const empty = "each.work[1/*] is skipped\n";
  expect((await tw("tasks", "why", "maps", "r1", "end")).stdout).toBe(
    `end is skipped\n  because ${empty}    because it is mapped over an empty list [MAP_EMPTY]\n`,
  );
  expect((await tw("tasks", "why", "maps", "r1", "each.work", "--map-index", "1/*")).stdout).toBe(
    `${empty}  because it is mapped over an empty list [MAP_EMPTY]\n`,
  );
  const marked = await tw(
    "tasks",
    "mark",
    "maps",
    "r1",
    "each.work",
    "failed",
    "--map-index",
    "1/*",
    "--yes",
  );
  expect(marked.stderr).toMatch(/each\.work\[1\/\*\] of r1 marked as failed/);
});

it("counts the instances of a map by state, and lists them if the given one does not exist", async () => {
  const { stdout } = await tw("tasks", "why", "maps", "r1", "load");
  expect(stdout).toBe(
    "load has 3 instances: 1 failed, 1 pending, 1 success\n" +
      "  load[1] south is failed: It has ended: failed. [FINISHED]\n" +
      `  load[2] ${LONG} is not started: Nothing blocks it: the scheduler is about to queue it. [READY]\n`,
  );
  const json = JSON.parse((await tw("tasks", "why", "maps", "r1", "load", "--json")).stdout);
  expect(json.instances).toContainEqual({ state: "failed", count: 1 });
  for (const argv of [["why"], ["logs"], ["clear"]]) {
    const answer = await tw("tasks", ...argv, "maps", "r1", "load", "--map-index", "9");
    expect(answer.code, argv[0]).not.toBe(0);
    expect(answer.stderr, argv[0]).toMatch(/has no instance "9": there are 0 to 2/);
  }
  expect((await tw("tasks", "logs", "maps", "r1", "load")).stderr).toMatch(
    /^error: the task load has 3 mapped instances: choose one of them\. \[MAP_INDEX_REQUIRED\]\n.*--map-index <which> \(map index, path.*\n +INDEX +LABEL +STATE\n +0 .*\n +1 +south +failed\n/,
  );
});

it("explains the invalid list of a map that could not start", async () => {
  const { stdout } = await tw("tasks", "why", "maps", "r1", "odd");
  expect(stdout).toMatch(
    /^odd is upstream_failed\n +because MAP_UNUSABLE: the output of "list" is an object/,
  );
});

it("names the failure before a map that could not start, and for an instance the failure in its own item", async () => {
  const ended = await server.addRun("maps", { runId: "ended" });
  await server.addInstance(ended, "list", { state: "failed", tryNumber: 1 });
  for (const task of ["late.a", "late.b"])
    await server.addInstance(ended, task, { state: "upstream_failed" });
  const sql =
    "UPDATE task_instance SET reason = 'source of the map: upstream_failed' WHERE task_id LIKE 'late%'";
  await server.sql(sql);
  expect((await tw("tasks", "why", "maps", "ended", "late.b")).stdout).toBe(
    "late.b is upstream_failed\n" +
      "  because its map has no list: list is failed [MAP_SOURCE]\n" +
      "    because list is failed\n      because try 1 failed\n",
  );
  const items = await server.addRun("maps", { runId: "items" });
  await server.addInstance(items, "list", { state: "success" });
  for (const mapIndex of [0, 1]) {
    await server.addInstance(items, "late.a", { mapIndex, state: "failed", tryNumber: 1 });
    await server.addInstance(items, "late.b", { mapIndex, state: "upstream_failed" });
  }
  const expanded =
    "INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length) VALUES ($1, 'late', -1, 0, 2)";
  await server.sql(expanded, [items]);
  expect((await tw("tasks", "why", "maps", "items", "late.b", "--map-index", "1")).stdout).toBe(
    "late.b[1] is upstream_failed\n  because late.a[1] is failed\n    because try 1 failed\n",
  );
  expect((await tw("tasks", "why", "maps", "items", "late.b")).stdout).toContain(
    "2 are upstream_failed, e.g. late.b[0]: Its rule allSuccess gives upstream_failed: late.a is failed. [UPSTREAM_DECIDED]",
  );
});
