/** A report that the database rejects fails only its own attempt. */
import { beforeAll, expect, it } from "vitest";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { adhoc } from "../../store/database/database.ts";

let rig: SchedulerRig;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "poison.ts": `
      import { dag } from "tradewind";
      export const poison = dag("poison", {}, (d) => {
        const bad = d.task("bad", { retries: 2, retryDelay: 0 }, () => "poison");
        d.task("after", { after: [bad], rule: "allDone" }, () => "goes on");
      });
      export const healthy = dag("healthy", {}, (d) => {
        let last = d.task("t0", () => 0);
        for (let n = 1; n < 20; n++) last = d.task("t" + n, { after: [last] }, () => n);
      });
    `,
  });
  // Stands for any value that PostgreSQL may reject.
  await rig.db.rows(
    adhoc(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'no poison here' USING ERRCODE = '22000'; END $$`),
  );
  await rig.db.rows(
    adhoc(
      `CREATE TRIGGER refuse BEFORE INSERT ON xcom FOR EACH ROW WHEN (NEW.value::text = '"poison"') EXECUTE FUNCTION refuse()`,
    ),
  );
  await rig.scheduler();
});

it("fails only the attempt whose value cannot be stored", async () => {
  const healthy = await Promise.all(Array.from({ length: 5 }, () => rig.trigger("healthy")));
  const bad = await Promise.all([rig.trigger("poison"), rig.trigger("poison")]);
  for (const id of healthy) expect(await rig.ended(id)).toBe("success");
  for (const id of bad) {
    await rig.ended(id);
    const tasks = await rig.tasks(id);
    expect(tasks.bad).toMatchObject({ state: "failed", try_number: 1 });
    expect(tasks.bad?.reason).toMatch(/^TASK_OUTCOME_UNSTORABLE: .*no poison here/);
    expect(tasks.after?.state).toBe("success");
  }
});
