import type { SignalCondition, TaskManifest } from "@tradewind/sdk/manifest";
import { beforeAll, describe, expect, it } from "vitest";
import { taskManifest } from "../../../test/reference/manifests.ts";
import { seedDag, seedJob, seedRuns, waitingForLock } from "../../../test/support/catalogue-seed.ts";
import { EMPTY_BATCH } from "../../../test/support/empty-batch.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Connection, type Database } from "../database/database.ts";
import { cancelRun, markRun } from "../edit/end-run.ts";
import { sendSignals } from "../signal/signals.ts";
import { batchCalls, FENCED } from "../task/run-batch.ts";
import { type ManualCommandResult, type OrderAction, submitManualCommand } from "./manual-commands.ts";
import { openDrives } from "./run-drives.ts";

let db: Database;

const hears = (key: string): SignalCondition => ({
  ...{ kind: "signal", namespace: "default", key, where: null, equals: null, inRun: false },
});
const starts = (key: string): Pick<TaskManifest, "rules"> => ({
  rules: [{ action: "start", when: hears(key), once: false }],
});

beforeAll(async () => {
  ({ db } = await testDatabase());
  await seedDag(db, "plain", {
    tasks: [
      taskManifest("a"),
      taskManifest("b", { upstream: ["a"], retries: 2 }),
      taskManifest("c", { upstream: ["b"] }),
      taskManifest("aside", { upstream: ["a"] }),
    ],
  });
  await seedDag(db, "driven", {
    stop: hears("closed"),
    tasks: [
      taskManifest("train", starts("go")),
      taskManifest("report", { upstream: ["train"] }),
      taskManifest("ship", { upstream: ["report"], ...starts("ship") }),
      taskManifest("label", { upstream: ["ship"] }),
    ],
  });
});

type State = "queued" | "running" | "success" | "failed";

/** A run whose task instances match its state. */
async function aRun(
  dagId: "plain" | "driven",
  { ownerJob, state = "running" }: { state?: State; ownerJob?: number } = {},
) {
  const [id = 0] = await seedRuns(db, dagId, { state, ...(ownerJob === undefined ? {} : { ownerJob }) });
  const run = await db.one<{ run_id: string }>(adhoc("SELECT run_id FROM dag_run WHERE id = $1"), [id]);
  if (state !== "queued") {
    await db.rows(
      adhoc(`INSERT INTO task_instance (dag_run_id, task_id, state, try_number, max_tries, attempt, pool, pool_slots,
                                        queue, priority_weight, operator)
             SELECT r.id, k->>'taskId', CASE WHEN r.state = 'running' THEN 'pending' ELSE 'success' END,
                    (r.state <> 'running')::int, 0, CASE WHEN r.state <> 'running' THEN gen_random_uuid() END,
                    'default_pool', 1, 'default', 1, 'task'
             FROM dag_run r JOIN dag_version v ON v.id = r.version_id, jsonb_array_elements(v.manifest->'tasks') AS k
             WHERE r.id = $1`),
      [id],
    );
  }
  return { id, dagId, runId: run!.run_id };
}
type Run = Awaited<ReturnType<typeof aRun>>;

const wish = ({ dagId, runId }: Run, taskId: string, action: OrderAction) => ({
  ...{ dagId, runId, taskId, action, user: "ada" },
});
const order = (run: Run, taskId: string, action: OrderAction): Promise<ManualCommandResult> =>
  db.transaction((tx) => submitManualCommand(tx, wish(run, taskId, action)));
const close = ({ dagId, runId }: Run) =>
  db.transaction((tx) =>
    submitManualCommand(tx, { dagId, runId, taskId: null, action: "stop", user: "ada" }),
  );

interface OrderRow {
  readonly id: number;
  readonly key: string;
  readonly value: unknown;
  readonly sender: string;
  /** Whether the run's drive holds the command of this signal. */
  readonly is_noted: boolean;
}

const orders = ({ dagId, id, runId }: Run) =>
  db.rows<OrderRow>(
    adhoc(`SELECT s.id, s.key, s.value, s.sender,
                  EXISTS (SELECT 1 FROM json_array_elements(d.manual_commands) AS o(noted)
                          WHERE concat_ws('/', $2::text, o.noted->>'taskId') = s.key
                            AND o.noted->>'action' = s.value->>'action' AND o.noted->>'by' = s.sender) AS is_noted
           FROM signal s LEFT JOIN run_drive d ON d.dag_run_id = $1
           WHERE s.namespace = 'action' AND (s.key = $2 OR starts_with(s.key, $2 || '/')) ORDER BY s.id`),
    [id, `${dagId}/${runId}`],
  );
const runOf = async ({ id }: Run) =>
  (await db.one<{ state: string; generation: number; clear_number: number; driven: boolean }>(
    adhoc(`SELECT r.state, r.generation, r.clear_number, d.dag_run_id IS NOT NULL AS driven
           FROM dag_run r LEFT JOIN run_drive d ON d.dag_run_id = r.id WHERE r.id = $1`),
    [id],
  ))!;
