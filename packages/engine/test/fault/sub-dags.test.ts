/** Schedulers are killed while tasks create runs of sub-DAGs and wait for them: each try has exactly one. */
import { expect, test } from "vitest";
import { testDatabase } from "../support/test-database.ts";
import { FaultInstallation } from "./installation.ts";

const ITEMS = 8;
const LEASE = [1_500, 300, 200] as const;

test("each item has one sub-DAG run despite kills between creation and wait, and a cancelled run leaves none behind", async () => {
  const { url } = await testDatabase();
  const installation = await FaultInstallation.open(url);
  await installation.publishFiles({
    "dags.ts": `
      import { dag, WebhookTrigger } from "tradewind";
      const half = dag("half", (d) => d.task("n", () => 21));
      export const twice = dag("twice", { maxActiveRuns: 4 }, (d) => d.dag("half", half));
      export { half };
      export const many = dag("many", (d) => {
        const all = d.mapDag("all", twice, { over: Array.from({ length: ${ITEMS} }, (_, i) => i) });
        d.task("sum", { inputs: { all } }, ({ all }) => all.reduce((sum, n) => sum + n, 0));
      });
      const never = dag("never", (d) => { d.trigger("bell", new WebhookTrigger({ name: "never" })); });
      export { never };
      export const held = dag("held", (d) => { d.mapDag("all", never, { over: [1, 2, 3] }); });`,
  });
  const made = async (dagId: string) =>
    (
      await installation.sql<{ n: number }>("SELECT count(*)::int AS n FROM dag_run WHERE dag_id = $1", [
        dagId,
      ])
    )[0]!.n;
  const stateOf = async (runId: string) =>
    (await installation.sql<{ state: string }>("SELECT state FROM dag_run WHERE run_id = $1", [runId]))[0]
      ?.state;

  await installation.startTriggerer(installation.triggererPlace("triggerer", { lease: LEASE }));
  const place = (n: number) => installation.place(`scheduler-${n}`, { lease: LEASE, parallelism: 4 });
  let scheduler = await installation.start(place(0));
  await installation.trigger("many", "m");
  for (const [n, least] of [1, 5].entries()) {
    await installation.until(`${least} runs of sub-DAGs`, async () => (await made("twice")) >= least);
    await scheduler.kill();
    scheduler = await installation.start(place(n + 1));
  }
  await installation.until("the end", async () => (await stateOf("m")) === "success", 60_000);
  expect(await made("twice")).toBe(ITEMS);
  expect(await made("half")).toBe(ITEMS);
  const [sum] = await installation.sql(
    "SELECT value FROM xcom WHERE task_id = 'sum' AND key = 'return_value'",
  );
  expect(sum).toEqual({ value: 21 * ITEMS });

  // Killed after the parent has ended and before any process has handled it: the next one finds the remaining runs.
  await installation.trigger("held", "h");
  await installation.until("its runs", async () => (await made("never")) === 3);
  await scheduler.kill();
  await installation.sql(
    "UPDATE dag_run SET state = 'failed', ended_at = now(), owner_job = NULL, generation = generation + 1 WHERE run_id = 'h'",
  );
  await installation.start(place(9));
  const active = "SELECT 1 FROM dag_run WHERE dag_id = 'never' AND state IN ('queued', 'running')";
  await installation.until("all to be cancelled", async () => (await installation.sql(active)).length === 0);
  expect(installation.crashes()).toEqual([]);
});
