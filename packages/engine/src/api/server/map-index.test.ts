/** Names of mapped instances: paths, labels and unknown indexes; and `why` for a whole map. */
import type { MapManifest } from "@tradewind/sdk/manifest";
import { beforeAll, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;
let id: number;

const map = (mapId: string, parent: string | null): MapManifest => ({
  mapId,
  parent,
  over: { kind: "list", items: [1, 2] },
  limit: null,
});

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(
    manifestOf(
      "maps",
      [
        { taskId: "start" },
        { taskId: "load", map: "load", upstream: ["start"] },
        { taskId: "region.work", map: "region.work" },
      ],
      { maps: [map("load", null), map("region", null), map("region.work", "region")] },
    ),
  );
  const over = { kind: "output", taskId: "list" } as const;
  await tw.addDag(
    manifestOf(
      "sources",
      [
        { taskId: "list" },
        { taskId: "other" },
        { taskId: "one", map: "one", upstream: ["list", "other"] },
        { taskId: "each.a", map: "each", upstream: ["list"] },
        { taskId: "each.b", map: "each", upstream: ["each.a"] },
      ],
      { maps: ["one", "each"].map((mapId) => ({ ...map(mapId, null), over })) },
    ),
  );
  await tw.addJob("scheduler");
  await tw.sql("INSERT INTO pool (name, slots, occupied) VALUES ('tiny', 1, 1)");
  id = await tw.addRun("maps", { runId: "one", state: "running" });
  await tw.addInstance(id, "start", { state: "success" });
  for (const [mapIndex, state] of ["success", "scheduled", "scheduled"].entries())
    await tw.addInstance(id, "load", { state, mapIndex, pool: "tiny" });
  for (const mapIndex of [0, 1, 2, -2])
    await tw.addInstance(id, "region.work", { mapIndex, state: "success" });
  await tw.sql(
    `INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length)
     VALUES ($1, 'load', -1, 0, 3), ($1, 'region', -1, 0, 3), ($1, 'region.work', 2, 0, 2), ($1, 'region.work', 1, 2, 1)`,
    [id],
  );
  await tw.sql(
    `INSERT INTO map_label (dag_run_id, task_id, map_index, label)
     VALUES ($1, 'load', 0, 'north'), ($1, 'load', 1, 'south'), ($1, 'load', 2, 'south')`,
    [id],
  );
});

type Reason = {
  code: string;
  message: string;
  tasks?: { task_id: string; map_index: number; state: string | null }[];
};

const reasonsOf = async (runId: string, taskId: string) => {
  const answer = await tw.call("GET", `/dags/sources/dagRuns/${runId}/taskInstances/${taskId}/why`);
  return (answer.json().reasons as Reason[]).map(({ code, message, tasks = [] }) => [
    code,
    message,
    ...tasks.map(({ map_index, state, task_id }) => `${task_id}[${map_index}] ${state}`),
  ]);
};

/** A run with instances in these states; mapped ones are not expanded. Returns their reasons. */
async function mapEnd(runId: string, states: Record<string, string>, ownReason?: string) {
  const run = await tw.addRun("sources", { runId, state: "running" });
  for (const [taskId, state] of Object.entries(states)) {
    await tw.addInstance(run, taskId, { state });
    if (!taskId.startsWith("each.")) continue;
    await tw.sql("UPDATE task_instance SET reason = $3 WHERE dag_run_id = $1 AND task_id = $2", [
      run,
      taskId,
      ownReason ?? `source of the map: ${state}`,
    ]);
  }
  return (taskId: string) => reasonsOf(runId, taskId);
}

const PATH = "/dags/maps/dagRuns/one/taskInstances";
const get = async (path: string) => (await tw.call("GET", `${PATH}${path}`)).json();
const find = async (task: string, which: string) => {
  const { detail, map_index } = await get(`/${task}/mapIndex?which=${encodeURIComponent(which)}`);
  return map_index ?? detail;
};

