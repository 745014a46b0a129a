/**
 * The verdict on programs with maps, instance by instance: the database rows, the attempts and items in the ledger, and the
 * expected results. An output depends on all inputs of an instance and on their order: a correct one proves that a gathering
 * task received every result, in the order of the list.
 */
import type { DagManifest, MapManifest } from "@tradewind/sdk/manifest";
import { unexpandedIndex } from "../../src/model/index.ts";
import { judgeByRule, type ReferenceState } from "../reference/reference-rules.ts";
import type { ForetoldInstance } from "./foretold.ts";
import type { FaultInstallation } from "./installation.ts";
import type { Witnessed } from "./ledger.ts";
import { type MappedTask, mappedOutcome } from "./mapped-dag.ts";
import type { MappedProgram } from "./mapped-programs.ts";
import { OWN_FAILURE } from "./verdict.ts";

interface InstanceRow {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
  readonly state: string;
  readonly try_number: number;
  readonly attempt: string | null;
  readonly output: unknown;
}

interface AttemptRow {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
  readonly try_number: number;
  readonly attempt: string;
  readonly reason: string | null;
}

interface ExpansionRow {
  readonly dag_run_id: number;
  readonly map_id: string;
  readonly parent: number;
  readonly base: number;
  readonly length: number;
}

interface RunRow {
  readonly id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly state: string;
  readonly generation: number;
}

export interface MappedVerdict {
  readonly problems: string[];
  readonly runs: number;
  /** Instances of maps that ran to their end. */
  readonly instances: number;
  /** How many of them had an attempt that was lost. */
  readonly hit: number;
  /** Runs that another owner took over. */
  readonly takenOver: number;
}

export async function judgeMapped(
  installation: FaultInstallation,
  programs: readonly MappedProgram[],
): Promise<MappedVerdict> {
  const byDag = new Map(programs.map((program) => [program.script.id, program]));
  const dags = [[...byDag.keys()]];
  const of = "dag_run_id IN (SELECT id FROM dag_run WHERE dag_id = ANY($1))";
  const runs = await installation.sql<RunRow>("SELECT * FROM dag_run WHERE dag_id = ANY($1)", dags);
  const instances = await installation.sql<InstanceRow>(
    `SELECT t.*, x.value AS output FROM task_instance t LEFT JOIN xcom x ON x.dag_run_id = t.dag_run_id
       AND x.task_id = t.task_id AND x.map_index = t.map_index AND x.key = 'return_value' WHERE t.${of}`,
    dags,
  );
  const history = await installation.sql<AttemptRow>(`SELECT * FROM task_attempt WHERE ${of}`, dags);
  const expansions = await installation.sql<ExpansionRow>(`SELECT * FROM map_expansion WHERE ${of}`, dags);
  const witnessed = installation.ledger.attempts();
  const instancesOf = Map.groupBy(instances, (row) => row.dag_run_id);
  const historyOf = Map.groupBy(history, (row) => row.dag_run_id);
  const expansionsOf = Map.groupBy(expansions, (row) => row.dag_run_id);
  const problems: string[] = [];
  for (const run of runs) {
    const program = byDag.get(run.dag_id) as MappedProgram;
    const places = new Places(program.manifest, expansionsOf.get(run.id) ?? []);
    const rows = new Map(
      (instancesOf.get(run.id) ?? []).map((row) => [`${row.task_id}[${row.map_index}]`, row]),
    );
    const facts = { run, program, places, rows, history: historyOf.get(run.id) ?? [], witnessed };
    for (const problem of judgeRun(facts)) problems.push(`${run.dag_id} ${run.run_id}: ${problem}`);
  }
  const ran = instances.filter(({ map_index: index, attempt }) => index >= 0 && attempt !== null);
  const given = new Set(
    history.filter((row) => !OWN_FAILURE.test(row.reason ?? "")).map((row) => keyOf(row, row.dag_run_id)),
  );
  const hit = ran.filter((row) => given.has(keyOf(row, row.dag_run_id))).length;
  const takenOver = runs.filter(({ generation }) => generation > 1).length;
  return { problems, runs: runs.length, instances: ran.length, hit, takenOver };
}

function keyOf({ task_id: task, map_index: index }: Pick<InstanceRow, "task_id" | "map_index">, run: number) {
  return `${run} ${task}[${index}]`;
}

interface RunFacts {
  readonly run: RunRow;
  readonly program: MappedProgram;
  readonly places: Places;
  /** By task and map index. */
  readonly rows: ReadonlyMap<string, InstanceRow>;
  readonly history: readonly AttemptRow[];
  readonly witnessed: ReadonlyMap<string, Witnessed>;
}

function* judgeRun(facts: RunFacts): Iterable<string> {
  const { run, program, places, rows } = facts;
  const { foretold } = program;
  if (run.state !== foretold.run) yield `ended as ${run.state}, not as ${foretold.run}`;
  if (rows.size !== foretold.instances.length)
    yield `has ${rows.size} instances, not ${foretold.instances.length}`;
  for (const wanted of foretold.instances) {
    const row = rows.get(`${wanted.taskId}[${places.mapIndex(wanted)}]`);
    const what = `${wanted.taskId}[${wanted.path}]`;
    if (!row) yield `${what} does not exist`;
    else {
      yield* ends(what, row, wanted);
      yield* tries(what, { ...facts, row, wanted });
    }
  }
  yield* order(facts);
}

