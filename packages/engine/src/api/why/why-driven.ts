/** Why a task of a signal-driven run has not started or is about to end: missing signals and manual commands. */
import type { TaskManifest } from "@tradewind/sdk/manifest";
import type { Drive, RuleReport } from "../../model/index.ts";
import { SIGNAL_KIND } from "../../model/trigger/engine-kinds.ts";
import type { Database } from "../../store/database/database.ts";
import type { CurrentWait } from "../../store/list/deferrals.ts";
import { signalBlockers } from "../../store/signal/signals-blockers.ts";
import { iso } from "../server/fields.ts";
import { blockerMessage, type DrivenRun, receivesSignals, signalNames } from "../signal/conditions.ts";
import type { Finding } from "./why-deferred.ts";

/** For a task that has not started in this run. Empty: signals are not involved. */
export function startReasons({ drive }: DrivenRun, task: TaskManifest, tryNumber: number): Finding[] {
  const { taskId } = task;
  const starts = drive.starts(taskId);
  if (starts > 0)
    return [
      reason("START_PENDING", `A start was requested ${times(starts)} and is pending.`),
      ...onSignalReasons(drive, taskId),
    ];
  // A task that has started before needs no further start.
  if (!drive.needsStart(taskId) || tryNumber > 0) return [];
  if (drive.closed !== null)
    return [reason("RUN_CLOSED", `The run was closed by ${drive.closed}: it can no longer start.`)];
  return wakers({ drive, task, verb: "waits for" });
}

/** For an active task. */
export function underWayReasons({ drive }: DrivenRun, { taskId }: TaskManifest): Finding[] {
  const by = drive.stopping(taskId);
  const starts = drive.starts(taskId);
  return [
    ...(by === null ? [] : [reason("STOPPING", `It is being stopped by ${by}.`)]),
    ...(starts === 0
      ? []
      : [
          reason("START_PENDING", `Another start was requested ${times(starts)}: it reruns after this time.`),
        ]),
    ...onSignalReasons(drive, taskId),
  ];
}

/** For an ended task of a running run: what makes it rerun. */
export function againReasons({ drive }: DrivenRun, task: TaskManifest): Finding[] {
  const starts = drive.starts(task.taskId);
  if (starts > 0)
    return [reason("START_PENDING", `Another start was requested ${times(starts)}: it is about to rerun.`)];
  return drive.closed !== null ? [] : wakers({ drive, task, verb: "reruns on" });
}

/** For a task that signals start, stop or wake: open transactions that block signals. */
export async function heldReasons(facts: {
  readonly database: Database;
  readonly driven: DrivenRun | null;
  readonly instance: { readonly wait: CurrentWait | null } | undefined;
  readonly task: TaskManifest;
}): Promise<Finding[]> {
  const { database, driven, instance, task } = facts;
  const isDriven =
    driven !== null && receivesSignals(driven) && (task.rules !== undefined || task.reacts !== undefined);
  if (!isDriven && !waitsForSignal(instance?.wait ?? null)) return [];
  return (await signalBlockers(database)).map((each) => reason("SIGNALS_HELD", blockerMessage(each)));
}

function waitsForSignal(wait: CurrentWait | null): boolean {
  return wait?.kind === SIGNAL_KIND && wait.trigger !== null;
}

function wakers({
  drive,
  task,
  verb,
}: Pick<DrivenRun, "drive"> & { task: TaskManifest; verb: string }): Finding[] {
  const { taskId } = task;
  const rules = drive
    .report()
    .filter((rule) => rule.taskId === taskId && rule.action !== "stop" && rule.isArmed);
  const tickAt = drive.tickAt(taskId);
  const names = signalNames(task);
  const found = [
    ...onSignalReasons(drive, taskId),
    ...rules.map((rule) => reason("SIGNAL", `It ${verb} a signal: ${rule.text}${lack(rule)}.`)),
    ...(names.length === 0
      ? []
      : [reason("SIGNAL", `It ${verb} a signal, if its onSignal decides so: ${names.join(", ")}.`)]),
  ];
  if (tickAt === null) return found;
  const at = new Date(tickAt);
  return [...found, reason("TICK", `Its next tick is at ${iso(at)}.`, at)];
}

/** For a task whose `onSignal` fails: later signals wait until it succeeds or is given up. */
function onSignalReasons(drive: Drive, taskId: string): Finding[] {
  const asking = drive.failedOnSignal(taskId);
  if (asking === null) return [];
  const { attempts, error, key, version } = asking;
  const at = new Date(asking.againAt);
  const text = `Its onSignal failed on ${key} (version ${version}), ${times(attempts)}, and is retried at ${iso(at)}; later signals wait: ${error}`;
  return [reason("ON_SIGNAL_FAILING", /[.!?…]$/.test(text) ? text : `${text}.`, at)];
}

/** Empty before the first signal: then the whole condition is missing. */
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
