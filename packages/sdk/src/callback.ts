/**
 * Callbacks of tasks, groups and of the DAG. They come after the fact: whatever they do, the outcome is stored. One that
 * hangs is given up, for it has a process to itself.
 */
import { baseContext } from "./call-context.ts";
import { runCancelHooks } from "./cancel.ts";
import type { CallbackContext, GroupCallbackContext } from "./context.ts";
import type { DeadlineContext } from "./deadline.ts";
import { setEnv } from "./env.ts";
import { errorFacts } from "./error-facts.ts";
import type { Json } from "./manifest.ts";
import { openWorkError } from "./open-work.ts";
import { validateParams } from "./params.ts";
import type { DagPlan } from "./plan.ts";
import type { CallbackCall, CallbackOutcome } from "./program.ts";
import { tradewindCallsUserCode } from "./user-code.ts";

/** Longer than any notification takes. */
const CALLBACK_LIMIT_MS = 60_000;

/** Runs the callback if there is one. Never rejects. */
export async function runCallback(plan: DagPlan, call: CallbackCall): Promise<CallbackOutcome> {
  const work = await workOf(plan, call);
  if (work === undefined) return { ok: true };
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`callback took longer than ${CALLBACK_LIMIT_MS / 1000} s and was given up`)),
      CALLBACK_LIMIT_MS,
    );
  });
  try {
    // What is missing may be the very failure that is reported here.
    const missing = await setEnv(plan, call).catch((error: unknown) => [errorFacts(error)]);
    for (const { message } of missing) call.host.log("warn", message);
    await Promise.race([work(), limit]);
    clearTimeout(timer);
    const open = await openWorkError(call.host, `the callback for ${call.event}`);
    return open ? { ok: false, error: errorFacts(open) } : { ok: true };
  } catch (thrown) {
    return { ok: false, error: errorFacts(thrown) };
  } finally {
    clearTimeout(timer);
  }
}

async function workOf(plan: DagPlan, call: CallbackCall): Promise<(() => Promise<unknown>) | undefined> {
  const { event } = call;
  if (event === "cancel") {
    const params = await paramsOrNull(plan, call.conf);
    return () => runCancelHooks(plan, call, { ...baseContext(plan, call), params });
  }
  const callback = callbackOf(plan, { ...call, event });
  if (callback === undefined) return undefined;
  const ctx = Object.freeze(await contextOf(plan, { ...call, event }));
  return () => tradewindCallsUserCode(callback, ctx as never);
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

function callbackOf(plan: DagPlan, { taskId, event, deadline, groupId }: OtherCall) {
  if (event === "deadline") {
    const { deadlines } = (taskId === null ? plan : plan.tasks.get(taskId))?.callbacks ?? {};
    return deadlines?.[deadline?.ordinal ?? -1]?.functions[deadline?.action ?? -1] ?? undefined;
  }
  if (groupId) return ofEvent(event, plan.groups.get(groupId)?.callbacks);
  if (taskId === null)
    return event === "success"
      ? plan.callbacks.onSuccess
      : event === "failure"
        ? plan.callbacks.onFailure
        : undefined;
  return ofEvent(event, plan.tasks.get(taskId)?.callbacks);
}

function ofEvent<C>(
  event: "success" | "failure" | "retry",
  callbacks: { readonly onSuccess?: C; readonly onFailure?: C; readonly onRetry?: C } | undefined,
): C | undefined {
  if (event === "success") return callbacks?.onSuccess;
  return event === "failure" ? callbacks?.onFailure : callbacks?.onRetry;
}

async function paramsOrNull(plan: DagPlan, conf: Json): Promise<CallbackContext["params"]> {
  try {
    return (await validateParams(plan.params, conf)) as CallbackContext["params"];
  } catch {
    return null;
  }
}
