/**
 * One attempt of one task, from the call to its outcome. User code runs in exactly one place here; whatever it does,
 * short of ending the process, comes back as an outcome. Timeouts and memory limits are the supervisor's, which sees
 * the process from outside; an attempt that was aborted gets no callbacks here, since only the supervisor knows why.
 */
import { taskContext } from "./call-context.ts";
import { runCallback } from "./callback.ts";
import { branchOutcome, shortCircuitOutcome } from "./choice.ts";
import type { TaskContext } from "./context.ts";
import { controlOf, type Rescheduled, type TaskSkipped } from "./control.ts";
import { deferralOf, methodOf } from "./deferral.ts";
import { errorFacts } from "./error-facts.ts";
import { TaskError, type TaskErrorCode, type TriggerErrorCode } from "./errors.ts";
import { checkOutput } from "./output-check.ts";
import { validateParams } from "./params.ts";
import type { DagPlan, TaskPlan } from "./plan.ts";
import type { Deferral, SignalToSend, TaskCall, TaskOutcome } from "./program.ts";
import { Outbox } from "./sending.ts";
import { Steps } from "./steps.ts";
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
    const steps = new Steps(call);
    const outbox = new Outbox(call);
    const params = await validateParams(plan.params, call.conf);
    const ctx = taskContext(plan, call, params, { ...steps.context(), ...outbox.context() });
    const end = await ended(enter(task, call, { ctx, inputs }), steps);
    steps.close();
    const signals = await outbox.close();
    if (steps.refusal !== undefined) throw steps.refusal;
    // Its function runs again from the top, and sends again what belongs to its success.
    if (end.kind === "deferred") return { kind: "deferred", ...end.deferral };
    const control = controlled(task, end.value);
    if (control !== null) return withoutLoss(task, control, signals);
    if (end.kind === "returned") {
      const outcome = finished(plan, task, end.value, call);
      return signals.length > 0 && outcome.kind === "success" ? { ...outcome, signals } : outcome;
    }
    const error = errorFacts(end.value);
    return { kind: "failed", error, retry: error.code === null || !HOPELESS.has(error.code) };
  } catch (error) {
    // Only what another try cannot change gets here: the call, the conf, the steps or the output is wrong.
    return { kind: "failed", error: errorFacts(error), retry: false };
  }
}

/** Mistakes in how a task waits: thrown through the author's code, and the same at every try. */
const HOPELESS: ReadonlySet<string> = new Set<TaskErrorCode | TriggerErrorCode>([
  "TW_BAD_SIGNAL",
  "TW_BAD_TRIGGER",
  "TW_CONF_MISSING",
  "TW_SENSOR_TIMEOUT",
  "TW_STEP_NOT_JSON",
  "TW_STEP_TOO_LARGE",
  "TW_TRIGGER_ARGS",
]);

/** Calls the author's code: at its beginning, or at the method that a deferral named. */
function enter(
  { taskId, body }: TaskPlan,
  call: TaskCall,
  given: { readonly ctx: TaskContext; readonly inputs: Readonly<Record<string, unknown>> },
): Promise<unknown> {
  const { ctx, inputs } = given;
  const { step } = call;
  if (body.kind === "trigger") {
    throw new TaskError("TW_STEP_UNKNOWN", `task "${taskId}" is a trigger: it waits, and has no code to run`);
  }
  if (body.kind !== "operator") {
    if (step === null) return tradewindCallsUserCode(body.run, inputs, ctx);
    throw new TaskError(
      "TW_STEP_UNKNOWN",
      `task "${taskId}" is a function: it has no method "${step.method}" to go on with`,
    );
  }
  if (step === null) return tradewindCallsUserCode(body.operator.execute.bind(body.operator), ctx, inputs);
  const method = methodOf(body.operator, step.method);
  if (method !== null) return tradewindCallsUserCode(method, ctx, step.event, step.kwargs, inputs);
  throw noSuchMethod(taskId, step.method);
}

type End =
  | { readonly kind: "returned" | "threw"; readonly value: unknown }
  | { readonly kind: "deferred"; readonly deferral: Deferral };

/**
 * How the author's code ended, or that a step of it waits. An error counts at any time; a result does not once a wait
 * has begun, so that an `until` that was not awaited is not lost.
 */
async function ended(work: Promise<unknown>, steps: Steps): Promise<End> {
  const deferral = steps.deferral.then((deferral) => ({ kind: "deferred" as const, deferral }));
  const end = await Promise.race([
    work.then(
      (value) => ({ kind: "returned" as const, value }),
      (value: unknown) => ({ kind: "threw" as const, value }),
    ),
    deferral,
  ]);
  return end.kind === "returned" && steps.refusal === undefined && (await steps.isWaiting()) ? deferral : end;
}

function plannedTask(plan: DagPlan, call: TaskCall): TaskPlan {
  const task = plan.tasks.get(call.taskId);
  if (task !== undefined) return task;
  throw new TaskError("TW_TASK_UNKNOWN", `dag "${plan.dagId}" of this bundle has no task "${call.taskId}"`);
}

function noSuchMethod(taskId: string, method: string): TaskError {
  return new TaskError(
    "TW_STEP_UNKNOWN",
    `the operator of task "${taskId}" has no method "${method}" to go on with`,
  );
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

function controlled({ taskId, body }: TaskPlan, value: unknown): TaskOutcome | null {
  switch (controlOf(value)) {
    case "skip":
      return { kind: "skipped", reason: (value as TaskSkipped).reason };
    case "fail":
      return { kind: "failed", error: errorFacts(value), retry: false };
    case "reschedule":
      return { kind: "rescheduled", afterMs: (value as Rescheduled).afterMs };
    case "defer": {
      const deferral = deferralOf(value);
      const method = deferral.method ?? "";
      if (body.kind === "operator" && methodOf(body.operator, method) !== null)
        return { kind: "deferred", ...deferral };
      throw noSuchMethod(taskId, method);
    }
    default:
      return null;
  }
}

/** An operator that defers goes on in another method: the attempt that succeeds would know nothing of these signals. */
function withoutLoss(
  { taskId }: TaskPlan,
  control: TaskOutcome,
  signals: readonly SignalToSend[],
): TaskOutcome {
  if (control.kind !== "deferred" || signals.length === 0) return control;
  throw new TaskError(
    "TW_SIGNAL_LOST",
    `task "${taskId}" defers after ctx.send("${signals[0]!.key}") with onSuccess, which would be lost; send it in the method that ends the task`,
  );
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
  // After a wait or a pause the same try goes on.
  if (outcome.kind !== "success" && outcome.kind !== "failed") return;
  const willRetry = outcome.kind === "failed" && outcome.retry && call.tryNumber <= call.maxTries;
  const event = outcome.kind === "success" ? "success" : willRetry ? "retry" : "failure";
  const error = outcome.kind === "failed" ? outcome.error : null;
  const { taskId, run, tryNumber, conf, host } = call;
  const done = await runCallback(plan, { taskId, event, run, tryNumber, error, conf, host });
  if (!done.ok) {
    host.log("error", `callback for ${event} failed: ${done.error.message}`, { stack: done.error.stack });
  }
}
