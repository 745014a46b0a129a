/** Codes and messages of tasks whose wait times out, or that trigger a run that cannot be created. */

import { beforeAll, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { TryLogReader } from "../api/task/log-files.ts";
import { LogFolder } from "../log/log-folder.ts";
import { resolveConfig } from "../service/config.ts";
import { openHome } from "../service/home.ts";
import { adhoc } from "../store/database/database.ts";
import type { TaskInstanceRow } from "../store/list/task-instances.ts";

let rig: SchedulerRig;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "ends.ts": `
      import { dag, FileSensor, Operator, type TaskContext, TriggerDagRunOperator, WebhookSensor, WebhookTrigger } from "tradewind";
      const wait = { path: "/nowhere/at/all.csv", timeout: 300, interval: 100 };
      class Waits extends Operator<void, string> {
        execute(_ctx: TaskContext) {
          return this.defer({ trigger: new WebhookTrigger({ name: "never" }), method: "go", kwargs: {}, timeout: 300, onTimeout: "fatal" });
        }
        go() { return "gone"; }
      }
      class Late extends WebhookSensor { override startFrom() { return null; } }
      export const sensors = dag("sensors", (d) => {
        d.operator("defer", new FileSensor(wait));
        d.operator("poke", new FileSensor({ ...wait, mode: "poke" }));
        d.operator("soft", new FileSensor({ ...wait, softFail: true }));
        d.operator("late", new Late({ name: "never", timeout: 300 }));
        d.operator("operator", new Waits());
      });
      export const strict = dag("strict", (d) => { d.task("t", () => 1); });
      export const triggers = dag("triggers", (d) => {
        d.operator("unknown", new TriggerDagRunOperator({ dagId: "no_such_dag" }));
        d.operator("misfit", new TriggerDagRunOperator({ dagId: "strict", conf: { region: 7 } }));
        const eu = { dagId: "strict", conf: { region: "eu" }, logicalDate: "2026-01-01T00:00:00Z" };
        const dated = d.operator("dated", new TriggerDagRunOperator(eu));
        d.operator("again", new TriggerDagRunOperator(eu), { after: dated });
      });`,
  });
  const schema = { type: "object", properties: { region: { type: "string" } } };
  await rig.db.rows(
    adhoc(
      "UPDATE dag_version SET manifest = manifest || jsonb_build_object('paramsSchema', $1::jsonb) WHERE dag_id = 'strict'",
    ),
    [JSON.stringify(schema)],
  );
  await rig.scheduler();
});

const reasons = async (id: number) =>
  Object.fromEntries(Object.entries(await rig.tasks(id)).map(([task, row]) => [task, row.reason ?? ""]));

it("a sensor timeout has one code in every mode, and names the awaited object in its reason and its log", async () => {
  const id = await rig.trigger("sensors");
  expect(await rig.ended(id)).toBe("failed");
  const found = await reasons(id);
  expect(found["defer"]).toMatch(
    /^TW_SENSOR_TIMEOUT: FileSensor waited for the file \/nowhere\/at\/all\.csv, .*timed out/,
  );
  expect(found["poke"]).toMatch(/^TW_SENSOR_TIMEOUT: FileSensor found nothing within /);
  expect(found["soft"]).toContain("waited for the file /nowhere/at/all.csv");
  expect(found["late"]).toMatch(/^TW_SENSOR_TIMEOUT: Late waited for a call of the webhook never/);
  expect(found["operator"]).toMatch(/^TASK_WAIT_TIMEOUT: waited for a call of the webhook never/);
  const { home } = resolveConfig({ home: `${rig.root}/home` }, {});
  const logs = new LogFolder((await openHome(home)).logs);
  const row = { dag_id: "sensors", dag_run_id: id, task_id: "defer", map_index: -1 } as TaskInstanceRow;
  const last = async () => (await new TryLogReader(logs, row, 1).read(0, 100_000)).lines.at(-1);
  await rig.until(async () => (await last()) !== undefined, "the last line");
  expect(await last()).toMatchObject({ level: "error", source: "engine" });
  expect((await last())?.message).toContain(
    "The wait has ended: TW_SENSOR_TIMEOUT: FileSensor waited for the file /nowhere/at/all.csv",
  );
});

it("a run that cannot be created is rejected with a specific code", async () => {
  const id = await rig.trigger("triggers");
  expect(await rig.ended(id)).toBe("failed");
  const found = await reasons(id);
  expect(found["unknown"]).toContain("TRIGGERED_DAG_UNKNOWN");
  expect(found["misfit"]).toMatch(
    /^TRIGGERED_CONF_INVALID: .* does not fit the params of DAG "strict": conf\.region/,
  );
  expect(found["dated"]).toBe("");
  expect(found["again"]).toContain("TRIGGERED_RUN_EXISTS");
  const runs = await rig.db.rows(adhoc("SELECT 1 FROM dag_run WHERE dag_id = 'strict'"));
  expect(runs).toHaveLength(1);
});
