/** Applies the reports of executors to the runs of their attempts. */
import type { AttemptReport } from "../../execute/contract.ts";
import type { Admission } from "../admit/admission.ts";
import type { RunActor, Traces } from "../loaded/run-actor.ts";
import type { ActiveAttempts } from "./active-attempts.ts";

/** The input of one batch. */
export interface Gathered {
  readonly touched: Set<RunActor>;
  readonly reports: readonly AttemptReport[];
  readonly traces: Traces;
}

export interface ReportsContext {
  readonly activeAttempts: ActiveAttempts;
  readonly actors: ReadonlyMap<number, RunActor>;
  readonly admission: Admission;
  /** Converts the clock of this machine to that of the database. */
  readonly fromLocal: (at: number) => number;
  /** How many attempts of a try may be lost with their worker or pod. */
  readonly lossBudget: number;
}

/** Reports of superseded attempts are dropped: their slots were freed when another attempt replaced them. */
export function applyReports(
  reports: readonly AttemptReport[],
  { actors, admission, fromLocal, activeAttempts, lossBudget: budget }: ReportsContext,
  { touched, traces }: { readonly touched: Set<RunActor>; readonly traces: Traces },
): void {
  for (const report of reports) {
    const held = activeAttempts.get(report.attempt);
    const actor = held && actors.get(held.runId);
    // Its row is deleted with the batch, under the fence of its run.
    const owned = report.stored && actors.get(report.stored.runId);
    if (owned) touched.add(owned);
    if (report.type === "ended") activeAttempts.recordGone(report.attempt);
    if (actor && admission.blockedTeardowns.has(actor)) touched.add(actor);
    const instance = held && actor?.model.get(held.taskId, held.mapIndex);
    if (!held || !actor || instance?.attempt !== report.attempt) continue;
    const at = report.stored ? report.at : fromLocal(report.at);
    if (report.stored) {
      instance.executorJob = report.stored.workerJob;
      instance.hostname = report.stored.hostname;
    }
    if (report.type === "started") {
      instance.pid = report.pid;
      const key = { taskId: held.taskId, mapIndex: held.mapIndex, attempt: report.attempt };
      if (actor.model.apply({ type: "started", ...key, at }, at)) touched.add(actor);
    } else {
      const keepsSlot = admission.keepsDeferred(actor, instance);
      const lossBudget = report.stored?.isHostGone ? budget : null;
      if (!actor.end(instance, report.outcome, { at, keepsSlot, lossBudget, traces })) continue;
      admission.freed(actor, instance);
      touched.add(actor);
    }
  }
}
