/**
 * The final verdict: compares the database rows of every wait and attempt, the reports of the tasks and triggers, and the
 * script. Each check yields its findings in words; none means success.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { FaultInstallation } from "./installation.ts";
import { type GoneTrigger, goneTriggers } from "./wait-audit.ts";
import { TIMED_OUT, type WaitLine, type WitnessedAttempt, witnessedAttempts } from "./wait-ledger.ts";
import { WaitClock } from "./wait-times.ts";
import { type WaitingDag, type WaitingTask, type WaitScript, waitsOf } from "./waiting-dag.ts";

/** Instants are milliseconds. */
export interface WaitRow {
  readonly attempt: string;
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly try_number: number;
  readonly trigger_id: number;
  readonly waits_on: number | null;
  readonly name: string | null;
  readonly kwargs: { readonly passed?: number };
  readonly timeout_at: number | null;
  readonly deferred_at: number;
  readonly fired_at: number | null;
  readonly ended_at: number | null;
  readonly end_kind: string | null;
  readonly outcome: WaitOutcome | null;
}

type WaitOutcome =
  | { readonly kind: "event"; readonly payload: Json }
  | { readonly kind: "ending"; readonly ending: { readonly kind: string; readonly output?: Json } }
  | { readonly kind: "failed"; readonly error: { readonly code: string | null } }
  | { readonly kind: "timeout" };

interface InstanceRow {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly state: string;
  readonly try_number: number;
  readonly max_tries: number;
  readonly attempt: string | null;
  readonly reason: string | null;
}

export interface RunRow {
  readonly id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly state: string;
  readonly conf: Readonly<Record<string, Json>>;
}

export interface WaitVerdict {
  readonly problems: string[];
  readonly runs: number;
  readonly waits: number;
  readonly attempts: number;
  /** Attempts that were lost, and how many of them had resumed after a wait. */
  readonly lost: number;
  readonly lostBehindWaits: number;
  readonly races: { readonly event: number; readonly timeout: number };
  readonly quarantined: number;
  /** The time from an open, awaited gate until the event was stored: the median and the longest. */
  readonly notifiedAfterMs: readonly [number, number];
}

const MS = (column: string) => `extract(epoch FROM d.${column})::float8 * 1000 AS ${column}`;

export async function judgeWaits(
  installation: FaultInstallation,
  dags: readonly WaitingDag[],
  opened: ReadonlyMap<string, number>,
): Promise<WaitVerdict> {
  const runs = await installation.sql<RunRow>("SELECT id, dag_id, run_id, state, conf FROM dag_run");
  const waits = await installation.sql<WaitRow>(
    `SELECT d.attempt, d.dag_run_id, d.task_id, d.try_number, d.trigger_id, d.waits_on, d.name, d.kwargs, d.end_kind,
            d.outcome, ${["timeout_at", "deferred_at", "fired_at", "ended_at"].map(MS).join(", ")}
     FROM deferral d ORDER BY d.deferred_at`,
  );
  const instances = await installation.sql<InstanceRow>("SELECT * FROM task_instance");
  const lost = await installation.sql<{ attempt: string }>(
    "SELECT attempt FROM task_attempt WHERE state = 'failed'",
  );
  const given = new Set(lost.map(({ attempt }) => attempt));
  const witnessed = witnessedAttempts(installation.ledger.path);
  const witnessedOf = Map.groupBy(witnessed.values(), ({ start }) => key(start.dag, start.run, start.task));
  const instanceOf = new Map(instances.map((row) => [`${row.dag_run_id} ${row.task_id}`, row]));
  const waitsAt = Map.groupBy(waits, (row) => `${row.dag_run_id} ${row.task_id}`);
  const gone = await goneTriggers(installation);
  const clock = new WaitClock(opened);
  const scripts = new Map(dags.map((dag) => [dag.id, dag]));
  const races = { event: 0, timeout: 0 };
  let quarantined = 0;
  const problems: string[] = [];
  for (const run of runs) {
    if (run.state !== "success") problems.push(`${run.dag_id} ${run.run_id} ended as ${run.state}`);
    for (const task of scripts.get(run.dag_id)?.tasks ?? []) {
      const rows = waitsAt.get(`${run.id} ${task.id}`) ?? [];
      const judge = new TaskJudge({
        task,
        run,
        instance: instanceOf.get(`${run.id} ${task.id}`),
        rows,
        witnessed: witnessedOf.get(key(run.dag_id, run.run_id, task.id)) ?? [],
        given,
        gone,
        clock,
      });
      for (const problem of judge.problems())
        problems.push(`${run.dag_id} ${run.run_id} ${task.id} (${task.kind}): ${problem}`);
      for (const kind of judge.races) races[kind]++;
      if (judge.isBlocked) quarantined++;
    }
  }
  const known = new Set([
    ...given,
    ...waits.map((row) => row.attempt),
    ...instances.map((row) => row.attempt),
  ]);
  for (const [attempt, { start }] of witnessed)
    if (!known.has(attempt)) problems.push(`an attempt with unknown end: ${JSON.stringify(start)}`);
  const lostAtWork = [...witnessed].filter(([attempt]) => given.has(attempt)).map(([, each]) => each);
  return {
    problems,
    runs: runs.length,
    waits: waits.length,
    attempts: witnessed.size,
    lost: lostAtWork.length,
    lostBehindWaits: lostAtWork.filter(({ passed }) => passed.length > 0).length,
    races,
    quarantined,
    notifiedAfterMs: clock.notifiedAfterMs(),
  };
}

