/** What executors report of attempts, put to the runs they belong to. */
import type { Admission } from "../admit/admission.ts";
import type { RunActor, Traces } from "../loaded/run-actor.ts";
import type { ActiveAttempts, Report } from "./active-attempts.ts";

/** What one batch is made of. */
export interface Gathered {
  readonly touched: Set<RunActor>;
  readonly reports: readonly Report[];
  readonly traces: Traces;
}

export interface ReportsContext {
  readonly activeAttempts: ActiveAttempts;
  readonly actors: ReadonlyMap<number, RunActor>;
  readonly admission: Admission;
  /** From this machine's clock to the database's. */
  readonly fromLocal: (at: number) => number;
}

/** Reports of attempts that are no longer current are dropped: their slots became free when they ceased to be current. */
export function applyReports(
  reports: readonly Report[],
  { actors, admission, fromLocal, activeAttempts }: ReportsContext,
  { touched, traces }: { readonly touched: Set<RunActor>; readonly traces: Traces },
): void {
  for (const report of reports) {
    const held = activeAttempts.get(report.attempt);
    const actor = held && actors.get(held.runId);
    if (report.type === "ended") activeAttempts.noteGone(report.attempt);
    if (actor && admission.blockedTeardowns.has(actor)) touched.add(actor);
    const instance = held && actor?.model.get(held.taskId, held.mapIndex);
    if (!held || !actor || !instance) continue;
    const key = { taskId: held.taskId, mapIndex: held.mapIndex, attempt: report.attempt };
    const at = fromLocal(report.at);
    if (report.type === "started") {
      if (instance.attempt === report.attempt) instance.pid = report.pid;
      if (actor.model.apply({ type: "started", ...key, at }, at)) touched.add(actor);
    } else {
      const keepsSlot = admission.keepsDeferred(actor, instance);
      if (!actor.ended({ ...key, at, outcome: report.outcome, keepsSlot }, traces)) continue;
      admission.freed(actor, instance);
      touched.add(actor);
    }
  }
}
