/**
 * Runs one attempt of one task and returns its outcome. User code is called in exactly one place; unless it ends the
 * process, every result becomes an outcome. The supervisor enforces timeouts and memory limits from outside. Callbacks
 * run later, after the outcome is stored, and cannot change it.
 */
import { taskContext } from "../author/call-context.ts";
import { branchOutcome, shortCircuitOutcome } from "../author/choice.ts";
import { inputValues } from "../author/inputs.ts";
import { setEnv } from "../author/params/env.ts";
import { validateParams } from "../author/params/params.ts";
import { type DagPlan, ITEM, RESOURCE, type TaskPlan } from "../author/plan.ts";
import { Production } from "../author/producing.ts";
import { show, TaskError, type TaskErrorCode, type TriggerErrorCode } from "../check/errors.ts";
import { checkOutput } from "../check/output-check.ts";
import { controlOf, type Rescheduled, type TaskSkipped } from "../signal/control.ts";
import { Outbox } from "../signal/sending.ts";
import { startingSignals } from "../signal/start-signals.ts";
import { deferralOf, methodOf } from "../trigger/deferral.ts";
import { isOperator, type Operator } from "../trigger/operator.ts";
import { cancellable } from "./cancel.ts";
import type { TaskContext } from "./context.ts";
import { errorFacts } from "./error-facts.ts";
import { openWorkError } from "./open-work.ts";
import type { Deferral, SignalToSend, TaskCall, TaskOutcome } from "./program.ts";
import { Steps } from "./steps.ts";
import { tradewindCallsUserCode } from "./user-code.ts";

/** Never rejects. */
export async function runAttempt(plan: DagPlan, call: TaskCall): Promise<TaskOutcome> {
  try {
    const task = plannedTask(plan, call);
    const inputs = inputValues(task, call.inputs);
    const steps = new Steps(call);
    const outbox = new Outbox(call);
    const production = new Production(call, task.settings.produces);
    const missing = await setEnv(plan, call).catch(unreached);
    if (missing instanceof Unreached) return missing.outcome;
    if (missing[0] !== undefined) throw missing[0];
    const params = await validateParams(plan.params, call.conf);
    const startSignals = await startingSignals(task, call).catch(unreached);
    if (startSignals instanceof Unreached) return startSignals.outcome;
    const ctx = taskContext(plan, call, params, {
      ...steps.context(),
      ...outbox.context(),
      ...production.context(),
      startSignals,
    });
    const given: Given = { ctx, inputs, made: null };
    const end = await ended(enter(task, call, given), steps);
    steps.close();
    const signals = [...(await outbox.close()), ...(await production.close())];
    if (steps.refusal !== undefined) throw steps.refusal;
    // The function runs again from the top and repeats the signals that belong to its success.
    const defer = (deferral: Deferral) =>
      ({ kind: "deferred", ...cancellable(deferral, { task, call, made: given.made }) }) as const;
    if (end.kind === "deferred") return defer(end.deferral);
    const control = controlled(task, end.value);
    if (control !== null) {
      const isRepeated = control.kind === "failed" || control.kind === "rescheduled";
      const open = isRepeated ? null : await leftOpen(task, call);
      if (open !== null) return open;
      return control.kind === "deferred" ? defer(withoutLoss(task, control, signals)) : control;
    }
    if (end.kind === "returned") {
      const outcome = finished(plan, task, end.value, call);
      const done = signals.length > 0 && outcome.kind === "success" ? { ...outcome, signals } : outcome;
      return (await leftOpen(task, call)) ?? done;
    }
    const error = errorFacts(end.value);
    return { kind: "failed", error, retry: error.code === null || !HOPELESS.has(error.code) };
  } catch (error) {
    // Only errors that another try cannot fix get here: the call, the conf, the steps or the output is invalid.
    return { kind: "failed", error: errorFacts(error), retry: false };
  }
}

/** The engine could not be queried for what the task needs to begin; another try may succeed. */
class Unreached {
  readonly outcome: TaskOutcome;

  constructor(error: unknown) {
    this.outcome = { kind: "failed", error: errorFacts(error), retry: true };
  }
}

const unreached = (error: unknown) => new Unreached(error);

/** Mistakes in how a task waits: thrown through the author's code, and the same at every try. */
const HOPELESS: ReadonlySet<string> = new Set<TaskErrorCode | TriggerErrorCode>([
  "TW_BAD_ASSET",
  "TW_BAD_SIGNAL",
  "TW_BAD_TRIGGER",
  "TW_CONF_MISSING",
  "TW_CONNECTION_MISSING",
  "TW_SENSOR_TIMEOUT",
  "TW_STEP_NOT_JSON",
  "TW_STEP_TOO_LARGE",
  "TW_TRIGGER_ARGS",
  "TW_VARIABLE_MISSING",
]);

interface Given {
  readonly ctx: TaskContext;
  readonly inputs: Readonly<Record<string, unknown>>;
  /** The operator of an item, once it is created. */
  made: Operator<unknown, unknown> | null;
}

