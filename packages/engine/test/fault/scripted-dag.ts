/**
 * A DAG built from a script with the real SDK. Imported by the DAG files that the fault tests write, so it runs in task
 * processes. The outcome of a try is a function of (task, try number) alone, so lost attempts do not change the result of
 * the run. Every attempt writes to the ledger, a file that the engine does not use.
 */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type AnyOutput,
  type Dag,
  type DagBuilder,
  dag,
  every,
  fail,
  skip,
  type TaskContext,
} from "tradewind";
import type { TryOutcome } from "../reference/random-dag.ts";
import { record } from "./ledger-note.ts";

export interface ScriptedTask {
  readonly id: string;
  readonly kind: "task" | "branch" | "shortCircuit";
  /** Upstream tasks; `inputs` of them by data, which needs the rule `allSuccess`. */
  readonly after: readonly string[];
  readonly inputs: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
  /** The outcomes of try 1, 2, ...; the last one applies to all further tries. */
  readonly tries: readonly TryOutcome[];
  /** The tasks that a branch chooses. */
  readonly chosen: readonly string[];
  readonly own: number;
  readonly workMs: number;
  readonly isBusy: boolean;
  /** The task continues only when this file exists, or one with the pid of its scheduler appended. */
  readonly gate?: string;
}

/** Succeeds at once, without upstream tasks. */
export const PLAIN_TASK = {
  kind: "task",
  after: [],
  inputs: [],
  options: {},
  tries: ["success"],
  chosen: [],
  own: 1,
  workMs: 0,
  isBusy: false,
} as const;

export interface ScriptedDag {
  readonly id: string;
  readonly tasks: readonly ScriptedTask[];
  /** Creates a run at this interval, starting at this moment. */
  readonly every?: { readonly duration: string; readonly start: string };
  readonly maxActiveRuns?: number;
}

export function scriptedDag(script: ScriptedDag): Dag {
  const schedule = script.every
    ? { schedule: every(script.every.duration as "1s"), start: script.every.start, catchup: true }
    : {};
  return dag(script.id, { maxActiveRuns: script.maxActiveRuns ?? 64, ...schedule }, (d) => {
    const handles = new Map<string, AnyOutput>();
    for (const task of script.tasks) handles.set(task.id, addTask(d, task, handles));
  });
}

function addTask(d: DagBuilder, task: ScriptedTask, handles: ReadonlyMap<string, AnyOutput>): AnyOutput {
  const handle = (id: string) => handles.get(id) as AnyOutput;
  const options = {
    ...task.options,
    after: task.after.filter((id) => !task.inputs.includes(id)).map(handle),
    inputs: Object.fromEntries(task.inputs.map((id) => [id, handle(id)])),
  };
  // The script is data: the compiler cannot check its inputs and rules.
  type Inputs = Readonly<Record<string, number>>;
  const run = (inputs: unknown, ctx: TaskContext) => perform(task, inputs as Inputs, ctx);
  if (task.kind === "branch")
    return d.branch(task.id, options as object, (inputs, ctx) =>
      run(inputs, ctx).then((end) => (typeof end === "number" ? task.chosen : end)),
    );
  if (task.kind === "shortCircuit")
    return d.shortCircuit(task.id, options as object, (inputs, ctx) =>
      run(inputs, ctx).then((end) => (typeof end === "number" ? false : end)),
    );
  return d.task(task.id, options as object, run);
}

async function perform(task: ScriptedTask, inputs: Readonly<Record<string, number>>, ctx: TaskContext) {
  const outcome = task.tries[Math.min(ctx.tryNumber, task.tries.length) - 1] as TryOutcome;
  record(ctx, { event: "start", outcome });
  if (task.isBusy) spin(task.workMs);
  else await sleep(task.workMs);
  if (task.gate) {
    await opened(task.gate, ctx.abort).catch((error) => {
      record(ctx, { event: "abort", outcome });
      throw error;
    });
  }
  record(ctx, { event: "end", outcome });
  return endScripted(outcome, () => Object.values(inputs).reduce((sum, value) => sum + value, task.own));
}

/** Ends a try as its script says. */
export function endScripted<T>(outcome: TryOutcome, result: () => T) {
  switch (outcome) {
    case "success":
      return result();
    case "skip":
      return skip("scripted");
    case "failureForGood":
      return fail("scripted, without retry");
    case "failure":
      throw new Error("scripted");
  }
}

async function opened(gate: string, signal: AbortSignal): Promise<void> {
  const keys = [gate, `${gate}.${process.ppid}`];
  while (!keys.some((key) => existsSync(key))) await sleep(5, undefined, { signal });
}

function spin(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}
