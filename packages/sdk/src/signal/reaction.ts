/** `onSignal` (AIP-35): an operator subscribes to signals and returns an action for each. */
import { baseContext } from "../author/call-context.ts";
import { setEnv } from "../author/params/env.ts";
import type { DagPlan, TaskPlan } from "../author/plan.ts";
import { show, TaskError } from "../check/errors.ts";
import type { TaskManifest } from "../manifest.ts";
import type { BaseContext } from "../runtime/context.ts";
import { errorFacts } from "../runtime/error-facts.ts";
import type { ReactCall, ReactOutcome } from "../runtime/program.ts";
import { tradewindCallsUserCode } from "../runtime/user-code.ts";
import { CONDITION } from "../schedule/condition.ts";
import { type AnySignal, isSignal, receivedValue } from "./signal.ts";
import { fitsPattern } from "./signal-names.ts";

/**
 * The action of a task on a signal.
 * @example const action = (score: number): SignalAction => (score >= 0.9 ? SignalAction.RESTART : SignalAction.NONE);
 */
export type SignalAction = "NONE" | "START" | "RESTART" | "STOP";

/**
 * The actions that `onSignal` can return: nothing, start, restart or stop the task.
 * @example const action: SignalAction = file === "" ? SignalAction.NONE : SignalAction.RESTART;
 */
export const SignalAction = Object.freeze({
  NONE: "NONE",
  START: "START",
  RESTART: "RESTART",
  STOP: "STOP",
} as const);

/**
 * A signal as `onSignal` receives it.
 *
 * @example
 * ```ts
 * const score = signal("model.scored", z.number());
 * const isGood = (heard: IncomingSignal) => score.is(heard) && heard.value >= 0.9;
 * ```
 */
export interface IncomingSignal<Value = unknown> {
  readonly namespace: string;
  readonly key: string;
  /** The value, validated by the schema of the signal; `signal.is(heard)` narrows its type. */
  readonly value: Value;
  readonly version: number;
}

/**
 * The second parameter of `onSignal`.
 * @example const log = (ctx: SignalContext) => ctx.log.info(`signal for ${ctx.taskId}`);
 */
export interface SignalContext extends BaseContext {
  readonly taskId: string;
}

/** The signal methods of an operator; missing if it was created by an older copy of the SDK. */
interface Reacting {
  readonly signals?: ReadonlySet<AnySignal>;
  onSignal?(heard: IncomingSignal, ctx: SignalContext): SignalAction | Promise<SignalAction>;
}

/** The manifest form of the signals that an operator subscribes to; undefined if there are none. */
export function reactsOf({ body }: TaskPlan): TaskManifest["reacts"] {
  if (body.kind !== "operator") return undefined;
  const { signals, onSignal } = body.operator as Reacting;
  if (typeof onSignal !== "function") return undefined;
  const names = [...(signals ?? [])].filter(isSignal).map(({ namespace, key }) => ({ namespace, key }));
  return names.length === 0 ? undefined : names;
}

/** The signals that an operator subscribes to, with their schemas. */
export function signalsSetBy({ body }: TaskPlan): AnySignal[] {
  if (body.kind !== "operator") return [];
  return [...((body.operator as Reacting).signals ?? [])].filter(isSignal);
}

/** Never rejects. */
export async function runReaction(plan: DagPlan, call: ReactCall): Promise<ReactOutcome> {
  try {
    return { ok: true, action: await reaction(plan, call) };
  } catch (thrown) {
    return { ok: false, error: errorFacts(thrown) };
  }
}

async function reaction(plan: DagPlan, call: ReactCall): Promise<SignalAction> {
  const { taskId, signal } = call;
  const task = plan.tasks.get(taskId);
  if (task === undefined) {
    throw new TaskError("TW_TASK_UNKNOWN", `dag "${plan.dagId}" of this bundle has no task "${taskId}"`);
  }
  const operator = task.body.kind === "operator" ? (task.body.operator as Reacting) : {};
  if (typeof operator.onSignal !== "function") return SignalAction.NONE;
  const set = [...(operator.signals ?? [])].find(
    ({ namespace, key }) => fitsPattern(namespace, signal.namespace) && fitsPattern(key, signal.key),
  );
  const node = set?.[CONDITION];
  const schema = node?.kind === "signal" ? node.schema : null;
  const { namespace, key, version } = signal;
  const heard = { namespace, key, value: await receivedValue(key, schema, signal.value), version };
  const [missing] = await setEnv(plan, call);
  if (missing !== undefined) throw missing;
  const ctx: SignalContext = Object.freeze({ ...baseContext(plan, call), taskId });
  const action = await tradewindCallsUserCode(operator.onSignal.bind(operator), heard, ctx);
  if (Object.hasOwn(SignalAction, action)) return action;
  throw new TaskError(
    "TW_SIGNAL_ACTION",
    `onSignal of task "${taskId}" must return "NONE", "START", "RESTART" or "STOP", got ${show(action)}`,
  );
}
