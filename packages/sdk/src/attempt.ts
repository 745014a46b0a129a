/**
 * One attempt of one task, from the call to its outcome. User code runs in exactly one place here; whatever it does,
 * short of ending the process, comes back as an outcome. Timeouts and memory limits are the supervisor's, which sees
 * the process from outside; an attempt that was aborted gets no callbacks here, since only the supervisor knows why.
 */
import { taskContext } from "./call-context.ts";
import { runCallback } from "./callback.ts";
import { branchOutcome, shortCircuitOutcome } from "./choice.ts";
import { controlOf, type TaskSkipped } from "./control.ts";
import { errorFacts } from "./error-facts.ts";
import { TaskError } from "./errors.ts";
import { checkOutput } from "./output-check.ts";
import { validateParams } from "./params.ts";
import type { DagPlan, TaskPlan } from "./plan.ts";
import type { TaskCall, TaskOutcome } from "./program.ts";
import { tradewindCallsUserCode } from "./user-code.ts";

/** Never rejects. */
export async function runAttempt(plan: DagPlan, call: TaskCall): Promise<TaskOutcome> {
  const outcome = await attempt(plan, call);
  if (!call.host.abort.aborted) await afterwards(plan, call, outcome);
  return outcome;
}

async function attempt(plan: DagPlan, call: TaskCall): Promise<TaskOutcome> {
  try {
    const task = plannedTask(plan, call);
    const inputs = inputValues(task, call);
    const ctx = taskContext(plan, call, await validateParams(plan.params, call.conf));
    const { body } = task;
    let result: unknown;
    try {
      result = await (body.kind === "operator"
        ? tradewindCallsUserCode(body.operator.execute.bind(body.operator), ctx, inputs)
        : tradewindCallsUserCode(body.run, inputs, ctx));
    } catch (thrown) {
      return controlled(thrown) ?? { kind: "failed", error: errorFacts(thrown), retry: true };
    }
    return controlled(result) ?? finished(plan, task, result, call);
  } catch (error) {
    // Only what another try cannot change gets here: the call, the conf or the output is wrong.
    return { kind: "failed", error: errorFacts(error), retry: false };
  }
}

function plannedTask(plan: DagPlan, call: TaskCall): TaskPlan {
  const task = plan.tasks.get(call.taskId);
  if (task === undefined) {
    throw new TaskError("TW_TASK_UNKNOWN", `dag "${plan.dagId}" of this bundle has no task "${call.taskId}"`);
  }
  if (call.step !== null) {
    throw new TaskError(
      "TW_STEP_UNKNOWN",
      `task "${call.taskId}" has no step "${call.step.method}" to resume at`,
    );
  }
  return task;
}

function inputValues(task: TaskPlan, call: TaskCall): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, { taskId }] of Object.entries(task.inputs)) {
    const { state, value } = call.inputs[name] ?? { state: "none", value: undefined };
    if (task.settings.rule !== "allSuccess") {
      values[name] = state === "success" ? { state, value } : { state };
    } else if (state === "success") {
      values[name] = value;
    } else {
      throw new TaskError(
        "TW_INPUT_MISSING",
        `input "${name}" needs task "${taskId}" to have succeeded, but its state is ${state}; clear that task, or use another rule`,
      );
    }
  }
  return values;
}

function controlled(value: unknown): TaskOutcome | null {
  const control = controlOf(value);
  if (control === "skip") return { kind: "skipped", reason: (value as TaskSkipped).reason };
  if (control === "fail") return { kind: "failed", error: errorFacts(value), retry: false };
  return null;
}

function finished(plan: DagPlan, task: TaskPlan, result: unknown, call: TaskCall): TaskOutcome {
  switch (task.body.kind) {
    case "branch":
      return branchOutcome(plan, task.taskId, result);
    case "shortCircuit":
      return shortCircuitOutcome(plan, task.taskId, {
        met: Boolean(result),
        respectRules: task.body.respectRules,
      });
    default:
      return { kind: "success", output: checkOutput(result, call.maxOutputBytes), skip: [] };
  }
}

async function afterwards(plan: DagPlan, call: TaskCall, outcome: TaskOutcome): Promise<void> {
  if (outcome.kind === "skipped") return;
  const willRetry = outcome.kind === "failed" && outcome.retry && call.tryNumber <= call.maxTries;
  const event = outcome.kind === "success" ? "success" : willRetry ? "retry" : "failure";
  const error = outcome.kind === "failed" ? outcome.error : null;
  const { taskId, run, tryNumber, conf, host } = call;
  const done = await runCallback(plan, { taskId, event, run, tryNumber, error, conf, host });
  if (!done.ok) {
    host.log("error", `callback for ${event} failed: ${done.error.message}`, { stack: done.error.stack });
  }
}
