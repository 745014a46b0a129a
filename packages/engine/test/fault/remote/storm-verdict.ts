/** The verdict of the storm: compares the database with what the attempts themselves have written. */
import { LEASE_ENDED } from "../../../src/execute/local/execution-lease.ts";
import type { FaultInstallation } from "../installation.ts";
import type { Witnessed } from "../ledger.ts";
import { OWN_FAILURE } from "../verdict.ts";
import { LONG_MS, type Made, triesOf, UPSTREAM } from "./storm-dag.ts";
import type { StormDeck, Trouble, WatchedAttempt } from "./storm-deck.ts";

interface InstanceRow {
  readonly run: string;
  readonly task: string;
  readonly state: string;
  readonly tries: number;
  readonly attempt: string | null;
  readonly results: readonly Made[];
}

interface AttemptRow {
  readonly run: string;
  readonly task: string;
  readonly try_number: number;
  readonly attempt: string;
  readonly reason: string | null;
}

export interface StormVerdict {
  readonly problems: string[];
  readonly attempts: number;
  /** Attempts that were followed by another one in the same try. */
  readonly lost: number;
  /** Lost attempts that had done their work: their reports came too late. */
  readonly superseded: number;
  /** Attempts that were running on a live worker when their scheduler died, and had to end normally. */
  readonly undisturbed: number;
  /** Those whose worker failed, too. */
  readonly excused: number;
}

/** How long a report may take, and how long before a fault a lease may have been renewed last. */
const SLACK_MS = 3_000;

export async function judgeStorm(
  installation: FaultInstallation,
  deck: Pick<StormDeck, "watched" | "troubles">,
  runs: readonly string[],
): Promise<StormVerdict> {
  const witnessed = installation.ledger.attempts();
  const problems: string[] = [];
  const states = await installation.sql<{ run_id: string; state: string }>(
    "SELECT run_id, state FROM dag_run",
  );
  const ended = new Map(states.map(({ run_id, state }) => [run_id, state]));
  for (const run of runs) {
    const state = ended.get(run) ?? "absent";
    if (state !== "success") problems.push(`${run} is ${state}`);
  }
  const instances = await installation.sql<InstanceRow>(
    `SELECT r.run_id AS run, t.task_id AS task, t.state, t.try_number AS tries, t.attempt,
       array(SELECT x.value FROM xcom x WHERE x.dag_run_id = r.id AND x.task_id = t.task_id
             AND x.key = 'return_value') AS results
     FROM task_instance t JOIN dag_run r ON r.id = t.dag_run_id`,
  );
  const history = await installation.sql<AttemptRow>(
    `SELECT r.run_id AS run, h.task_id AS task, h.try_number, h.attempt, h.reason
     FROM task_attempt h JOIN dag_run r ON r.id = h.dag_run_id`,
  );
  const failed = history.filter(({ reason }) => OWN_FAILURE.test(reason ?? ""));
  const lost = history.filter(({ reason }) => !OWN_FAILURE.test(reason ?? ""));
  const effective = new Set([...instances, ...failed].map(({ attempt }) => attempt));
  const keyOf = ({ run, task }: { run: string; task: string }) => `${run} ${task}`;
  const byTask = new Map(instances.map((row) => [keyOf(row), row]));
  const failures = Map.groupBy(failed, keyOf);
  const expected = runs.length * Object.keys(UPSTREAM).length;
  if (instances.length !== expected) problems.push(`${instances.length} tasks, not ${expected}`);
  for (const row of instances) {
    const from = UPSTREAM[row.task]!.map((task) => byTask.get(keyOf({ run: row.run, task }))?.attempt);
    const tried = failures.get(keyOf(row)) ?? [];
    problems.push(...problemsOf(row, { from, tried, witnessed }).map((what) => `${keyOf(row)} ${what}`));
  }
  const known = new Set([...effective, ...lost.map(({ attempt }) => attempt)]);
  for (const [attempt, { start }] of witnessed)
    if (!known.has(attempt)) problems.push(`${keyOf(start)} ran attempt ${attempt}, which is not recorded`);
  const dead = await installation.sql<{ id: number }>("SELECT id FROM job WHERE state = 'dead'");
  const isDead = new Set(dead.map(({ id }) => id));
  const reasons = new Map(lost.map(({ attempt, reason }) => [attempt, reason]));
  const live = deck.watched.filter(
    (attempt) =>
      // Its worker could not renew its lease in time, and stopped the attempt itself.
      reasons.get(attempt.id) !== LEASE_ENDED && !isExcused(attempt, deck.troubles, { witnessed, isDead }),
  );
  for (const { how, id, worker } of live)
    if (!effective.has(id))
      problems.push(`${id} on worker ${worker} ended by "${reasons.get(id)}": its scheduler was ${how}`);
  return {
    problems,
    attempts: witnessed.size,
    lost: lost.length,
    superseded: lost.filter(({ attempt }) => witnessed.get(attempt)?.end).length,
    undisturbed: live.length,
    excused: deck.watched.length - live.length,
  };
}

/** Each try was ended by one attempt, which ran once; the stored result is that of the last one. */
function problemsOf(
  row: InstanceRow,
  {
    from,
    tried,
    witnessed,
  }: {
    readonly from: readonly (string | null | undefined)[];
    readonly tried: readonly AttemptRow[];
    readonly witnessed: ReadonlyMap<string, Witnessed>;
  },
): string[] {
  const problems: string[] = [];
  const tries = triesOf(row.run, row.task);
  if (row.state !== "success" || row.tries !== tries)
    problems.push(`is ${row.state} after ${row.tries} tries, not success after ${tries}`);
  if (row.results.length !== 1) problems.push(`has ${row.results.length} results`);
  const [result] = row.results;
  if (result?.attempt !== row.attempt)
    problems.push(`has the result of ${result?.attempt}, and ended with ${row.attempt}`);
  if (result?.from.join() !== from.join()) problems.push(`has read ${result?.from}, not ${from}`);
  const last = { attempt: row.attempt ?? "", try_number: row.tries, reason: row.state };
  const counted = [...tried, last];
  for (let number = 1; number <= tries; number++) {
    const those = counted.filter(({ try_number }) => try_number === number);
    const seen = witnessed.get(those[0]?.attempt ?? "");
    const how = `${those[0]?.attempt} on ${seen?.start.scheduler}: ${those[0]?.reason}`;
    if (those.length !== 1) problems.push(`has ${those.length} attempts that ended try ${number}`);
    else if (!seen?.end) problems.push(`ended try ${number} with an attempt that has not ended (${how})`);
    else if (seen.start.try !== number) problems.push(`ran try ${number} as ${seen.start.try}`);
  }
  return problems;
}

/** Its worker failed at that time, or was declared dead. */
function isExcused(
  { at, id, worker, workerJob }: WatchedAttempt,
  troubles: readonly Trouble[],
  { isDead, witnessed }: { isDead: ReadonlySet<number>; witnessed: ReadonlyMap<string, Witnessed> },
): boolean {
  if (isDead.has(workerJob)) return true;
  const until = witnessed.get(id)?.end?.at ?? at + LONG_MS;
  return troubles.some(
    (trouble) => trouble.worker === worker && trouble.from < until + SLACK_MS && trouble.to > at - SLACK_MS,
  );
}
