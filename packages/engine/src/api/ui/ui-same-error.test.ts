/** In which runs a task failed for the same reason, and with which version that began. */
import { beforeAll, describe, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

const START = Date.parse("2026-03-01T00:00:00Z");
const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
let count = 0;

async function addRun(state: string, reason: string | null, mapIndex = -1): Promise<number> {
  const n = ++count;
  const times = { runAfter: new Date(START + n * 1000), startedAt: new Date(START + n * 1000) };
  const run = await tw.addRun("etl", { runId: `r${n}`, state: "failed", ...times });
  await addInstance(run, state, reason, mapIndex);
  return run;
}

async function addInstance(
  run: number,
  state: string,
  reason: string | null,
  mapIndex: number,
): Promise<void> {
  const taskId = mapIndex < 0 ? "load" : "part";
  await tw.addInstance(run, taskId, { state, tryNumber: state === "pending" ? 0 : 2, mapIndex });
  await tw.sql(
    "UPDATE task_instance SET reason = $2 WHERE dag_run_id = $1 AND task_id = $3 AND map_index = $4",
    [...[run, reason, taskId, mapIndex]],
  );
}

const overflow = (rows: number) => `NumericOverflow: refund_total exceeds NUMERIC(12,2) in ${rows} rows`;
const refused = (port: number) => `ECONNREFUSED: connect ECONNREFUSED 10.0.0.${port}:5432`;

beforeAll(async () => {
  tw = await Installation.open();
  const version = () => tw.addDag(manifestOf("etl", [{ taskId: "load" }, { taskId: "part" }]));
  await version();
  await addRun("success", null); // r1
  await addRun("failed", refused(1)); // r2
  await addRun("success", null); // r3
  await version();
  await addRun("failed", overflow(3)); // r4
  const retried = await addRun("success", null); // r5
  await tw.sql(
    `INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, reason, ended_at)
     VALUES ($1, $2, 'load', -1, 1, 'failed', $3, now())`,
    [uuid(1), retried, overflow(2)],
  );
  await addRun("upstream_failed", "trigger rule allSuccess"); // r6
  const last = await addRun("failed", overflow(17)); // r7
  await tw.sql(
    `INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, reason, ended_at)
     VALUES ($1, $2, 'load', -1, 1, 'failed', $3, now())`,
    [uuid(2), last, refused(2)],
  );
  const mapped = await addRun("failed", overflow(1), 0); // r8
  await addInstance(mapped, "failed", refused(3), 1);
  await addRun("running", null); // r9
});

const sameError = async (run: string, query = "", task = "load") =>
  tw.call("GET", `/ui/dags/etl/runs/${run}/task-instances/${task}/same-error${query}`);
const read = (column: string) => [...Buffer.from(column, "base64")];

describe("same-error", () => {
  it("shows the runs with the same error, and the version that began it", async () => {
    const answer = (await sameError("r7")).json();
    expect(answer).toMatchObject({
      try_number: 2,
      reason: overflow(17),
      fingerprint: "NumericOverflow: refund_total exceeds NUMERIC(<number>) in <number> rows",
      run_ids: ["r1", "r2", "r3", "r4", "r5", "r6", "r7"],
      versions: [1, 1, 1, 2, 2, 2, 2],
      count: 3,
      since: { run_id: "r4", version: 2, is_oldest: false },
      previous: { version: 1, runs: 3 },
    });
    expect(read(answer.same)).toEqual([0, 0, 0, 1, 2, 0, 1]);
    expect(read(answer.states).map((byte) => answer.task_states[byte])).toEqual([
      ...["success", "failed", "success", "failed", "success", "upstream_failed", "failed"],
    ]);
  });

  it("compares an earlier try, and says if the error may be older", async () => {
    const answer = (await sameError("r7", "?try=1")).json();
    expect(answer).toMatchObject({
      ...{ try_number: 1, reason: refused(2), count: 2, since: { run_id: "r2", version: 1 }, previous: null },
    });
    expect(read(answer.same)).toEqual([0, 1, 0, 0, 0, 0, 2]);
    const few = (await sameError("r7", "?runs=4")).json();
    expect(few).toMatchObject({
      run_ids: ["r4", "r5", "r6", "r7"],
      since: { is_oldest: true },
      previous: null,
    });
  });

  it("compares the instances of a mapped task", async () => {
    const answer = (await sameError("r8", "?map_index=1", "part")).json();
    expect(answer).toMatchObject({ reason: refused(3), count: 1, since: { run_id: "r8" } });
    expect(read(answer.states).map((byte) => answer.task_states[byte])).toEqual([
      ...Array(7).fill("none"),
      "failed",
    ]);
  });

  it("has no fingerprint for a try that has not failed", async () => {
    const answer = (await sameError("r9")).json();
    expect(answer).toMatchObject({ reason: null, fingerprint: null, count: 0, since: null, previous: null });
    expect(answer.run_ids).toHaveLength(9);
  });

  it("answers 404 for an unknown run, task or try", async () => {
    for (const path of ["r7/task-instances/none", "none/task-instances/load"])
      expect((await tw.call("GET", `/ui/dags/etl/runs/${path}/same-error`)).statusCode).toBe(404);
    expect((await sameError("r7", "?try=9")).statusCode).toBe(404);
    expect((await sameError("r7", "?map_index=3")).statusCode).toBe(404);
  });
});
