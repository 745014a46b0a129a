/** Builds the contexts of handlers and callbacks on top of the host that supervises the attempt. */

import { TaskError } from "../check/errors.ts";
import type {
  BaseContext,
  ProduceContext,
  RunContext,
  SendContext,
  StartSignal,
  StepContext,
  TaskContext,
} from "../runtime/context.ts";
import type { RunFacts, TaskCall, TaskHost } from "../runtime/program.ts";
import { services } from "../runtime/services.ts";
import { startingAt } from "../signal/control.ts";
import { type AnyOutput, ownerOf } from "./handle.ts";
import { eventsIn } from "./params/asset-params.ts";
import type { DagPlan } from "./plan.ts";

/**
 * The key of the attempt in a context; a registered symbol, because an operator may come from another copy of the SDK.
 */
const ATTEMPT = Symbol.for("tradewind.attempt");

/** Facts for built-in operators that are not part of the public context. */
export interface AttemptFacts {
  readonly host: TaskHost;
  /** Time since the first start of this try, including waits and reschedules. */
  elapsedMs(): number;
}

export function attemptFacts(ctx: TaskContext): AttemptFacts {
  return (ctx as unknown as { [ATTEMPT]: AttemptFacts })[ATTEMPT];
}

export function taskContext(
  plan: DagPlan,
  call: TaskCall,
  params: unknown,
  parts: StepContext & SendContext & ProduceContext & { readonly startSignals: readonly StartSignal[] },
): TaskContext {
  const begin = performance.now();
  const facts: AttemptFacts = {
    host: call.host,
    elapsedMs: () => call.elapsedMs + performance.now() - begin,
  };
  const ctx: TaskContext = {
    ...baseContext(plan, call),
    ...parts,
    params: params as TaskContext["params"],
    assetEvents: eventsIn(call.conf),
    taskId: call.taskId,
    mapIndex: call.mapIndex,
    maxTries: call.maxTries,
    attempt: call.attempt,
  };
  return Object.freeze(Object.defineProperty(ctx, ATTEMPT, { value: facts }));
}

export function baseContext(
  plan: DagPlan,
  call: { readonly run: RunFacts; readonly tryNumber: number; readonly host: TaskHost },
): BaseContext {
  const { host } = call;
  return {
    run: runContext(call.run),
    tryNumber: call.tryNumber,
    ...services(host),
    abort: host.abort,
    async output(task: string | AnyOutput) {
      const taskId = typeof task === "string" ? task : ownId(plan, task);
      if (!plan.tasks.has(taskId)) {
        throw new TaskError("TW_TASK_UNKNOWN", `ctx.output: dag "${plan.dagId}" has no task "${taskId}"`);
      }
      // The handle declares the type; the engine stores what the task returned.
      return (await host.output(taskId, null)) as never;
    },
  };
}

function ownId(plan: DagPlan, handle: AnyOutput): string {
  if (ownerOf(handle) === plan.owner) return handle.taskId;
  throw startingAt(
    new TaskError("TW_FOREIGN_HANDLE", `ctx.output: not a handle of a task of dag "${plan.dagId}"`),
    ownId,
  );
}

function runContext(run: RunFacts): RunContext {
  const { intervalStart, intervalEnd } = run;
  return Object.freeze({
    id: run.runId,
    dagId: run.dagId,
    type: run.runType,
    logicalDate: dateOrNull(run.logicalDate),
    dataInterval:
      intervalStart !== null && intervalEnd !== null
        ? { start: new Date(intervalStart), end: new Date(intervalEnd) }
        : null,
    runAfter: new Date(run.runAfter),
    startedAt: dateOrNull(run.startedAt),
    version: run.version,
  });
}

function dateOrNull(iso: string | null): Date | null {
  return iso === null ? null : new Date(iso);
}
