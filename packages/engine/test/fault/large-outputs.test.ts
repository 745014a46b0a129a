/** A scheduler that is killed between writing a large output and the commit that refers to it. */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { clean } from "../../src/process/clean.ts";
import { resolveConfig } from "../../src/service/config.ts";
import { adhoc } from "../../src/store/database/database.ts";
import { SchedulerRig } from "../support/scheduler-rig.ts";
import { SchedulerProcess } from "./scheduler-process.ts";

it("leaves an unreferenced object, which the sweep deletes, and the next attempt writes its own", async () => {
  const rig = await SchedulerRig.open();
  await rig.publish({
    "large.ts": `
      import { existsSync } from "node:fs";
      import { dag } from "tradewind";
      export const large = dag("large", {}, (d) => {
        const big = d.task("big", async () => {
          while (!existsSync(${JSON.stringify(join(rig.root, "go"))})) await new Promise((go) => setTimeout(go, 10));
          return "x".repeat(1_200_000);
        });
        d.task("read", { inputs: { big } }, ({ big }) => big.length);
      });
    `,
  });
  const home = join(rig.root, "home");
  const first = new SchedulerProcess({
    home,
    databaseUrl: rig.url,
    ledger: join(rig.root, "ledger"),
    lease: [1_500, 400, 300],
    parallelism: 1,
  });
  onTestFinished(() => first.discard());
  expect(await first.ready).toBe("up");
  const run = await rig.trigger("large");
  const objects = () =>
    rig.db.rows<{ key: string; isUsed: boolean }>(
      adhoc(`SELECT o.key, EXISTS (SELECT 1 FROM xcom x WHERE x.object_id = o.id) AS "isUsed"
             FROM output_object o WHERE o.dag_run_id = $1 ORDER BY o.id`),
      [run],
    );
  const isThere = (key: string) => existsSync(join(home, "outputs", key));
  const sweep = async () => {
    const options = { only: ["outputs"], olderThanMs: 0, unusedForMs: 0, batch: 10, dryRun: false } as const;
    return (await clean({ config: resolveConfig({ home }, {}), database: rig.db }, options)).outputs;
  };
  await rig.until(async () => (await rig.states(run)).big === "running", "the task to run");
  // While this transaction locks the run's row, no batch of the run is stored.
  await rig.db.transaction(async (tx) => {
    await tx.rows(adhoc("SELECT 1 FROM dag_run WHERE id = $1 FOR UPDATE"), [run]);
    await writeFile(join(rig.root, "go"), "");
    await rig.until(async () => (await objects()).some(({ key }) => isThere(key)), "the object");
    // Written but not committed: the attempt is active, so its object must not be deleted.
    expect(await sweep()).toBe(0);
    await first.kill();
    // A batch sent before it died may still wait for the row, and would then be stored in its name.
    const waiting = adhoc(
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    await rig.until(async () => (await rig.db.rows(waiting)).length === 0, "its last batch to be refused");
  });
  const [orphan] = await objects();
  expect([orphan!.isUsed, isThere(orphan!.key)]).toEqual([false, true]);
  await rig.scheduler({ parallelism: 1 });
  expect(await rig.ended(run)).toBe("success");
  expect(await rig.output(run, "read")).toBe(1_200_000);
  expect((await objects()).map(({ isUsed }) => isUsed)).toEqual([false, true]);
  expect(await sweep()).toBe(1);
  const [kept, ...others] = await objects();
  expect([kept!.isUsed, isThere(kept!.key), others, isThere(orphan!.key)]).toEqual([true, true, [], false]);
});