test("shows an instance by its label, or by its path in nested maps", async () => {
  const { task_instances } = await get("?order_by=map_index&order_by=task_id");
  const shown = (task_instances as Record<string, unknown>[])
    .filter(({ map_index }) => map_index !== -1)
    .map(({ map_index, map_path, rendered_map_index, task_id }) => [
      task_id,
      map_index,
      rendered_map_index,
      map_path,
    ]);
  expect(shown.sort()).toEqual([
    ["load", 0, "north", [0]],
    ["load", 1, "south", [1]],
    ["load", 2, "south", [2]],
    ["region.work", -2, "0/*", [0]],
    ["region.work", 0, "2/0", [2, 0]],
    ["region.work", 1, "2/1", [2, 1]],
    ["region.work", 2, "1/0", [1, 0]],
  ]);
  const labelled = await get("?rendered_map_index_pattern=sou%25");
  expect(labelled.total_entries).toBe(2);
  const plain = await get("/start");
  expect(plain).toMatchObject({ rendered_map_index: null, map_path: null });
});

test("finds an instance by index, path or label, and names the existing ones if it is unknown", async () => {
  expect(await find("load", "2")).toBe(2);
  expect(await find("load", "north")).toBe(0);
  expect(await find("load", "south")).toMatch(
    /several instances "south": give the map index, which is 1, 2$/,
  );
  expect(await find("load", "9")).toBe(
    'Task "load" of run "one" of DAG "maps" has no instance "9": there are 0 to 2',
  );
  expect(await find("load", "99999999999999999999")).toMatch(/there are 0 to 2$/);
  expect(await find("region.work", "1/0")).toBe(2);
  expect(await find("region.work", "1")).toBe(1);
  expect(await find("region.work", "2/5")).toMatch(
    /no instance "2\/5": item 2 has 0 to 1; by map index there are 0 to 2$/,
  );
  expect(await find("region.work", "0/0")).toMatch(/has no instance "0\/0"/);
  expect(await find("start", "0")).toMatch(/is not mapped/);
  expect(await find("nope", "x")).toBe('Run "one" of DAG "maps" has no task "nope"');
});

test("treats the placeholder of an item like any instance", async () => {
  expect(await find("region.work", "0/*")).toBe(-2);
  for (const which of ["1/*", "7/*", "0/0/*", "*", "/*"])
    expect(await find("region.work", which), which).toMatch(/has no instance/);
  expect(await find("load", "0/*")).toMatch(/has no instance/);
  expect(await get("/region.work/-2")).toMatchObject({ map_index: -2, rendered_map_index: "0/*" });
  expect(await get("/region.work/why?map_index=-2")).toMatchObject({ map_index: -2, instances: null });
  expect((await get("/region.work/-7/why")).detail).toMatch(/has no instance "-7"/);
  expect((await get("?map_index=-2")).total_entries).toBe(1);
  const body = { dag_run_id: "one", only_failed: false, task_ids: [["region.work", -2]] };
  const cleared = await tw.call("POST", "/dags/maps/clearTaskInstances", { ...body, dry_run: true });
  expect(cleared.json().task_instances).toMatchObject([{ map_index: -2 }]);
});

test("names each item if all nested lists are empty", async () => {
  const run = await tw.addRun("maps", { runId: "empty", state: "running" });
  for (const mapIndex of [-2, -3]) await tw.addInstance(run, "region.work", { mapIndex, state: "skipped" });
  await tw.sql(
    "INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length) VALUES ($1, 'region', -1, 0, 2)",
    [run],
  );
  const { task_instances } = (await tw.call("GET", "/dags/maps/dagRuns/empty/taskInstances")).json();
  const shown = (task_instances as { rendered_map_index: string }[]).map((each) => each.rendered_map_index);
  expect(shown.sort()).toEqual(["0/*", "1/*"]);
});

test("has no log for a map as a whole", async () => {
  expect((await get("/load")).detail).toMatch(
    / has 3 mapped instances: choose one by its map index, 0 to 2$/,
  );
  expect((await get("/region.work")).detail).toMatch(/0 to 2$/);
});

test("changes nothing for an unknown instance", async () => {
  const body = {
    dry_run: false,
    only_failed: false,
    dag_run_id: "one",
    task_ids: [
      ["load", 0],
      ["load", 9],
    ],
  };
  const answer = await tw.call("POST", "/dags/maps/clearTaskInstances", body);
  expect(answer.statusCode).toBe(404);
  expect(answer.json().detail).toMatch(/no instance "9": there are 0 to 2$/);
  expect((await get("/load/0")).state).toBe("success");
  const marked = await tw.call("PATCH", `${PATH}/load/9`, { new_state: "failed" });
  expect(marked.json().detail).toMatch(/there are 0 to 2$/);
});

