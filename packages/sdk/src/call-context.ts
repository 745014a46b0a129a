/** Builds what handlers and callbacks receive, on top of the host that supervises the attempt. */
import type { BaseContext, RunContext, TaskContext, TaskLog } from "./context.ts";
import { startingAt } from "./control.ts";
import { TaskError } from "./errors.ts";
import { type AnyOutput, ownerOf } from "./handle.ts";
import { logFields } from "./log-fields.ts";
import type { DagPlan } from "./plan.ts";
import type { LogLevel, RunFacts, TaskCall, TaskHost } from "./program.ts";

export function taskContext(plan: DagPlan, call: TaskCall, params: unknown): TaskContext {
  return Object.freeze({
    ...baseContext(plan, call),
    params: params as TaskContext["params"],
    taskId: call.taskId,
    mapIndex: call.mapIndex,
    maxTries: call.maxTries,
    attempt: call.attempt,
  });
}

export function baseContext(
  plan: DagPlan,
  call: { readonly run: RunFacts; readonly tryNumber: number; readonly host: TaskHost },
): BaseContext {
  const { host } = call;
  return {
    run: runContext(call.run),
    tryNumber: call.tryNumber,
    log: taskLog(host),
    abort: host.abort,
    async output(task: string | AnyOutput) {
      const taskId = typeof task === "string" ? task : ownId(plan, task);
      if (!plan.tasks.has(taskId)) {
        throw new TaskError("TW_TASK_UNKNOWN", `ctx.output: dag "${plan.dagId}" has no task "${taskId}"`);
      }
      // The value's type is what the handle says; the engine stores what the task returned.
      return (await host.output(taskId, null)) as never;
    },
    async variable(key: string, defaultValue?: string) {
      const value = (await host.variable(key)) ?? defaultValue;
      if (value !== undefined) return value;
      throw new TaskError(
        "TW_VARIABLE_MISSING",
        `variable "${key}" is not set; set it with \`tradewind variables set ${key} <value>\`, or give ctx.variable a default`,
      );
    },
    async connection(id: string) {
      const connection = await host.connection(id);
      if (connection !== undefined) return connection;
      throw new TaskError(
        "TW_CONNECTION_MISSING",
        `connection "${id}" is not stored; add it with \`tradewind connections set ${id} ...\``,
      );
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

function taskLog(host: TaskHost): TaskLog {
  const at = (level: LogLevel) => (message: string, fields?: Readonly<Record<string, unknown>>) =>
    host.log(level, String(message), fields === undefined ? undefined : logFields(fields));
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
