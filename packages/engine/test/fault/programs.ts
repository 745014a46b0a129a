/**
 * Seeded random programs for the fault tests, each with the result of the reference interpreter. Only DAGs whose result does
 * not depend on the order of events are used: the tests cannot control that order, and the comparison must be exact.
 */
import { possibleEnds } from "../reference/possible-ends.ts";
import {
  type Random,
  type RandomDag,
  randomDag,
  randomOf,
  type TaskScript,
  type TryOutcome,
} from "../reference/random-dag.ts";
import {
  type ReferenceEvent,
  type ReferenceInstance,
  ReferenceRun,
} from "../reference/reference-interpreter.ts";
import { keyOf } from "../reference/reference-shape.ts";
import type { ScriptedDag, ScriptedTask } from "./scripted-dag.ts";

/** Pools of the test, name and slots; small ones, so that admission is contended. */
export const POOLS: Readonly<Record<string, number>> = { one: 1, two: 2, three: 3, five: 5 };

export interface Program {
  readonly script: ScriptedDag;
  /** For the order of starts: the rule and upstream of each task. */
  readonly dag: RandomDag;
  readonly run: "success" | "failed";
  readonly states: ReadonlyMap<string, string>;
  /** Outputs of the tasks that have one. */
  readonly outputs: ReadonlyMap<string, number>;
  /** Its task processes may be killed: each try succeeds, and there is always another. */
  readonly isSturdy: boolean;
}

export function randomPrograms(seed: number, count: number): Program[] {
  const programs: Program[] = [];
  for (let at = seed * 100_000; programs.length < count; at++) {
    const dag = sdkSkips(randomDag(at, { maxTasks: 14, failures: 0.25 }));
    const isCertain = [...possibleEnds(dag).values()].every((ends) => ends.size === 1);
    if (dag.manifest.tasks.length >= 5 && isCertain) programs.push(program(dag, randomOf(at), false));
  }
  return programs;
}

/** The same shapes, but every try succeeds and takes a while, as a target for kills. */
export function sturdyPrograms(seed: number, count: number): Program[] {
  return Array.from({ length: count }, (_, n) => {
    const dag = randomDag(seed * 100_000 + 50_000 + n, { maxTasks: 8, branches: 0, failures: 0 });
    const tasks = dag.manifest.tasks.map((task) => ({ ...task, rule: "allSuccess" as const, retries: 50 }));
    const scripts = new Map(tasks.map(({ taskId }) => [taskId, SUCCEEDS]));
    const manifest = { ...dag.manifest, dagId: `sturdy_${n}`, tasks };
    return program({ ...dag, manifest, scripts }, randomOf(dag.seed), true);
  });
}

const SUCCEEDS: TaskScript = { tries: ["success"], skip: [] };

/** A branch does not skip tasks that are also reachable from a task it chose: the skips of the SDK's choice. */
function sdkSkips(dag: RandomDag): RandomDag {
  const scripts = new Map(dag.scripts);
  for (const [id, script] of dag.scripts) {
    if (script.skip.length === 0 || isShortCircuit(dag, id)) continue;
    const kept = behind(dag, followed(dag, id));
    scripts.set(id, { ...script, skip: script.skip.filter((other) => !kept.has(other)) });
  }
  return { ...dag, scripts };
}

function isShortCircuit(dag: RandomDag, id: string): boolean {
  const { skip } = dag.scripts.get(id) as TaskScript;
  return skip.length > 0 && skip.length === behind(dag, [id]).size;
}

function followed(dag: RandomDag, id: string): string[] {
  const { skip } = dag.scripts.get(id) as TaskScript;
  return downstream(dag, id).filter((other) => !skip.includes(other));
}

function downstream(dag: RandomDag, id: string): string[] {
  return dag.manifest.tasks.filter((task) => task.upstream.includes(id)).map((task) => task.taskId);
}

/** Everything downstream of these tasks, without the tasks themselves. */
function behind(dag: RandomDag, ids: readonly string[]): Set<string> {
  const found = new Set<string>();
  const follow = (id: string): void => {
    for (const next of downstream(dag, id)) {
      if (found.has(next)) continue;
      found.add(next);
      follow(next);
    }
  };
  ids.forEach(follow);
  return found;
}

