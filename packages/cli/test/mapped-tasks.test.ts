/** Commands about instances of maps, against a real server with rows as a scheduler leaves them. */
import type { MapManifest } from "@tradewind/sdk/manifest";
import { beforeAll, expect, it } from "vitest";
import { Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { runCaptured } from "./support/captured-host.ts";

let server: Installation;
let url: string;
let run: number;
const tw = (...argv: string[]) =>
  runCaptured(argv, { env: { TRADEWIND_URL: url, TRADEWIND_TOKEN: server.token } });

const map = (mapId: string, parent: string | null): MapManifest => ({
  mapId,
  parent,
  over: { kind: "list", items: [1] },
  limit: null,
});

beforeAll(async () => {
  server = await Installation.open();
  url = await server.app.listen({ host: "127.0.0.1", port: 0 });
  const tasks = [
    { taskId: "load", map: "load" },
    { taskId: "each.work", map: "each.work" },
    { taskId: "odd", map: "odd" },
  ];
  const maps = [map("load", null), map("each", null), map("each.work", "each"), map("odd", null)];
  await server.addDag(manifestOf("maps", tasks, { maps }));
  await server.addJob("scheduler");
  run = await server.addRun("maps", { runId: "r1" });
  for (const [mapIndex, state] of ["success", "failed", "none"].entries())
    await server.addInstance(run, "load", { mapIndex, state, tryNumber: state === "none" ? 0 : 1 });
  for (const mapIndex of [0, 1]) await server.addInstance(run, "each.work", { mapIndex, state: "success" });
  await server.addInstance(run, "odd", { state: "upstream_failed" });
  const reason = 'MAP_UNUSABLE: the output of "list" is an object, and a map runs over a list';
  await server.sql("UPDATE task_instance SET reason = $1 WHERE task_id = 'odd'", [reason]);
  await server.sql(
    `INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length)
     VALUES ($1, 'load', -1, 0, 3), ($1, 'each', -1, 0, 3), ($1, 'each.work', 2, 0, 1), ($1, 'each.work', 0, 1, 1)`,
    [run],
  );
  await server.sql("INSERT INTO map_label VALUES ($1, 'load', 1, 'south')", [run]);
});

it("shows labels and paths, and takes them for the index", async () => {
  const { stdout } = await tw("tasks", "list", "maps", "r1");
  expect(stdout).toMatch(/^load\[0\] +success/m);
  expect(stdout).toMatch(/^load\[south\] +failed/m);
  expect(stdout).toMatch(/^each\.work\[2\/0\] +success/m);
  const cleared = async (task: string, which: string) =>
    (await tw("tasks", "clear", "maps", "r1", task, "--map-index", which, "--dry-run")).stderr;
  expect(await cleared("load", "south")).toMatch(/Would run again: load\[south\]\./);
  expect(await cleared("each.work", "0/0")).toMatch(/Would run again: each\.work\[0\/0\]\./);
  expect((await tw("tasks", "why", "maps", "r1", "load", "--map-index", "south")).stdout).toMatch(
    /^load\[south\] is failed\n +because try 1 failed/,
  );
});

it("says of a map how its instances stand, of one that is not there which there are", async () => {
  const { stdout } = await tw("tasks", "why", "maps", "r1", "load");
  expect(stdout).toBe(
    "load has 3 instances: 1 failed, 1 none, 1 success\n" +
      "  1 is failed, namely [south]: It has ended: failed. [FINISHED]\n" +
      "  1 is not started, namely [2]: Nothing holds it back: the scheduler is about to queue it. [READY]\n",
  );
  const json = JSON.parse((await tw("tasks", "why", "maps", "r1", "load", "--json")).stdout);
  expect(json.instances).toContainEqual({ state: "failed", count: 1 });
  for (const argv of [["why"], ["logs"], ["clear"]]) {
    const answer = await tw("tasks", ...argv, "maps", "r1", "load", "--map-index", "9");
    expect(answer.code, argv[0]).not.toBe(0);
    expect(answer.stderr, argv[0]).toMatch(/has no instance "9": there are 0 to 2/);
  }
  expect((await tw("tasks", "logs", "maps", "r1", "load")).stderr).toMatch(/say which instance .* 0 to 2/);
});

it("says what is wrong with the list of a map that could not begin", async () => {
  const { stdout } = await tw("tasks", "why", "maps", "r1", "odd");
  expect(stdout).toMatch(
    /^odd is upstream_failed\n +because MAP_UNUSABLE: the output of "list" is an object/,
  );
});
