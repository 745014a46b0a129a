/** A run started by a task of another run: the output for both. */
import { beforeAll, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { addTrigger, addTriggerer, addWait } from "../../../test/api/waits.ts";

let tw: Installation;
let owner: number;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("parent", [{ taskId: "sub" }]));
  await tw.addDag(manifestOf("child", [{ taskId: "t" }], { maxActiveRuns: 1 }));
  await tw.addJob("scheduler");
  owner = await addTriggerer(tw);
});

/** The reasons of a task that waits for a run of "child" in this state. */
async function reasons(runId: string, state: "queued" | "running" | null) {
  const dagRunId = await tw.addRun("parent", { runId });
  const args = { dagId: "child", runId, logicalDate: null, states: ["failed", "success"], missing: "fail" };
  const kind = "tradewind.dagrun";
  await addWait(tw, {
    dagRunId,
    taskId: "sub",
    kind,
    triggerId: await addTrigger(tw, { kind, args, owner }),
  });
  const child =
    state && (await tw.addRun("child", { runId, state, startedAt: new Date("2027-01-04T00:00:00Z") }));
  const why = (await tw.call("GET", `/dags/parent/dagRuns/${runId}/taskInstances/sub/why`)).json();
  if (child) await tw.sql("UPDATE dag_run SET state = 'success' WHERE id = $1", [child]);
  expect(why.reasons[0].code).toBe("DEFERRED");
  return why.reasons.slice(1).map(({ code, message }: Record<string, string>) => `${code}: ${message}`);
}

test("explains the state of the awaited run and what blocks it", async () => {
  const name = (id: string) => `It waits for run ${id} of DAG child`;
  expect(await reasons("a", "running")).toEqual([
    `AWAITED_RUN: ${name("a")}, which is running since 2027-01-04T00:00:00.000Z.`,
  ]);
  expect(await reasons("b", null)).toEqual([`AWAITED_RUN: ${name("b")}, which does not exist.`]);
  expect((await reasons("c", "queued"))[0]).toMatch(/which is queued and due at/);
  const other = await tw.addRun("child", { runId: "other" });
  expect(await reasons("d", "queued")).toEqual([
    `AWAITED_RUN: ${name("d")}, which is queued: 1 of at most 1 runs of that DAG are active.`,
  ]);
  await tw.sql("UPDATE dag_run SET state = 'success' WHERE id = $1", [other]);
  await tw.sql("UPDATE dag SET is_paused = true WHERE dag_id = 'child'");
  const paused = "DAG child is paused. Unpause it with: tradewind dags unpause child";
  expect(await reasons("e", "queued")).toEqual([
    `AWAITED_DAG_PAUSED: ${name("e")}, which is queued and cannot start: ${paused}`,
  ]);
  expect((await reasons("f", "running"))[1]).toBe(
    `AWAITED_DAG_PAUSED: No other task of it starts: ${paused}`,
  );
});

test("shows a run with the task that started it, while that task exists", async () => {
  const parent = await tw.addRun("parent", { runId: "p" });
  const child = await tw.addRun("child", { runId: "mine", state: "success" });
  const link =
    "UPDATE dag_run SET parent_run_id = $2, parent_task_id = 'sub', parent_map_index = 3, parent_try = 1 WHERE id = $1";
  await tw.sql(link, [child, parent]);
  const of = {
    ...{ dag_id: "parent", dag_run_id: "p", task_id: "sub", map_index: 3, is_sub_dag: true },
    rendered_map_index: "3",
  };
  expect((await tw.call("GET", "/dags/child/dagRuns/mine")).json().parent).toEqual(of);
  const { dag_runs } = (await tw.call("GET", "/dags/~/dagRuns?run_id_pattern=mine")).json();
  expect(dag_runs).toMatchObject([{ dag_run_id: "mine", parent: of }]);
  expect((await tw.call("GET", "/dags/parent/dagRuns/p")).json().parent).toBeNull();
  const made = (query: string) => tw.call("GET", `/dags/~/dagRuns?${query}`);
  const asked = (await made("parent_dag_id=parent&parent_dag_run_id=p")).json();
  expect(asked).toMatchObject({ total_entries: 1, dag_runs: [{ dag_run_id: "mine" }] });
  expect((await made("parent_dag_id=parent&parent_dag_run_id=none")).statusCode).toBe(404);
  expect((await made("parent_dag_id=parent")).statusCode).toBe(422);
  await tw.sql("DELETE FROM dag_run WHERE id = $1", [parent]);
  expect((await tw.call("GET", "/dags/child/dagRuns/mine")).json().parent).toBeNull();
});
