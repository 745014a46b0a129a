/**
 * Callbacks of tasks, groups and DAGs. They run after the outcome is stored and cannot change it. A callback that hangs
 * is abandoned; it runs in a process of its own.
 */

import type { Json } from "../manifest.ts";
import type { DeadlineContext } from "../notify/deadline.ts";
import { runCancelHooks } from "../runtime/cancel.ts";
import type { CallbackContext, GroupCallbackContext } from "../runtime/context.ts";
import { errorFacts } from "../runtime/error-facts.ts";
import { openWorkError } from "../runtime/open-work.ts";
import type { CallbackCall, CallbackOutcome, ErrorFacts } from "../runtime/program.ts";
import { tradewindCallsUserCode } from "../runtime/user-code.ts";
import { baseContext } from "./call-context.ts";
import { setEnv } from "./params/env.ts";
import { validateParams } from "./params/params.ts";
import type { DagPlan } from "./plan.ts";

/** More than a notification takes. */
const CALLBACK_LIMIT_MS = 60_000;

/** Runs all callbacks of the event in order; a failing callback does not stop the next one. Never rejects. */
export async function runCallback(plan: DagPlan, call: CallbackCall): Promise<CallbackOutcome> {
  const works = await workOf(plan, call);
  if (works.length === 0) return { ok: true };
  // A missing value may be the failure that this callback reports.
  const missing = await setEnv(plan, call).catch((error: unknown) => [errorFacts(error)]);
  for (const { message } of missing) call.host.log("warn", message);
  const errors: ErrorFacts[] = [];
  for (const work of works) {
    const error = await errorOf(work, call);
    if (error !== null) errors.push(error);
  }
  const [first, ...others] = errors;
  if (first === undefined) return { ok: true };
  return {
    ok: false,
    error: { ...first, message: [first, ...others].map(({ message }) => message).join("; ") },
  };
}

async function errorOf(
  work: () => Promise<unknown>,
  { event, host }: CallbackCall,
): Promise<ErrorFacts | null> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`callback timed out after ${CALLBACK_LIMIT_MS / 1000} s`)),
      CALLBACK_LIMIT_MS,
    );
  });
  try {
    await Promise.race([work(), limit]);
    clearTimeout(timer);
    const open = await openWorkError(host, `the callback for ${event}`);
    return open ? errorFacts(open) : null;
  } catch (thrown) {
    return errorFacts(thrown);
  } finally {
    clearTimeout(timer);
  }
}

async function workOf(plan: DagPlan, call: CallbackCall): Promise<readonly (() => Promise<unknown>)[]> {
  const { event } = call;
  if (event === "cancel") {
    const params = await paramsOrNull(plan, call.conf);
    return [() => runCancelHooks(plan, call, { ...baseContext(plan, call), params })];
  }
  const callbacks = callbacksOf(plan, { ...call, event });
  if (callbacks.length === 0) return [];
  const ctx = Object.freeze(await contextOf(plan, { ...call, event }));
  return callbacks.map((callback) => () => tradewindCallsUserCode(callback, ctx as never));
}

type OtherCall = CallbackCall & { readonly event: Exclude<CallbackCall["event"], "cancel"> };

async function contextOf(
  plan: DagPlan,
  call: OtherCall,
): Promise<CallbackContext | DeadlineContext | GroupCallbackContext> {
  const { deadline, error, event, groupId, mapIndex = -1, taskId } = call;
  const base = { ...baseContext(plan, call), params: await paramsOrNull(plan, call.conf) };
  if (groupId && event !== "deadline")
    return { ...base, event, groupId, mapIndex, state: event === "success" ? "success" : "failed" };
  const shared = { ...base, taskId };
  if (event !== "deadline") return { ...shared, event, error };
  return {
    ...shared,
    event,
    deadline: Object.freeze({ ordinal: deadline?.ordinal ?? 0, dueAt: new Date(deadline?.dueAt ?? 0) }),
  };
}

type UserCallback = (ctx: never) => unknown;

function callbacksOf(
  plan: DagPlan,
  { taskId, event, deadline, groupId }: OtherCall,
): readonly UserCallback[] {
  if (event === "deadline") {
    const { deadlines } = (taskId === null ? plan : plan.tasks.get(taskId))?.callbacks ?? {};
    const found = deadlines?.[deadline?.ordinal ?? -1]?.functions[deadline?.action ?? -1];
    return found ? [found] : [];
  }
  const owner = groupId ? plan.groups.get(groupId) : taskId === null ? plan : plan.tasks.get(taskId);
  const callbacks: Partial<Record<"onSuccess" | "onFailure" | "onRetry", readonly UserCallback[]>> =
    owner?.callbacks ?? {};
  return callbacks[OPTION[event]] ?? [];
}

const OPTION = { success: "onSuccess", failure: "onFailure", retry: "onRetry" } as const;

async function paramsOrNull(plan: DagPlan, conf: Json): Promise<CallbackContext["params"]> {
  try {
    return (await validateParams(plan.params, conf)) as CallbackContext["params"];
  } catch {
    return null;
  }
}
