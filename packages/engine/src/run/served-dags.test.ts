/** `tradewind scheduler --dags`: a scheduler serves only the given DAGs. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";

let rig: SchedulerRig;
let gate: string;

const file = (dagId: string, tasks: string, settings = "maxActiveRuns: 100") => `
  import { existsSync } from "node:fs";
  import { setTimeout as sleep } from "node:timers/promises";
  import { dag, every } from "tradewind";
  const gate = async () => { while (!existsSync(${JSON.stringify(gate)})) await sleep(20); };
  export default dag("${dagId}", { ${settings} }, (d) => { ${tasks} });`;

beforeEach(async () => {
  rig = await SchedulerRig.open();
  gate = join(rig.root, "gate");
  await rig.publish({
    "a.ts": file("a", 'd.task("t", gate);'),
    "b.ts": file("b", 'd.task("t", gate);'),
  });
  return () => rig.close();
});

afterEach(() => writeFile(gate, ""));

const ownersOf = async (dagId: string) => {
  const sql = "SELECT DISTINCT owner_job FROM dag_run WHERE dag_id = $1 AND state = 'running'";
  return (await rig.db.rows<{ owner_job: number }>(adhoc(sql), [dagId])).map((row) => row.owner_job);
};
const jobsServing = async (dags: readonly string[] | null) => {
  const sql = "SELECT id FROM job WHERE dags IS NOT DISTINCT FROM $1 AND state = 'running'";
  return (await rig.db.rows<{ id: number }>(adhoc(sql), [dags])).map((row) => row.id);
};
const running = async (dagId: string) =>
  (await rig.db.one<{ n: number }>(
    adhoc(`SELECT count(*)::int AS n FROM task_instance t JOIN dag_run r ON r.id = t.dag_run_id
           WHERE t.state = 'running' AND r.dag_id = $1`),
    [dagId],
  ))!.n;

it("claims queued runs of its own DAGs only", async () => {
  const other = await rig.trigger("b");
  await rig.scheduler({ dags: ["a"], shared: false });
  const own = await rig.trigger("a");
  await writeFile(gate, "");
  expect(await rig.ended(own)).toBe("success");
  expect((await rig.run(other)).state).toBe("queued");
  await rig.scheduler({ dags: ["b", "c"], shared: false });
  expect(await rig.ended(other)).toBe("success");
});

it("creates due runs of its own DAGs only", async () => {
  await rig.publish({
    "due.ts": file(
      "due",
      'd.task("t", () => 1);',
      'schedule: every("1d"), start: "2026-01-01", catchup: false',
    ),
    "foreign.ts": file(
      "foreign",
      'd.task("t", () => 1);',
      'schedule: every("1d"), start: "2026-01-01", catchup: false',
    ),
  });
  const runs = async () =>
    (await rig.db.rows<{ dag_id: string }>(adhoc("SELECT DISTINCT dag_id FROM dag_run ORDER BY 1"))).map(
      (row) => row.dag_id,
    );
  await rig.db.rows(adhoc("UPDATE dag SET next_run_after = now() WHERE next_run_after IS NOT NULL"));
  await rig.scheduler({ dags: ["due"] });
  await rig.until(async () => (await runs()).length > 0, "a due run");
  const own = await rig.trigger("due");
  await rig.ended(own);
  expect(await runs()).toEqual(["due"]);
});

it("takes over runs of its own DAGs only", async () => {
  const dead = await rig.db.one<{ id: number }>(
    adhoc(`INSERT INTO job (kind, hostname, pid, version, lease_until)
           VALUES ('scheduler', 'gone', 1, '0', now() - interval '1 minute') RETURNING id`),
  );
  const [a, b] = [await rig.trigger("a"), await rig.trigger("b")];
  await rig.db.rows(adhoc("UPDATE dag_run SET state = 'running', started_at = now(), owner_job = $1"), [
    dead!.id,
  ]);
  await rig.scheduler({ dags: ["a"] });
  await writeFile(gate, "");
  expect(await rig.ended(a)).toBe("success");
  expect(await rig.run(b)).toMatchObject({ state: "running", owner_job: dead!.id });
});

it("receives no runs of other DAGs, and does not prevent a full peer from starting them", async () => {
  await rig.scheduler({ parallelism: 2, shared: false });
  const ids = [];
  for (let n = 0; n < 4; n++) ids.push(await rig.trigger("b"));
  for (let n = 0; n < 4; n++) ids.push(await rig.trigger("a"));
  await rig.until(async () => (await running("b")) === 2, "two tasks of b");
  await rig.scheduler({ parallelism: 2, shared: false, dags: ["a"] });
  await rig.until(async () => (await running("a")) === 2, "two tasks of a");
  const [all] = await jobsServing(null);
  const [some] = await jobsServing(["a"]);
  expect(await ownersOf("a")).toContain(some);
  expect(await ownersOf("b")).toEqual([all]);
  await writeFile(gate, "");
  for (const id of ids) expect(await rig.ended(id)).toBe("success");
});

it("adopts callbacks of its own DAGs only", async () => {
  const [a, b] = [await rig.trigger("a"), await rig.trigger("b")];
  await rig.db.rows(adhoc("UPDATE dag_run SET state = 'success', ended_at = now()"));
  await rig.db.rows(
    adhoc(`INSERT INTO callback (id, dag_run_id, event, try_number)
           SELECT gen_random_uuid(), id, 'success', 1 FROM dag_run`),
  );
  await rig.scheduler({ dags: ["a"] });
  const left = async () =>
    (
      await rig.db.rows<{ dag_run_id: number }>(
        adhoc("SELECT dag_run_id FROM callback WHERE owner_job IS NULL"),
      )
    ).map((row) => row.dag_run_id);
  await rig.until(async () => !(await left()).includes(a), "the adoption");
  expect(await left()).toEqual([b]);
});
