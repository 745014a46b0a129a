/**
 * The final verdict: compares the database, the ledger and the result of the reference interpreter. Each check yields its
 * findings in words; none means success.
 */
import { judgeByRule, type ReferenceState } from "../reference/reference-rules.ts";
import type { FaultInstallation } from "./installation.ts";
import type { Witnessed } from "./ledger.ts";
import { type Program, scriptedOutcome } from "./programs.ts";

interface InstanceRow {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly state: string;
  readonly try_number: number;
  readonly attempt: string | null;
  readonly output: number | null;
}

interface AttemptRow {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly try_number: number;
  readonly attempt: string;
  readonly reason: string | null;
}

interface RunRow {
  readonly id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly state: string;
}

export interface Verdict {
  readonly problems: string[];
  readonly runs: number;
  readonly attempts: number;
  /** Attempts that were lost. */
  readonly lost: number;
  /** How many of them were working when they were killed. */
  readonly killedAtWork: number;
  /** How many of them had done their work, so that their reports came, or would have come, too late. */
  readonly superseded: number;
}

/** The reasons that a task itself gives for a failed try. Other reasons mark lost attempts. */
export const OWN_FAILURE = /^(Error: scripted|TaskFailed: scripted|TASK_PROCESS_DIED)/;

export async function judge(installation: FaultInstallation, programs: readonly Program[]): Promise<Verdict> {
  const byDag = new Map(programs.map((program) => [program.script.id, program]));
  // Read before the database: later ticks are in the ledger only after that.
  const before = installation.ledger.attempts();
  const runs = await installation.sql<RunRow>(
    "SELECT id, dag_id, run_id, state FROM dag_run WHERE dag_id = ANY($1)",
    [[...byDag.keys()]],
  );
  const instances = await installation.sql<InstanceRow>(
    `SELECT t.dag_run_id, t.task_id, t.state, t.try_number, t.attempt, x.value AS output
     FROM task_instance t LEFT JOIN xcom x ON x.dag_run_id = t.dag_run_id AND x.task_id = t.task_id
       AND x.key = 'return_value'`,
  );
  const history = await installation.sql<AttemptRow>(
    "SELECT dag_run_id, task_id, try_number, attempt, reason FROM task_attempt",
  );
  const witnessed = installation.ledger.attempts();
  const instancesOf = Map.groupBy(instances, (row) => row.dag_run_id);
  const historyOf = Map.groupBy(history, (row) => row.dag_run_id);
  const problems: string[] = [];
  for (const run of runs) {
    const program = byDag.get(run.dag_id) as Program;
    const facts: RunFacts = {
      run,
      program,
      instances: instancesOf.get(run.id) ?? [],
      history: historyOf.get(run.id) ?? [],
      witnessed,
    };
    for (const problem of [...ends(facts), ...tries(facts), ...order(facts)])
      problems.push(`${run.dag_id} ${run.run_id}: ${problem}`);
  }
  const known = new Set([...history.map((row) => row.attempt), ...instances.map((row) => row.attempt)]);
  for (const [attempt, { start }] of before)
    if (!known.has(attempt))
      problems.push(`an attempt that is unknown to the database: ${JSON.stringify(start)}`);
  const lost = history.filter((row) => !OWN_FAILURE.test(row.reason ?? ""));
  return {
    problems,
    runs: runs.length,
    attempts: witnessed.size,
    lost: lost.length,
    killedAtWork: lost.filter(({ attempt }) => witnessed.get(attempt)?.end === null).length,
    superseded: lost.filter(({ attempt }) => witnessed.get(attempt)?.end).length,
  };
}

interface RunFacts {
  readonly run: RunRow;
  readonly program: Program;
  readonly instances: readonly InstanceRow[];
  readonly history: readonly AttemptRow[];
  readonly witnessed: ReadonlyMap<string, Witnessed>;
}

