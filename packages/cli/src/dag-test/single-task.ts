/**
 * A DAG that is one of its tasks and nothing else, for `tasks test`. What comes before the task is given; what comes after
 * it, its retries, its callbacks and those of the DAG are left out.
 */
import type { DagManifest, Json, TaskManifest } from "@tradewind/sdk/manifest";
import type { Program, SettledInput } from "@tradewind/sdk/program";

/** What the task receives, by the name of the input, and what `ctx.output` finds, by task. */
export interface GivenInputs {
  readonly inputs: Readonly<Record<string, SettledInput>>;
  readonly outputs: Readonly<Record<string, Json>>;
}

export function singleTask(program: Program, taskId: string, { inputs, outputs }: GivenInputs): Program {
  const manifest = manifestOf(program.describe(), taskId);
  return {
    ...program,
    describe: () => manifest,
    run: (call) =>
      program.run({ ...call, inputs, host: { ...call.host, output: async (id) => outputs[id] } }),
    // The end of a wait is part of the task; its other callbacks are part of a run.
    callback: async (call) => (call.event === "cancel" ? program.callback(call) : { ok: true }),
  };
}

function manifestOf(whole: DagManifest, taskId: string): DagManifest {
  const { deadlines, maps, notices, runRetry, runTimeoutMs, stop, ...dag } = whole;
  const task = whole.tasks.find((each) => each.taskId === taskId);
  return {
    ...dag,
    runTimeoutMs: null,
    callbacks: { success: false, failure: false },
    tasks: task === undefined ? [] : [alone(task)],
    groups: [],
  };
}

function alone(whole: TaskManifest): TaskManifest {
  const { deadlines, every, map, notices, rules, teardown, ...task } = whole;
  return {
    ...task,
    upstream: [],
    inputs: {},
    rule: "allSuccess",
    retries: 0,
    role: "work",
    group: null,
    dependsOnPast: false,
    waitForDownstream: false,
    callbacks: { success: false, failure: false, retry: false },
  };
}
