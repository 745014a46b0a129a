/**
 * `onCancel`: hooks of a trigger, an operator and a task that run if a wait ends without its event. They run in this
 * order in a process of their own, after the end of the wait is stored; a failing hook does not stop the next one.
 */

import { inputValues } from "../author/inputs.ts";
import { type DagPlan, ITEM, type TaskPlan } from "../author/plan.ts";
import type { Json, TriggerCall } from "../manifest.ts";
import { isOperator, type Operator } from "../trigger/operator.ts";
import type { CancelContext, TaskContext } from "./context.ts";
import { errorFacts } from "./error-facts.ts";
import type { CallbackCall, CancelledWait, Deferral, TaskCall } from "./program.ts";
import { tradewindCallsUserCode } from "./user-code.ts";

/** Returns whether there is a hook to run if the task's wait for this trigger ends without its event. */
export function hasCancelHook(
  task: TaskPlan,
  trigger: TriggerCall,
  operator: Operator<unknown, unknown> | null = operatorOf(task),
): boolean {
  return (
    trigger.onCancel === true ||
    task.callbacks.onCancel !== undefined ||
    typeof operator?.onCancel === "function"
  );
}

/** The deferral with the data that its `onCancel` needs. `made`: the operator of an item. */
export function cancellable(
  deferral: Deferral,
  { call, made, task }: { task: TaskPlan; call: TaskCall; made: Operator<unknown, unknown> | null },
): Deferral {
  if (!hasCancelHook(task, deferral.trigger, made ?? operatorOf(task))) return deferral;
  const needsItem = typeof made?.onCancel === "function";
  return { ...deferral, onCancel: true, ...(needsItem && { cancelInputs: call.inputs }) };
}

/** @throws The first error of a hook; further errors are logged. */
export async function runCancelHooks(
  plan: DagPlan,
  call: CallbackCall,
  base: Omit<CancelContext, CancelFields>,
): Promise<void> {
  const { wait } = call;
  const task = plan.tasks.get(call.taskId ?? "");
  if (!wait) return;
  const ctx = contextOf(base, call, wait);
  const failures: unknown[] = [];
  const attempt = async (hook: () => unknown) => {
    try {
      await hook();
    } catch (error) {
      if (failures.push(error) > 1) call.host.log("error", `onCancel failed: ${errorFacts(error).message}`);
    }
  };
  for (const trigger of ownTriggers(wait.trigger)) {
    const of = Object.freeze({ ...ctx, trigger: { kind: trigger.kind, args: trigger.args } });
    await attempt(() => call.trigger?.(trigger.kind)?.cancel?.(trigger.args, of));
  }
  if (task !== undefined) {
    await attempt(async () => {
      const operator = await madeAgain(task, wait, ctx);
      if (operator?.onCancel) await tradewindCallsUserCode(operator.onCancel.bind(operator), ctx);
    });
    const { onCancel } = task.callbacks;
    if (onCancel) await attempt(() => tradewindCallsUserCode(onCancel, ctx as never));
  }
  if (failures.length > 0) throw failures[0];
}

type CancelFields = "event" | "taskId" | "mapIndex" | "cause" | "wait" | "kwargs" | "trigger";

function contextOf(
  base: Omit<CancelContext, CancelFields>,
  { taskId }: CallbackCall,
  wait: CancelledWait,
): CancelContext {
  const { cause, kwargs, mapIndex, name, trigger } = wait;
  return Object.freeze({
    ...base,
    event: "cancel" as const,
    taskId: taskId ?? "",
    mapIndex,
    cause,
    wait: name,
    kwargs,
    trigger: Object.freeze({ kind: trigger.kind, args: trigger.args }),
  });
}

function operatorOf({ body }: TaskPlan): Operator<unknown, unknown> | null {
  return body.kind === "operator" ? body.operator : null;
}

/** Creates the operator of an item again from the inputs it had when it began to wait. */
async function madeAgain(
  task: TaskPlan,
  { inputs }: CancelledWait,
  ctx: CancelContext,
): Promise<Operator<unknown, unknown> | null> {
  const { body } = task;
  if (body.kind !== "mapOperator" || !inputs) return operatorOf(task);
  const { [ITEM]: item, ...others } = inputValues(task, inputs);
  const operator = await tradewindCallsUserCode(body.make, item, others, ctx as unknown as TaskContext);
  return isOperator(operator) ? operator : null;
}

/** The triggers with an `onCancel`: the trigger of the wait, or the members of a joint wait. */
function ownTriggers(trigger: TriggerCall): TriggerCall[] {
  const members = (trigger.args as { readonly members?: Json } | null)?.members;
  if (!trigger.kind.startsWith("tradewind.") || typeof members !== "object" || members === null)
    return trigger.onCancel ? [trigger] : [];
  return Object.values(members as unknown as Readonly<Record<string, TriggerCall>>).flatMap(ownTriggers);
}