const statesOf = async ({ id }: Run) =>
  Object.fromEntries(
    (
      await db.rows<{ task_id: string; state: string }>(
        adhoc("SELECT task_id, state FROM task_instance WHERE dag_run_id = $1"),
        [id],
      )
    ).map(({ state, task_id }) => [task_id, state]),
  );

describe("a manual command to an unfinished run", () => {
  it("is stored in the run's drive and in the signal log, and makes the owner reload the run", async () => {
    const run = await aRun("plain");
    const { generation } = await runOf(run);
    const first = await order(run, "b", "restart");
    expect(first).toMatchObject({ kind: "ordered", dagRunId: run.id });
    expect(await order(run, "c", "stop")).toMatchObject({ kind: "ordered" });
    expect(await orders(run)).toMatchObject([
      {
        key: `plain/${run.runId}/b`,
        value: { action: "restart", by: "ada" },
        sender: "ada",
        is_noted: true,
        id: (first as { version: number }).version,
      },
      { key: `plain/${run.runId}/c`, value: { action: "stop", by: "ada" }, is_noted: true },
    ]);
    expect(await runOf(run)).toMatchObject({ state: "running", generation: generation + 2, driven: true });
    expect(Object.values(await statesOf(run))).toEqual(["pending", "pending", "pending", "pending"]);
  });

  it("is stored in the existing drive of a signal-driven run", async () => {
    const run = await aRun("driven");
    await openDrives(db, [run.id]);
    const before = await runOf(run);
    expect(await order(run, "train", "start")).toMatchObject({ kind: "ordered" });
    expect(await runOf(run)).toEqual({ ...before, generation: before.generation + 1 });
    expect(await orders(run)).toMatchObject([{ is_noted: true }]);
  });

  it("keeps the signals that were sent to a signal-driven run before its first load", async () => {
    const run = await aRun("driven", { state: "queued" });
    const [sent] = await sendSignals(db, [{ namespace: "default", key: "go", value: 1, sender: "x" }]);
    expect(await order(run, "train", "start")).toMatchObject({ kind: "ordered" });
    const [place] = await db.rows(
      adhoc(`SELECT d.since = r.queued_at AS is_early, s.created_at >= d.since AND s.tx >= d.tx AS is_heard
             FROM run_drive d JOIN dag_run r ON r.id = d.dag_run_id, signal s WHERE r.id = $1 AND s.id = $2`),
      [run.id, sent!.id],
    );
    expect(place).toEqual({ is_early: true, is_heard: true });
  });

  it("closes a signal-driven run, and is rejected for a run without a drive", async () => {
    const run = await aRun("driven");
    expect(await close(run)).toMatchObject({ kind: "ordered" });
    expect(await orders(run)).toMatchObject([
      { key: `driven/${run.runId}`, value: { action: "stop", by: "ada" } },
    ]);
    const plain = await aRun("plain");
    expect(await close(plain)).toEqual({ kind: "not_driven" });
    expect(await runOf(plain)).toMatchObject({ generation: 0, driven: false });
    await order(plain, "a", "start");
    expect(await close(plain)).toMatchObject({ kind: "ordered" });
  });

  it("is rejected for an unknown run or task", async () => {
    const run = await aRun("plain");
    expect(await order(run, "train", "start")).toEqual({ kind: "unknown_task" });
    expect(await order({ ...run, runId: "none" }, "a", "start")).toEqual({ kind: "unknown_run" });
    expect(await order({ ...run, dagId: "driven" }, "train", "start")).toEqual({ kind: "unknown_run" });
    expect(await runOf(run)).toMatchObject({ generation: 0, driven: false });
    expect(await orders(run)).toEqual([]);
  });
});