/** Calls the author's code at its beginning, or at the method that a deferral named. */
function enter(task: TaskPlan, call: TaskCall, given: Given): Promise<unknown> {
  const { taskId, body } = task;
  const { ctx, inputs } = given;
  const { resumePoint } = call;
  if (body.kind === "trigger") {
    throw new TaskError("TW_STEP_UNKNOWN", `task "${taskId}" is a trigger and has no code to run`);
  }
  if (body.kind === "latestOnly") return call.host.isLatest();
  if (body.kind === "mapOperator") return enterMade(task, call, given);
  if (body.kind === "operator") return enterOperator(taskId, body.operator, call, given);
  if (resumePoint !== null) {
    throw new TaskError(
      "TW_STEP_UNKNOWN",
      `task "${taskId}" is a function: it has no method "${resumePoint.method}" to resume with`,
    );
  }
  if (body.kind === "teardown") {
    const { [RESOURCE]: made, ...others } = inputs;
    return tradewindCallsUserCode(body.run, made, others, ctx);
  }
  if (body.kind !== "map") return tradewindCallsUserCode(body.run, inputs, ctx);
  const { [ITEM]: item, ...others } = inputs;
  return tradewindCallsUserCode(body.run, item, others, ctx);
}

function enterOperator(
  taskId: string,
  operator: Operator<unknown, unknown>,
  { resumePoint }: TaskCall,
  { ctx, inputs }: { readonly ctx: TaskContext; readonly inputs: Readonly<Record<string, unknown>> },
): Promise<unknown> {
  if (resumePoint === null) return tradewindCallsUserCode(operator.execute.bind(operator), ctx, inputs);
  const method = methodOf(operator, resumePoint.method);
  if (method !== null)
    return tradewindCallsUserCode(method, ctx, resumePoint.event, resumePoint.kwargs, inputs);
  throw noSuchMethod(taskId, resumePoint.method);
}

/** The operator of an item is created again in each attempt, from the item. */
async function enterMade(task: TaskPlan, call: TaskCall, given: Given): Promise<unknown> {
  const { ctx, inputs } = given;
  const { [ITEM]: item, ...others } = inputs;
  const { make } = task.body as Extract<TaskPlan["body"], { kind: "mapOperator" }>;
  const operator = await tradewindCallsUserCode(make, item, others, ctx);
  if (!isOperator(operator)) {
    throw new TaskError(
      "TW_MAP_OPERATOR",
      `the function of d.mapOperator("${task.taskId}") must return an operator, got ${show(operator)}`,
    );
  }
  given.made = operator;
  return enterOperator(task.taskId, operator, call, { ctx, inputs: others });
}

type End =
  | { readonly kind: "returned" | "threw"; readonly value: unknown }
  | { readonly kind: "deferred"; readonly deferral: Deferral };

/**
 * Waits until the author's code has ended or one of its steps waits. An error always counts; a result does not count
 * after a wait has begun, so that an `until` that was not awaited is not lost.
 */
async function ended(work: Promise<unknown>, steps: Steps): Promise<End> {
  const deferral = steps.deferral.then(
    (deferral) => ({ kind: "deferred" as const, deferral }),
    (value: unknown) => ({ kind: "threw" as const, value }),
  );
  const end = await Promise.race([
    work.then(
      (value) => ({ kind: "returned" as const, value }),
      (value: unknown) => ({ kind: "threw" as const, value }),
    ),
    deferral,
  ]);
  return end.kind === "returned" && steps.refusal === undefined && (await steps.isWaiting()) ? deferral : end;
}

/** The failure of a task that leaves work open: downstream tasks would rely on work that may never finish. */
async function leftOpen({ settings, taskId }: TaskPlan, call: TaskCall): Promise<TaskOutcome | null> {
  if (settings.openWork === "allow") return null;
  const remedy = 'set openWork: "allow" if the work may be cut off';
  const error = await openWorkError(call.host, `task "${taskId}"`, remedy);
  return error && { kind: "failed", error: errorFacts(error), retry: true };
}

function plannedTask(plan: DagPlan, call: TaskCall): TaskPlan {
  const task = plan.tasks.get(call.taskId);
  if (task !== undefined) return task;
  throw new TaskError("TW_TASK_UNKNOWN", `dag "${plan.dagId}" of this bundle has no task "${call.taskId}"`);
}

function noSuchMethod(taskId: string, method: string): TaskError {
  return new TaskError(
    "TW_STEP_UNKNOWN",
    `the operator of task "${taskId}" has no method "${method}" to resume with`,
  );
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
      // A mapped operator is created again on resume: its methods are checked then.
      if (
        body.kind === "mapOperator" ||
        (body.kind === "operator" && methodOf(body.operator, method) !== null)
      )
        return { kind: "deferred", ...deferral };
      throw noSuchMethod(taskId, method);
    }
    default:
      return null;
  }
}

/** An operator that defers resumes in another method, so the attempt that succeeds would not have these signals. */
function withoutLoss<D extends Deferral>(
  { taskId }: TaskPlan,
  control: D,
  signals: readonly SignalToSend[],
): D {
  if (signals.length === 0) return control;
  throw new TaskError(
    "TW_SIGNAL_LOST",
    `task "${taskId}" defers after ctx.send or ctx.produce of "${signals[0]!.key}", which belongs to its success and would be lost; do it in the method that ends the task`,
  );
}

function finished(plan: DagPlan, task: TaskPlan, result: unknown, call: TaskCall): TaskOutcome {
  switch (task.body.kind) {
    case "branch":
      return branchOutcome(plan, task.taskId, result);
    case "latestOnly":
      return shortCircuitOutcome(plan, task.taskId, { met: Boolean(result), respectRules: true });
    case "shortCircuit":
      return shortCircuitOutcome(plan, task.taskId, {
        met: Boolean(result),
        respectRules: task.body.respectRules,
      });
    default:
      return { kind: "success", output: checkOutput(result, call.maxOutputBytes), skip: [] };
  }
}