function program(dag: RandomDag, random: Random, isSturdy: boolean): Program {
  const kinds = new Map(dag.manifest.tasks.map(({ taskId }) => [taskId, kindOf(dag, taskId)]));
  const tasks = [...dag.manifest.tasks].sort((a, b) => Number(a.taskId.slice(1)) - Number(b.taskId.slice(1)));
  const scripted = tasks.map((task): ScriptedTask => {
    const { tries } = dag.scripts.get(task.taskId) as TaskScript;
    const pool = random.chance(0.5) ? "default_pool" : random.one(Object.keys(POOLS));
    return {
      id: task.taskId,
      kind: kinds.get(task.taskId) as ScriptedTask["kind"],
      after: task.upstream,
      inputs: task.rule === "allSuccess" ? task.upstream.filter((id) => kinds.get(id) === "task") : [],
      options: {
        rule: task.rule,
        retries: task.retries,
        retryDelay: 20 + random.below(isSturdy ? 50 : 400),
        pool,
        poolSlots: 1 + random.below(Math.min(2, POOLS[pool] ?? 2)),
        priority: 1 + random.below(5),
        ...(random.chance(0.1) ? { maxActivePerDag: 1 + random.below(2) } : {}),
        ...(random.chance(0.02) ? { isolation: "fresh" } : {}),
      },
      tries,
      chosen: followed(dag, task.taskId),
      own: random.below(1_000),
      workMs: isSturdy || random.chance(0.3) ? 100 + random.below(400) : random.below(60),
      isBusy: random.chance(0.03),
    };
  });
  const { run, states } = foretell(dag);
  return {
    script: { id: dag.manifest.dagId, tasks: scripted },
    dag,
    run,
    states,
    outputs: sums(scripted, states),
    isSturdy,
  };
}

function kindOf(dag: RandomDag, id: string): ScriptedTask["kind"] {
  if (isShortCircuit(dag, id)) return "shortCircuit";
  return dag.scripts.get(id)?.skip.length ? "branch" : "task";
}

function sums(tasks: readonly ScriptedTask[], states: ReadonlyMap<string, string>): Map<string, number> {
  const outputs = new Map<string, number>();
  for (const task of tasks) {
    if (task.kind !== "task" || states.get(task.id) !== "success") continue;
    outputs.set(
      task.id,
      task.inputs.reduce((sum, id) => sum + (outputs.get(id) ?? Number.NaN), task.own),
    );
  }
  return outputs;
}

/** Runs the reference interpreter in one of the orders, which all give the same result. */
function foretell(dag: RandomDag): { run: "success" | "failed"; states: Map<string, string> } {
  const reference = new ReferenceRun(dag.manifest);
  while (reference.end() === "running") {
    const one = reference.instances().find((i) => ACTIVE.has(i.state)) as ReferenceInstance;
    reference.happen(next(dag, one));
  }
  return {
    run: reference.end() === "success" ? "success" : "failed",
    states: new Map(reference.instances().map((i) => [i.taskId, i.state])),
  };
}

const ACTIVE: ReadonlySet<string> = new Set(["scheduled", "queued", "running", "up_for_retry"]);

function next(dag: RandomDag, one: ReferenceInstance): ReferenceEvent {
  const of = keyOf(one.taskId, one.path);
  if (one.state === "scheduled") return { what: "queue", of };
  if (one.state === "queued") return { what: "start", of };
  if (one.state === "up_for_retry") return { what: "wake", of };
  const { skip } = dag.scripts.get(one.taskId) as TaskScript;
  const outcome = scriptedOutcome(dag, one.taskId, one.tries);
  if (outcome === "success") return { what: "succeed", of, skip };
  if (outcome === "skip") return { what: "skip", of };
  return { what: "fail", of, retry: outcome === "failure" };
}

export function scriptedOutcome(dag: RandomDag, taskId: string, tryNumber: number): TryOutcome {
  const { tries } = dag.scripts.get(taskId) as TaskScript;
  return tries[Math.min(tryNumber, tries.length) - 1] as TryOutcome;
}