function key(dag: string, run: string, task: string): string {
  return JSON.stringify([dag, run, task]);
}

interface TaskFacts {
  readonly task: WaitingTask;
  readonly run: RunRow;
  readonly instance: InstanceRow | undefined;
  /** In the order in which they began. */
  readonly rows: readonly WaitRow[];
  readonly witnessed: readonly WitnessedAttempt[];
  /** Attempts that ended without an effect. */
  readonly given: ReadonlySet<string>;
  readonly gone: ReadonlyMap<number, GoneTrigger>;
  readonly clock: WaitClock;
}

/** The result of a try. "retry": it failed, and another one follows if any is left. */
type End = "success" | "skipped" | "failed" | "retry";

/** Follows one task through its script and its waits. */
class TaskJudge {
  readonly races: ("event" | "timeout")[] = [];
  isBlocked = false;
  readonly #facts: TaskFacts;

  constructor(facts: TaskFacts) {
    this.#facts = facts;
  }

  *problems(): Iterable<string> {
    const { instance, rows } = this.#facts;
    if (instance === undefined) return yield "has no instance";
    const { try_number: last, max_tries: retries, state } = instance;
    for (let number = 1; number <= last; number++) {
      const end = yield* this.#try(number, instance);
      if (end === null) return;
      const isLast = end !== "retry" || number > retries;
      const wanted = end === "retry" ? "failed" : end;
      if (isLast !== (number === last)) yield `try ${number} of ${last} came to ${end}`;
      if (isLast && state !== wanted) yield `is ${state}, not ${wanted} (${instance.reason})`;
    }
    if (rows.some((row) => row.try_number > last)) yield "has waits of tries that never ran";
  }

  /** null: the result cannot be determined. */
  *#try(number: number, instance: InstanceRow): Generator<string, End | null> {
    const { task, rows } = this.#facts;
    const own = rows.filter((row) => row.try_number === number);
    const script = waitsOf(task, number);
    const what = (step: number) => `wait ${step} of try ${number} (${script[step]?.kind})`;
    let end: End | null = null;
    let step = 0;
    for (; step < script.length && end === null; step++) {
      const row = own[step];
      if (row === undefined) {
        yield `${what(step)} never began: ${instance.state}, ${instance.reason}`;
        return null;
      }
      for (const problem of this.#wait(row, script[step] as WaitScript, step))
        yield `${what(step)} ${problem}: ${JSON.stringify(row)}`;
      end = this.#sequel(row, script[step] as WaitScript);
    }
    if (own.length > step) yield `${what(step)} and ${own.length - step - 1} more began once too often`;
    yield* this.#attempts(number, own.slice(0, step), { isEnded: end === null, instance });
    return end ?? "success";
  }

