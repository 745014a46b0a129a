/** Rows of remote executors, for tests of the API. */
import { randomUUID } from "node:crypto";
import { claimAssignments, insertAssignments } from "../../src/store/execute/assignments.ts";
import { registerWorker } from "../../src/store/execute/workers.ts";
import type { ExecutorFacts } from "../../src/store/run/run-hand-over.ts";
import type { Installation } from "./installation.ts";

export function addWorker(
  { database }: Installation,
  {
    name = "worker",
    queues = ["default"],
    leaseMs = 60_000,
  }: { name?: string; queues?: readonly string[] | null; leaseMs?: number } = {},
): Promise<number> {
  return registerWorker(
    database,
    {
      name,
      hostname: "host-1",
      pid: 4711,
      version: "0.1.0",
      protocol: 1,
      slots: 4,
      queues,
      labels: { zone: "a" },
    },
    { leaseMs, tokenId: null, assignment: null },
  );
}

/** An attempt of a task with its assignment; returns its id. `worker`: has claimed it. */
export async function addAttempt(
  tw: Installation,
  at: {
    readonly dagRunId: number;
    readonly taskId: string;
    readonly executor?: string;
    readonly queue?: string;
    readonly worker?: number;
    readonly state?: string;
  },
): Promise<string> {
  const { dagRunId, executor = "queue", queue = "default", taskId, worker } = at;
  const id = randomUUID();
  const state = at.state ?? (worker === undefined ? "queued" : "running");
  await tw.addInstance(dagRunId, taskId, { state, tryNumber: 2, attempt: id });
  const run = await tw.sql<{ dag_id: string; run_id: string }>(
    "SELECT dag_id, run_id FROM dag_run WHERE id = $1",
    [dagRunId],
  );
  const content = {
    run: { dagId: run[0]!.dag_id, runId: run[0]!.run_id },
    tryNumber: 2,
    logKey: `${id}.log`,
  };
  const row = { kind: "attempt", dagRunId, taskId, mapIndex: -1, executor, queue, priority: 1 } as const;
  await insertAssignments(tw.database, [{ id, ...row, config: null, content }]);
  if (worker !== undefined) await claimAssignments(tw.database, worker, [id]);
  return id;
}

/** A scheduler that has published the state of these executors, the default first; returns its job. */
export async function addSchedulerWith(
  tw: Installation,
  executors: readonly Partial<ExecutorFacts>[],
): Promise<number> {
  const facts = executors.map((each) => ({
    ...{ name: "local", type: "local", slots: 8, active: 0, problem: null },
    ...each,
  }));
  const [job] = await tw.sql<{ id: number }>(
    `INSERT INTO job (kind, hostname, pid, version, lease_until, slots, facts)
     VALUES ('scheduler', 'host-1', 4711, '0.1.0', now() + interval '1 hour', 8, $1) RETURNING id`,
    [JSON.stringify({ executors: facts, slots: 8, streaming_slots: 0, streaming_tasks: 0 })],
  );
  return job!.id;
}