function* ends(what: string, { state, output }: InstanceRow, wanted: ForetoldInstance): Iterable<string> {
  if (state !== wanted.state) yield `${what} is ${state}, not ${wanted.state}`;
  const expected = JSON.stringify(wanted.output ?? null);
  if (JSON.stringify(output ?? null) !== expected)
    yield `${what} has output ${JSON.stringify(output)}, not ${expected}`;
}

/** Each counted try was run by exactly one attempt, for the right items, and ended as scripted. */
function* tries(
  what: string,
  { row, wanted, program, history, witnessed }: RunFacts & { row: InstanceRow; wanted: ForetoldInstance },
): Iterable<string> {
  const task = program.tasks.get(row.task_id) as MappedTask;
  const past = history.filter((each) => each.task_id === row.task_id && each.map_index === row.map_index);
  for (let number = 1; number <= row.try_number; number++) {
    const isLast = number === row.try_number;
    if (isLast && row.attempt === null) continue;
    const counted = past
      .filter((each) => each.try_number === number && OWN_FAILURE.test(each.reason ?? ""))
      .map((each) => each.attempt);
    if (isLast && row.attempt !== null) counted.push(row.attempt);
    if (counted.length !== 1) yield `try ${number} of ${what} was ended by ${counted.length} attempts`;
    const seen = witnessed.get(counted[0] ?? "");
    if (!seen) yield `try ${number} of ${what} counts, but was never started`;
    else if (seen.start.label !== wanted.label)
      yield `${what} ran for ${seen.start.label}, not ${wanted.label}`;
    else if (seen.start.try !== number) yield `try ${number} of ${what} ran as try ${seen.start.try}`;
    else if (!seen.end && !(program.isSturdy && !isLast)) yield `try ${number} of ${what} never ended`;
    else if (!program.isSturdy && seen.start.outcome !== mappedOutcome(task, wanted.label, number))
      yield `try ${number} of ${what} ended as ${seen.start.outcome}`;
  }
}

/** No attempt, not even a lost one, started before the rule of its task was satisfied. */
function* order({ run, program, places, rows, witnessed }: RunFacts): Iterable<string> {
  const { manifest, foretold } = program;
  const byLabel = new Map(foretold.instances.map((each) => [`${each.taskId} ${each.label}`, each]));
  const tasks = new Map(manifest.tasks.map((task) => [task.taskId, task]));
  const endedBefore = (other: ForetoldInstance, at: number): ReferenceState => {
    const row = rows.get(`${other.taskId}[${places.mapIndex(other)}]`);
    const end = row?.attempt ? witnessed.get(row.attempt)?.end : null;
    return end && end.at > at ? "pending" : (other.state as ReferenceState);
  };
  for (const { start } of witnessed.values()) {
    if (start.run !== run.run_id || start.dag !== run.dag_id) continue;
    const one = byLabel.get(`${start.task} ${start.label}`);
    const task = tasks.get(start.task);
    if (!one || !task) {
      yield `${start.task} ran for ${start.label}, which is not one of its items`;
      continue;
    }
    const upstream = foretold.instances.filter(
      (other) => task.upstream.includes(other.taskId) && places.counts(other, one),
    );
    const states = upstream.map((other) => endedBefore(other, start.at));
    const setups = states.filter((_, n) => tasks.get(upstream[n]?.taskId ?? "")?.role === "setup");
    if (judgeByRule(task.rule, { states, setups }) !== "run")
      yield `${start.task} for ${start.label} (${task.rule}) started when its upstream was ${states.join()}`;
  }
}

type Place = Pick<ForetoldInstance, "taskId" | "path">;

/** The names of the instances of a run in the database. */
class Places {
  readonly #manifest: DagManifest;
  readonly #bases: ReadonlyMap<string, number>;

  constructor(manifest: DagManifest, expansions: readonly ExpansionRow[]) {
    this.#manifest = manifest;
    this.#bases = new Map(expansions.map((row) => [`${row.map_id} ${row.parent}`, row.base]));
  }

  mapIndex({ taskId, path }: Place): number {
    const chain = this.#chain(taskId);
    if (chain.length === 0) return -1;
    const ordinal = path.reduce(
      (parent, index, n) => (this.#bases.get(`${chain[n]} ${parent}`) ?? Number.NaN) + index,
      -1,
    );
    return path.length === chain.length ? ordinal : unexpandedIndex(chain.length, path.length, ordinal);
  }

  /** Whether an upstream instance belongs to the same items, as far as both are in the same maps. */
  counts(other: Place, one: Place): boolean {
    const [theirs, own] = [this.#chain(other.taskId), this.#chain(one.taskId)];
    return other.path.every((index, n) => theirs[n] !== own[n] || index === one.path[n]);
  }

  #chain(taskId: string): string[] {
    const maps = new Map((this.#manifest.maps ?? []).map((map) => [map.mapId, map]));
    const chain: string[] = [];
    let at: string | null = this.#manifest.tasks.find((task) => task.taskId === taskId)?.map ?? null;
    while (at !== null) {
      chain.unshift(at);
      at = (maps.get(at) as MapManifest).parent;
    }
    return chain;
  }
}