  *#wait(row: WaitRow, wait: WaitScript, step: number): Iterable<string> {
    const { task, run, gone, clock } = this.#facts;
    const kind = row.outcome?.kind ?? "nothing";
    if (!OUTCOMES[wait.kind].includes(kind)) yield `came to ${kind}`;
    if (row.ended_at === null || row.waits_on !== null) yield "has not ended";
    if ((row.fired_at === null) !== (kind === "timeout")) yield "fired and timed out, or neither";
    const goesOn = kind === "event" && task.kind !== "node";
    const endKind = kind === "timeout" ? "timeout" : goesOn ? "resumed" : "finished";
    if (row.end_kind !== endKind) yield `is ${row.end_kind}, not ${endKind}`;
    const isAtItsPlace =
      task.kind === "function" ? row.name === `wait ${step}` : (row.kwargs.passed ?? 1) === step + 1;
    if (!isAtItsPlace) yield "is at the wrong step";
    const trigger = gone.get(row.trigger_id);
    yield* clock.early({ row, wait, conf: run.conf, trigger });
    const teller = reporterOf(row.outcome);
    if (teller !== null && !trigger?.pids.includes(teller))
      yield `was reported by process ${teller}, but its trigger belonged to ${trigger?.pids.join()}`;
    if (wait.kind === "race" && (kind === "event" || kind === "timeout")) this.races.push(kind);
    if (row.outcome?.kind === "failed") {
      const { code } = row.outcome.error;
      // A trigger whose process was killed twice while it blocked it is blamed for that.
      if (code !== "TRIGGER_BLOCKED" && code !== "TRIGGER_CRASHED") yield `failed with ${code}`;
      this.isBlocked ||= code === "TRIGGER_BLOCKED";
    }
  }

  /** The next action of the task; null: it continues. */
  #sequel({ outcome }: WaitRow, wait: WaitScript): End | null {
    const { kind } = this.#facts.task;
    if (outcome?.kind === "failed") return "retry";
    if (outcome?.kind === "timeout" && kind !== "function") {
      const onTimeout = wait.kind === "starve" ? wait.onTimeout : "skip";
      return onTimeout === "skip" ? "skipped" : onTimeout === "fail" ? "retry" : "failed";
    }
    if (wait.kind === "ending") {
      const ends = { success: "success", skip: "skipped", fail: "retry", fatal: "failed" } as const;
      return ends[wait.how];
    }
    return kind === "node" ? "success" : null;
  }

  /** Of the attempts that resumed after a wait exactly one counts, and all of them saw the same event. */
  *#attempts(
    number: number,
    rows: readonly WaitRow[],
    end: { readonly isEnded: boolean; readonly instance: InstanceRow },
  ): Iterable<string> {
    const { task, witnessed, given } = this.#facts;
    const effective = rows.map((row): string | null => row.attempt);
    // The try ended in a worker, not by a trigger: by the current attempt of the task.
    if (end.isEnded) effective.push(end.instance.attempt);
    const withoutWorker = task.kind === "node" || task.kind === "start" ? 1 : 0;
    const lived = witnessed.filter(({ start }) => start.try === number);
    for (const [depth, attempt] of effective.entries()) {
      if (depth < withoutWorker) continue;
      const seen = lived.find(({ start }) => start.attempt === attempt);
      if (seen === undefined) yield `try ${number}: attempt ${attempt} counts, but is not in the ledger`;
      else if (depthOf(seen) !== depth)
        yield `attempt ${attempt} resumed after ${depthOf(seen)} waits, not ${depth}`;
      else if (depth === rows.length && !seen.isEnded) yield `attempt ${attempt} counts, but never ended`;
    }
    for (const { start, passed, done } of lived) {
      const counts = effective.includes(start.attempt);
      if (!counts && !given.has(start.attempt))
        yield `attempt ${start.attempt} of try ${number} resumed, but another one counts`;
      for (const line of passed) yield* this.#pass(line, rows[line.step ?? -1]);
      for (const step of counts ? done : [])
        if (
          lived.some(
            (other) =>
              other.start !== start && effective.includes(other.start.attempt) && other.done.includes(step),
          )
        )
          yield `step ${step} of try ${number} was done twice`;
    }
  }

  *#pass(line: WaitLine, row: WaitRow | undefined): Iterable<string> {
    if (row === undefined) return yield `resumed after a wait that never existed: ${JSON.stringify(line)}`;
    const told = row.outcome?.kind === "event" ? row.outcome.payload : TIMED_OUT;
    if (JSON.stringify(line.event) !== JSON.stringify(told))
      yield `received ${JSON.stringify(line.event)}, but the stored event is ${JSON.stringify(told)}`;
    const over = row.fired_at ?? row.ended_at ?? Number.POSITIVE_INFINITY;
    // The machine's clock in whole milliseconds.
    if (line.wall < Math.floor(over)) yield `resumed ${over - line.wall} ms before the wait ended`;
  }
}

const OUTCOMES: Readonly<Record<WaitScript["kind"], readonly string[]>> = {
  delta: ["event"],
  moment: ["event"],
  gate: ["event"],
  twin: ["event"],
  cold: ["event"],
  joint: ["event"],
  ending: ["ending"],
  starve: ["timeout"],
  race: ["event", "timeout"],
  busy: ["failed"],
};

/** An operator receives only its last wait, a function all of them. */
function depthOf({ passed }: WitnessedAttempt): number {
  return (passed.at(-1)?.step ?? -1) + 1;
}

/** The process of the triggerer that reported it, if the event contains it. */
function reporterOf(outcome: WaitOutcome | null): number | null {
  const said =
    outcome?.kind === "event" ? outcome.payload : outcome?.kind === "ending" ? outcome.ending.output : null;
  if (typeof said !== "object" || said === null) return null;
  const { by, gate } = said as { by?: number; gate?: Json };
  if (by !== undefined) return by;
  return typeof gate === "object" && gate !== null ? ((gate as { by?: number }).by ?? null) : null;
}
