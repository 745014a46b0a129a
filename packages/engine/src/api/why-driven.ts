/** Why a task of a driven run has not started, or is about to end: what it waits to hear, and what was asked for. */
import type { TaskManifest } from "@tradewind/sdk/manifest";
import type { RuleReport } from "../model/index.ts";
import type { DrivenRun } from "./conditions.ts";
import { iso } from "./fields.ts";
import type { Finding } from "./why-deferred.ts";

/** Of a task that has not started in this run. Nothing: signals have no part in it. */
export function startReasons({ drive }: DrivenRun, task: TaskManifest, tryNumber: number): Finding[] {
  const { taskId } = task;
  const starts = drive.starts(taskId);
  if (starts > 0)
    return [reason("START_PENDING", `It was asked to start, ${times(starts)}, and will when it can.`)];
  // What was let through before needs no further start.
  if (!drive.needsStart(taskId) || tryNumber > 0) return [];
  if (drive.closed !== null)
    return [reason("RUN_CLOSED", `The run was closed by ${drive.closed}: nothing can start it any more.`)];
  return wakers({ drive, task, verb: "waits for" });
}

/** Of a task that is under way. */
export function underWayReasons({ drive }: DrivenRun, { taskId }: TaskManifest): Finding[] {
  const by = drive.stopping(taskId);
  const starts = drive.starts(taskId);
  return [
    ...(by === null ? [] : [reason("STOPPING", `It is being stopped by ${by}.`)]),
    ...(starts === 0
      ? []
      : [reason("START_PENDING", `It was asked to start again, ${times(starts)}: it will after this time.`)]),
  ];
}

/** Of a task that has ended while its run goes on: what makes it run again. */
export function againReasons({ drive }: DrivenRun, task: TaskManifest): Finding[] {
  const starts = drive.starts(task.taskId);
  if (starts > 0)
    return [reason("START_PENDING", `It was asked to start again, ${times(starts)}, and is about to.`)];
  return drive.closed !== null ? [] : wakers({ drive, task, verb: "runs again on" });
}

function wakers({
  drive,
  task,
  verb,
}: Pick<DrivenRun, "drive"> & { task: TaskManifest; verb: string }): Finding[] {
  const { reacts = [], taskId } = task;
  const rules = drive
    .report()
    .filter((rule) => rule.taskId === taskId && rule.action !== "stop" && rule.isArmed);
  const tickAt = drive.tickAt(taskId);
  const names = reacts.map(({ key, namespace }) => (namespace === "default" ? key : `${namespace}:${key}`));
  const found = [
    ...rules.map((rule) => reason("SIGNAL", `It ${verb} a signal: ${rule.text}${lack(rule)}.`)),
    ...(names.length === 0
      ? []
      : [reason("SIGNAL", `It ${verb} a signal, if its onSignal says so: ${names.join(", ")}.`)]),
  ];
  if (tickAt === null) return found;
  const at = new Date(tickAt);
  return [...found, reason("TICK", `Its next time is ${iso(at)}.`, at)];
}

/** Nothing as long as it has heard nothing: then it lacks what it says. */
function lack({ leaves, missing }: RuleReport): string {
  if (leaves.every(({ met, version }) => !met && version === null)) return "";
  return `; ${missing} ${missing.includes(" and ") ? "are" : "is"} missing`;
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}

function reason(code: string, message: string, until: Date | null = null): Finding {
  return { code, message, until };
}
