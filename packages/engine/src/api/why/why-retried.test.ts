import { beforeAll, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;
let run: number;
const at = new Date(Date.now() + 60_000);

beforeAll(async () => {
  tw = await Installation.open();
  const tasks = [
    { taskId: "g.a", group: "g" },
    { taskId: "g.b", upstream: ["g.a"], group: "g" },
    { taskId: "out", upstream: ["g.b"] },
  ];
  const retry = { retries: 2, delayMs: 0 };
  const groups = [{ groupId: "g", parent: null, docs: null, retry }];
  const runRetry = { retries: 3, delayMs: 0, from: "failure" } as const;
  await tw.addDag(manifestOf("etl", tasks, { groups, runRetry }));
  await tw.addJob("scheduler");
  run = await tw.addRun("etl", { runId: "r1", state: "running" });
  await tw.addInstance(run, "g.a", { state: "failed" });
  await tw.addInstance(run, "g.b", { state: "upstream_failed" });
  await tw.addInstance(run, "out", { state: "pending" });
});

async function why(taskId: string) {
  const { reasons } = (await tw.call("GET", `/dags/etl/dagRuns/r1/taskInstances/${taskId}/why`)).json();
  return reasons as { code: string; message: string; until: string | null }[];
}

test("waits for the end of a group with retries", async () => {
  expect(await why("out")).toMatchObject([
    { code: "GROUP_OPEN", message: expect.stringContaining("try 1 of 3 is running"), until: null },
  ]);
  const sql = `INSERT INTO run_group (dag_run_id, group_id, state, try_number, max_tries, retry_at)
               VALUES ($1, 'g', 'waiting', 2, 2, $2)`;
  await tw.sql(sql, [run, at]);
  expect((await tw.call("GET", "/dags/etl/dagRuns/r1")).json().groups).toEqual([
    {
      group_id: "g",
      map_index: -1,
      state: "waiting",
      try_number: 2,
      max_tries: 3,
      retry_at: at.toISOString(),
    },
  ]);
  expect((await tw.call("GET", "/dags/etl/dagRuns")).json().dag_runs[0]).not.toHaveProperty("groups");
  expect(await why("out")).toMatchObject([{ code: "GROUP_OPEN", until: at.toISOString() }]);
  expect(await why("g.a")).toMatchObject([
    { code: "FINISHED" },
    {
      code: "GROUP_RETRY",
      message: expect.stringContaining("try 3 of 3 begins at"),
      until: at.toISOString(),
    },
  ]);
});

test("names the next try of a failed run", async () => {
  const show = async () => (await tw.call("GET", "/dags/etl/dagRuns/r1")).json();
  expect(await show()).toMatchObject({ try_number: 1, max_tries: null, retry_at: null });
  await tw.sql("UPDATE run_group SET state = 'failed', retry_at = NULL");
  await tw.sql("UPDATE dag_run SET try_number = 2, retry_at = $2 WHERE id = $1", [run, at]);
  expect(await show()).toMatchObject({ try_number: 2, max_tries: 4, retry_at: at.toISOString() });
  expect(await why("g.a")).toMatchObject([
    { code: "FINISHED" },
    { code: "RUN_RETRY", message: expect.stringContaining("try 3 of 4 begins at"), until: at.toISOString() },
  ]);
});

test("names the try of each item of a mapped group, and the number of open items for later tasks", async () => {
  const tasks = [
    { taskId: "m.a", group: "m", map: "m" },
    { taskId: "m.b", upstream: ["m.a"], group: "m", map: "m" },
    { taskId: "out", upstream: ["m.b"] },
  ];
  const retry = { retries: 2, delayMs: 0, map: "m" };
  const maps = [{ mapId: "m", parent: null, over: { kind: "list", items: [1, 2, 3] }, limit: null }] as const;
  await tw.addDag(
    manifestOf("items", tasks, { groups: [{ groupId: "m", parent: null, docs: null, retry }], maps }),
  );
  const id = await tw.addRun("items", { runId: "r1", state: "running" });
  for (const mapIndex of [0, 1, 2]) {
    await tw.addInstance(id, "m.a", { mapIndex, state: mapIndex === 0 ? "running" : "success" });
    await tw.addInstance(id, "m.b", { mapIndex, state: ["pending", "failed", "success"][mapIndex]! });
  }
  await tw.addInstance(id, "out", { state: "pending" });
  const expansion =
    "INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length) VALUES ($1, 'm', -1, 0, 3)";
  await tw.sql(expansion, [id]);
  await tw.sql(
    `INSERT INTO run_group (dag_run_id, group_id, map_index, state, try_number, max_tries, retry_at)
     VALUES ($1, 'm', 1, 'waiting', 2, 2, $2), ($1, 'm', 2, 'success', 1, 2, NULL)`,
    [id, at],
  );
  const reasons = async (path: string) =>
    (await tw.call("GET", `/dags/items/dagRuns/r1/taskInstances/${path}/why`)).json().reasons;
  const until = at.toISOString();
  expect(await reasons("m.b/1")).toMatchObject([
    { code: "FINISHED" },
    {
      code: "GROUP_RETRY",
      message: `Its group "m", item 1, has failed; its try 3 of 3 begins at ${until}, with all its tasks.`,
      until,
    },
  ]);
  expect((await reasons("m.b/2")).map(({ code }: { code: string }) => code)).toEqual(["FINISHED"]);
  expect((await reasons("out")).at(-1)).toMatchObject({
    code: "GROUP_OPEN",
    message: `It waits for the end of group "m", which has retries: 2 of 3 items have not ended; item 1: try 2 of 3 has failed, the next try begins at ${until}.`,
    until,
  });
  expect((await tw.call("GET", "/dags/items/dagRuns/r1")).json().groups).toEqual([
    { group_id: "m", map_index: 1, state: "waiting", try_number: 2, max_tries: 3, retry_at: until },
  ]);
});