/** States and outputs are exactly the expected ones. */
function* ends({ run, program, instances }: RunFacts): Iterable<string> {
  if (run.state !== program.run) yield `ended as ${run.state}, not as ${program.run}`;
  if (instances.length !== program.states.size)
    yield `has ${instances.length} tasks, not ${program.states.size}`;
  for (const { task_id: task, state, output } of instances) {
    if (state !== program.states.get(task)) yield `${task} is ${state}, not ${program.states.get(task)}`;
    const wanted = program.outputs.get(task);
    if (wanted !== undefined && output !== wanted) yield `${task} has output ${output}, not ${wanted}`;
    if (state !== "success" && output !== null) yield `${task} is ${state} and yet has output ${output}`;
  }
}

/** Each counted try was run by exactly one attempt, with the scripted outcome. */
function* tries({ program, instances, history, witnessed }: RunFacts): Iterable<string> {
  for (const row of instances) {
    const ran =
      ["success", "failed"].includes(row.state) || (row.state === "skipped" && row.attempt !== null);
    for (let number = 1; number <= row.try_number; number++) {
      const isLast = number === row.try_number;
      if (isLast && !ran) continue;
      const past = history.filter((each) => each.task_id === row.task_id && each.try_number === number);
      const counted = past.filter((each) => OWN_FAILURE.test(each.reason ?? "")).map((each) => each.attempt);
      if (isLast && row.attempt !== null) counted.push(row.attempt);
      const what = `try ${number} of ${row.task_id}`;
      if (counted.length !== 1) yield `${what} was ended by ${counted.length} attempts`;
      const seen = witnessed.get(counted[0] ?? "");
      if (!seen) yield `${what} counts, but was never started`;
      else if (seen.start.try !== number) yield `${what} ran as try ${seen.start.try}`;
      // The process of a sturdy task may have been killed, which ended the try.
      else if (!seen.end && !(program.isSturdy && !isLast)) yield `${what} counts, but never ended`;
      else if (!program.isSturdy) yield* asScripted(program, { row, number, isLast });
    }
  }
}

function* asScripted(
  { dag }: Program,
  { row, number, isLast }: { row: InstanceRow; number: number; isLast: boolean },
): Iterable<string> {
  const outcome = scriptedOutcome(dag, row.task_id, number);
  const said = outcome.startsWith("failure") ? "failed" : outcome === "skip" ? "skipped" : "success";
  if (isLast ? row.state !== said : outcome !== "failure")
    yield `try ${number} of ${row.task_id} ended with ${outcome}, but the task is ${row.state}`;
}

/** No attempt, not even a lost one, started before the rule of its task was satisfied. */
function* order({ run, program, instances, witnessed }: RunFacts): Iterable<string> {
  const rows = new Map(instances.map((row) => [row.task_id, row]));
  const tasks = new Map(program.dag.manifest.tasks.map((task) => [task.taskId, task]));
  const endedBefore = (task: string, at: number): ReferenceState => {
    const row = rows.get(task) as InstanceRow;
    const end = row.attempt === null ? null : witnessed.get(row.attempt)?.end;
    // Tasks that never ran are not in the ledger: they may have ended at any time.
    return end && end.at > at ? "pending" : (row.state as ReferenceState);
  };
  for (const { start } of witnessed.values()) {
    if (start.run !== run.run_id || start.dag !== run.dag_id) continue;
    const task = tasks.get(start.task);
    if (!task) continue;
    const states = task.upstream.map((id) => endedBefore(id, start.at));
    const verdict = judgeByRule(task.rule, { states, setups: [] });
    if (verdict !== "run")
      yield `${start.task} (${task.rule}) started when its upstream was ${states.join()}`;
  }
}

/** Exactly one run for each interval from the first to the last. */
export async function gaps(
  installation: FaultInstallation,
  dagId: string,
  stepMs: number,
): Promise<string[]> {
  const rows = await installation.sql<{ logical_date: Date }>(
    "SELECT logical_date FROM dag_run WHERE dag_id = $1 ORDER BY logical_date",
    [dagId],
  );
  const dates = rows.map((row) => row.logical_date.getTime());
  return dates.flatMap((date, n) => {
    const step = date - (dates[n - 1] ?? date - stepMs);
    return step === stepMs ? [] : [`${new Date(date).toISOString()} comes ${step} ms after the previous one`];
  });
}