describe("a manual command to an ended run", () => {
  it.each(["start", "restart"] as const)("clears the task and its downstream on %s", async (action) => {
    const run = await aRun("plain", { state: "failed" });
    await db.rows(
      adhoc(
        "INSERT INTO xcom (dag_run_id, task_id, key, value) SELECT $1, unnest($2::text[]), 'return_value', '1'",
      ),
      [run.id, ["a", "c"]],
    );
    const result = await order(run, "b", action);
    expect(result).toMatchObject({
      kind: "cleared",
      affected: [{ taskId: "b" }, { taskId: "c" }],
      version: null,
    });
    expect(await statesOf(run)).toEqual({ a: "success", aside: "success", b: "pending", c: "pending" });
    expect(await runOf(run)).toMatchObject({ state: "queued", clear_number: 1, driven: false });
    expect(await orders(run)).toEqual([]);
    const kept = await db.rows(adhoc("SELECT task_id FROM xcom WHERE dag_run_id = $1"), [run.id]);
    expect(kept).toEqual([{ task_id: "a" }]);
    const tried = await db.rows(adhoc("SELECT task_id FROM task_attempt WHERE dag_run_id = $1"), [run.id]);
    expect(tried).toHaveLength(2);
  });

  it("clears up to the tasks that wait for a start of their own", async () => {
    const run = await aRun("driven", { state: "success" });
    expect(await order(run, "train", "start")).toMatchObject({
      kind: "cleared",
      affected: [{ taskId: "report" }, { taskId: "train" }],
      version: null,
    });
    expect(await statesOf(run)).toMatchObject({ ship: "success", label: "success" });
  });

  it("is stored if the task never started, because a cleared task would only wait again", async () => {
    const run = await aRun("driven", { state: "success" });
    await db.rows(
      adhoc(
        "UPDATE task_instance SET state = 'skipped', try_number = 0, attempt = NULL WHERE dag_run_id = $1",
      ),
      [run.id],
    );
    const result = await order(run, "ship", "restart");
    expect(result).toMatchObject({ kind: "cleared", affected: [{ taskId: "label" }, { taskId: "ship" }] });
    expect(await orders(run)).toMatchObject([
      { id: (result as { version: number }).version, value: { action: "start" }, is_noted: true },
    ]);
    // This task starts when its upstream allows it.
    expect(await order(run, "report", "start")).toMatchObject({ kind: "ordered" });
  });

  it("is rejected on stop, and for a run without task instances", async () => {
    const run = await aRun("driven", { state: "success" });
    expect(await order(run, "train", "stop")).toEqual({ kind: "over", state: "success" });
    expect(await close(run)).toEqual({ kind: "over", state: "success" });
    const cancelled = await aRun("plain", { state: "queued" });
    await db.transaction((tx) => cancelRun(tx, cancelled.id, "not needed"));
    expect(await order(cancelled, "a", "start")).toEqual({ kind: "never_began", state: "failed" });
    expect(await runOf(cancelled)).toMatchObject({ state: "failed", clear_number: 0, driven: false });
  });
});

describe("a concurrent manual command", () => {
  it("sees the end of a run that ends first", async () => {
    const run = await aRun("driven");
    const second = await aRun("plain");
    const answers = [run, second].map(async (each, at) => {
      const taskId = at === 0 ? "train" : "b";
      let waiting: Promise<ManualCommandResult> | undefined;
      await db.transaction(async (tx) => {
        await markRun(tx, each.id, "success");
        waiting = order(each, taskId, at === 0 ? "stop" : "start");
        await waitingForLock(db);
      });
      return waiting;
    });
    expect(await answers[0]).toEqual({ kind: "over", state: "success" });
    expect(await answers[1]).toMatchObject({ kind: "cleared", affected: [{ taskId: "b" }, { taskId: "c" }] });
    expect(await runOf(run)).toMatchObject({ state: "success", driven: false });
    expect(await orders(run)).toEqual([]);
  });

  it("fences the owner's batch that would end the run", async () => {
    const jobId = await seedJob(db);
    const run = await aRun("plain", { ownerJob: jobId });
    const { generation } = await runOf(run);
    const end = {
      ...EMPTY_BATCH,
      jobId,
      fences: [{ runId: run.id, generation }],
      ends: [{ runId: run.id, state: "success" as const, reason: null }],
    };
    await order(run, "a", "start");
    await expect(db.pipeline(batchCalls(end))).rejects.toMatchObject({ code: FENCED });
    expect(await runOf(run)).toMatchObject({ state: "running", driven: true });
  });

  it("is stored with all others", async () => {
    const run = await aRun("plain");
    await Promise.all(Array.from({ length: 8 }, (_, at) => order(run, at % 2 === 0 ? "a" : "b", "start")));
    expect((await orders(run)).map(({ is_noted }) => is_noted)).toEqual(Array(8).fill(true));
    expect(await runOf(run)).toMatchObject({ generation: 8 });
  });

  it("counts after a clear that committed while its transaction was open", async () => {
    const run = await aRun("driven", { state: "success" });
    await db.transaction(async (early) => {
      await early.one(adhoc("SELECT now()"));
      await order(run, "train", "start");
      expect(await submitManualCommand(early, wish(run, "ship", "start"))).toMatchObject({ kind: "ordered" });
    });
    expect(await orders(run)).toMatchObject([{ key: `driven/${run.runId}/ship`, is_noted: true }]);
  });

  it("does not deadlock with the owner that loads the run", async () => {
    const run = await aRun("driven");
    let loading: Promise<void> | undefined;
    await db.transaction((tx) => {
      // The owner creates the row after the command has locked the run, and before the command creates the row.
      const late: Connection = {
        one: (statement, values) => tx.one(statement, values),
        rows: async (statement, values) => {
          if (statement.name === "drive-open") {
            loading = openDrives(db, [run.id]);
            await loading;
          }
          return tx.rows(statement, values);
        },
      };
      return submitManualCommand(late, wish(run, "train", "start"));
    });
    await loading;
    expect(await orders(run)).toMatchObject([{ is_noted: true }]);
  });
});
