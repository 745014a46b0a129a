/**
 * A DAG reduced to one task, for `tasks test`. Upstream outputs are given; downstream tasks, retries, and the callbacks of
 * the task and the DAG are left out.
 */
import type { DagManifest, Json, TaskManifest } from "@tradewind/sdk/manifest";
import type { Program, SettledInput } from "@tradewind/sdk/program";

/** Input values by input name, and values of `ctx.output` by task. */
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
    // Cancelling a wait belongs to the task; other callbacks belong to a run.
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
