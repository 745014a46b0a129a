/** `tradewind scheduler` with --dags and --runs, as a separate process on a shared database. */
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { adhoc } from "../../engine/src/store/database/database.ts";
import { SchedulerRig } from "../../engine/test/support/scheduler-rig.ts";
import { runCaptured } from "./support/captured-host.ts";
import { runCli } from "./support/standalone-process.ts";

let rig: SchedulerRig;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  const file = (dagId: string) =>
    `import { dag } from "tradewind"; export default dag("${dagId}", (d) => { d.task("t", () => 1); });`;
  await rig.publish({ "sales.ts": file("sales"), "billing.ts": file("billing") });
});

it("exits with 0 after its runs have ended, and names DAGs that do not exist", async () => {
  const other = await rig.trigger("billing");
  const own = [await rig.trigger("sales"), await rig.trigger("sales"), await rig.trigger("sales")];
  const args = ["scheduler", "--dags", "sales,typo", "--dags", "later", "--runs", "2", "--parallelism", "2"];
  const env = { DATABASE_URL: rig.url, TRADEWIND_HOME: join(rig.root, "cli-home") };
  const { code, stderr } = await runCli(args, env);
  expect(code).toBe(0);
  expect(stderr).toMatch(/unknown DAGs.*later.*typo/);
  expect(stderr).toContain("The scheduler is running: DAGs sales, typo, later, until 2 runs have ended.");
  const states = await Promise.all([other, ...own].map(async (id) => (await rig.run(id)).state));
  expect(states).toEqual(["queued", "success", "success", "queued"]);
});

it("has the number of slots given by its flags", async () => {
  await rig.trigger("sales");
  const env = { DATABASE_URL: rig.url, TRADEWIND_HOME: join(rig.root, "cli-home") };
  const { code } = await runCli(
    ["scheduler", "--runs", "1", "--parallelism", "2", "--streaming-slots", "3", "--drain", "1s"],
    env,
  );
  expect(code).toBe(0);
  const facts = adhoc("SELECT facts FROM job WHERE kind = 'scheduler' ORDER BY id DESC LIMIT 1");
  expect(await rig.db.one(facts)).toEqual({
    facts: expect.objectContaining({ slots: 2, streaming_slots: 3 }),
  });
});

it.each([
  [["--dags", "./dags"], /"\.\/dags" is not a DAG id\. .*no DAG folder/],
  [["--dags", "a,"], /"" is not a DAG id/],
  [["--runs", "0"], /whole number of at least 1/],
])("rejects %j", async (args, says) => {
  const { code, stderr } = await runCaptured(["scheduler", ...args]);
  expect([code, stderr]).toEqual([2, expect.stringMatching(says)]);
});
