/** The effects that the log requires, compared with the database rows of the runs and the ledger. */
import type { StoredDrive } from "../../src/model/index.ts";
import type { FaultInstallation } from "./installation.ts";

export interface Expected {
  readonly id: number;
  readonly runId: string;
  /** Signals since the run was created. */
  readonly tick: number;
  readonly bulk: number;
  /** How often both arrived together, in the order of the log. */
  readonly both: number;
  readonly fired: ReadonlyMap<string, number>;
}

interface ReceivedSignals {
  readonly key: string;
}

/** For the runs of a DAG, after the writers have stopped. */
export async function foretell(installation: FaultInstallation, dagId: string): Promise<Expected[]> {
  const runs = await installation.sql<{ id: number; run_id: string }>(
    "SELECT id, run_id FROM dag_run WHERE dag_id = $1 ORDER BY id",
    [dagId],
  );
  const expected: Expected[] = [];
  for (const { id, run_id } of runs) {
    const heard = await installation.sql<ReceivedSignals>(
      `SELECT s.key FROM signal s JOIN dag_run r ON r.id = $1
       WHERE s.namespace = 'default' AND s.created_at >= r.queued_at ORDER BY s.tx, s.id`,
      [id],
    );
    const count = (key: string) => heard.filter((each) => each.key === key).length;
    const keys = ["tick", "tock", "bulk", "go", "halt", "renew"];
    const fired = new Map(keys.map((key) => [key, count(key)]));
    expected.push({
      id,
      runId: run_id,
      tick: count("tick"),
      bulk: count("bulk"),
      both: together(heard),
      fired,
    });
  }
  return expected;
}

function together(heard: readonly ReceivedSignals[]): number {
  let [times, met] = [0, new Set<string>()];
  for (const { key } of heard) {
    if (key === "tick" || key === "tock") met.add(key);
    if (met.size < 2) continue;
    times++;
    met = new Set();
  }
  return times;
}

export interface TaskRow {
  readonly task_id: string;
  readonly state: string;
  readonly try_number: number;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
  readonly attempt: string | null;
  readonly pid: number | null;
}

export async function tasksOf(installation: FaultInstallation, id: number): Promise<Map<string, TaskRow>> {
  const sql = "SELECT * FROM task_instance WHERE dag_run_id = $1";
  return new Map((await installation.sql<TaskRow>(sql, [id])).map((row) => [row.task_id, row]));
}

export async function driveOf(installation: FaultInstallation, id: number): Promise<StoredDrive> {
  const sql = "SELECT state FROM run_drive WHERE dag_run_id = $1";
  return (await installation.sql<{ state: StoredDrive }>(sql, [id]))[0]?.state ?? {};
}

/** The causes of the waiting starts of a task. */
async function waitingStarts(installation: FaultInstallation, id: number, taskId: string): Promise<string[]> {
  const sql = "SELECT cause::text FROM run_start WHERE dag_run_id = $1 AND task_id = $2";
  return (await installation.sql<{ cause: string }>(sql, [id, taskId])).map(({ cause }) => cause);
}

/** What a counting run still has to do; empty: nothing, or it did too much. */
export async function missing(installation: FaultInstallation, expected: Expected): Promise<string[]> {
  const tasks = await tasksOf(installation, expected.id);
  const problems: string[] = [];
  const wants = { fast: expected.tick, both: expected.both };
  for (const [task, times] of Object.entries(wants)) {
    const row = tasks.get(task);
    const isDone = times === 0 ? row?.try_number === 0 : row?.state === "success" && row.try_number >= times;
    if (!isDone) problems.push(`${expected.runId} ${task}: ${row?.state} ${row?.try_number} of ${times}`);
  }
  const { length: waiting } = await waitingStarts(installation, expected.id, "waiting");
  if (waiting < expected.bulk) problems.push(`${expected.runId}: ${waiting} of ${expected.bulk} are counted`);
  if (expected.tick > 0 && tasks.get("after")?.state !== "success")
    problems.push(`${expected.runId} after: ${tasks.get("after")?.state}`);
  return problems;
}

/** Exactly as often as the log requires; each try on record; downstream tasks ran afterwards. */
export async function judgeCounting(installation: FaultInstallation, expected: Expected): Promise<string[]> {
  const { bulk, both, fired, id, runId, tick } = expected;
  const tasks = await tasksOf(installation, id);
  const drive = await driveOf(installation, id);
  const problems: string[] = [];
  const check = (what: string, is: unknown, wanted: unknown) => {
    if (is !== wanted) problems.push(`${runId} ${what}: ${is}, not ${wanted}`);
  };
  check("fast, tries", tasks.get("fast")?.try_number, tick);
  check("both, tries", tasks.get("both")?.try_number, both);
  const waiting = await waitingStarts(installation, id, "waiting");
  check("fast, starts that wait", (await waitingStarts(installation, id, "fast")).length, 0);
  check("waiting, starts that wait", waiting.length, bulk);
  check("waiting, signals behind the starts", new Set(waiting).size, bulk);
  check("fast, firings", firings(drive, "fast"), fired.get("tick"));
  check("both, firings", firings(drive, "both"), both);
  check("waiting, firings", firings(drive, "waiting"), fired.get("bulk"));
  for (const task of ["fast", "both"]) {
    const wanted = task === "fast" ? tick : both;
    const onRecord = await installation.sql<{ n: number }>(
      `SELECT count(DISTINCT try_number) AS n FROM (
         SELECT try_number FROM task_attempt WHERE dag_run_id = $1 AND task_id = $2
         UNION ALL SELECT try_number FROM task_instance WHERE dag_run_id = $1 AND task_id = $2 AND try_number > 0) AS t`,
      [id, task],
    );
    check(`${task}, tries on record`, onRecord[0]?.n, wanted);
    const told = await installation.sql<{ n: number }>(
      "SELECT count(*) AS n FROM signal WHERE namespace = 'task' AND key = $1 AND value->>'state' = 'success'",
      [`counting/${runId}/${task}`],
    );
    check(`${task}, reported ends`, told[0]?.n, wanted);
    const ended = installation.ledger
      .lines()
      .filter((line) => line.run === runId && line.task === task && line.event === "end");
    check(`${task}, tries that came to their end`, new Set(ended.map((line) => line.try)).size, wanted);
  }
  const [fast, after] = [tasks.get("fast"), tasks.get("after")];
  if (tick > 0 && !((after?.started_at ?? 0) >= (fast?.ended_at ?? 0)))
    problems.push(`${runId}: what comes after ran last at ${after?.started_at}, before ${fast?.ended_at}`);
  return problems;
}

/** Each rule has received each signal once, for any outcome of its actions. */
export async function judgeFlowing(installation: FaultInstallation, expected: Expected): Promise<string[]> {
  const drive = await driveOf(installation, expected.id);
  const problems: string[] = [];
  for (const task of ["flow", "chore"]) {
    for (const [index, key] of ["renew", "halt", "go"].entries()) {
      const [is, wanted] = [firings(drive, task, index), expected.fired.get(key)];
      if (is !== wanted)
        problems.push(`${expected.runId} ${task} has heard ${key} ${is} times, not ${wanted}`);
    }
  }
  return problems;
}

function firings(drive: StoredDrive, taskId: string, ruleIndex = 0): number {
  const rule = drive.rules?.find((each) => each.taskId === taskId && each.ruleIndex === ruleIndex);
  return (rule?.state as { readonly fired?: number } | undefined)?.fired ?? 0;
}