describe("why", () => {
  test("counts the instances of a map, and explains one of each state", async () => {
    const { instances, reasons, state } = await get("/load/why");
    expect(state).toBeNull();
    expect(instances).toEqual([
      { state: "scheduled", count: 2 },
      { state: "success", count: 1 },
    ]);
    expect(reasons).toMatchObject([
      { code: "MAPPED", message: "It is mapped, and has 3 instances: 2 scheduled, 1 success." },
      {
        code: "POOL_FULL",
        message: expect.stringMatching(/^2 are scheduled, e\.g\. load\[1\] south: Pool "tiny" is full/),
      },
    ]);
  });

  test("explains a map that ended before it was expanded", async () => {
    const ended = await mapEnd("ended", {
      list: "failed",
      "each.a": "upstream_failed",
      "each.b": "upstream_failed",
    });
    expect(await ended("each.b")).toEqual([
      ["FINISHED", "It has ended: upstream_failed (source of the map: upstream_failed)."],
      ["MAP_SOURCE", "Its map has no list: list is failed.", "list[-1] failed"],
    ]);
    const skipped = await mapEnd("skipped", { list: "skipped", "each.a": "skipped", "each.b": "skipped" });
    expect((await skipped("each.a"))[1]).toEqual([
      "MAP_SOURCE",
      "Its map has no list: list is skipped.",
      "list[-1] skipped",
    ]);
    const rule = await mapEnd("rule", { list: "success", other: "failed", one: "upstream_failed" });
    expect((await rule("one"))[1]).toEqual([
      "UPSTREAM_DECIDED",
      "Its rule allSuccess gives upstream_failed: other is failed.",
      "other[-1] failed",
    ]);
    const empty = await mapEnd(
      "empty-list",
      { list: "success", "each.a": "skipped" },
      "mapped over an empty list",
    );
    expect(await empty("each.a")).toEqual([
      ["FINISHED", "It has ended: skipped (mapped over an empty list)."],
      ["MAP_EMPTY", "It is mapped over an empty list returned by list."],
    ]);
    const bad = 'MAP_UNUSABLE: the output of "list" is an object, but a map needs a list';
    const unusable = await mapEnd("unusable", { list: "success", "each.a": "upstream_failed" }, bad);
    expect(await unusable("each.a")).toEqual([["FINISHED", `It has ended: upstream_failed (${bad}).`]]);
  });

  test("names the upstream of the first instance of each state in its own item", async () => {
    const run = await tw.addRun("sources", { runId: "items", state: "running" });
    await tw.addInstance(run, "list", { state: "success" });
    for (const [mapIndex, state] of ["success", "failed", "skipped", "running"].entries())
      await tw.addInstance(run, "each.a", { mapIndex, state });
    for (const [mapIndex, state] of ["success", "upstream_failed", "skipped", "pending"].entries())
      await tw.addInstance(run, "each.b", { mapIndex, state, tryNumber: state === "success" ? 1 : 0 });
    await tw.sql(
      "INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length) VALUES ($1, 'each', -1, 0, 4)",
      [run],
    );
    expect(await reasonsOf("items", "each.b")).toEqual([
      [
        "MAPPED",
        "It is mapped, and has 4 instances: 1 not started, 1 skipped, 1 success, 1 upstream_failed.",
      ],
      [
        "UPSTREAM",
        "each.b[3] is not started: Its rule allSuccess waits for upstream tasks: each.a is running.",
        "each.a[3] running",
      ],
      ["FINISHED", "each.b[2] is skipped: It has ended: skipped."],
      [
        "UPSTREAM_DECIDED",
        "each.b[2] is skipped: Its rule allSuccess gives skipped: each.a is skipped.",
        "each.a[2] skipped",
      ],
      ["FINISHED", "each.b[1] is upstream_failed: It has ended: upstream_failed."],
      [
        "UPSTREAM_DECIDED",
        "each.b[1] is upstream_failed: Its rule allSuccess gives upstream_failed: each.a is failed.",
        "each.a[1] failed",
      ],
    ]);
  });

  test("rejects an unknown instance, and explains an existing one", async () => {
    expect((await get("/load/9/why")).detail).toMatch(/no instance "9": there are 0 to 2$/);
    expect(await get("/load/0/why")).toMatchObject({ instances: null, reasons: [{ code: "FINISHED" }] });
  });
});
