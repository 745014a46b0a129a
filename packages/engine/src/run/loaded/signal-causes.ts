/** What signals have caused in a run, as rows of its owner's batch. */
import type { ImmediateEffect, Instance, TriggerOutcome } from "../../model/index.ts";
import type { EffectWrite } from "../../store/signal/signal-effects.ts";
import type { FiredDeferral } from "../../store/trigger/deferrals.ts";
import type { RunActor } from "./run-actor.ts";

/** A task was stopped, or the run closed. */
export function immediateWrites(runId: number, { by, taskId }: ImmediateEffect): EffectWrite[] {
  const kind = taskId === null ? "close" : "stop";
  const of = { runId, taskId: taskId ?? "", mapIndex: -1, tryNumber: 0, attempt: null };
  return by.map((signalId) => ({ ...of, signalId, kind }));
}

/** A try is queued that signals have started. Of a restarted try only the restart is new. */
export function startWrites({ id: runId, model }: RunActor, instance: Instance): EffectWrite[] {
  const { mapIndex, node, tryNumber } = instance;
  const { restart, start } = model.drive?.cause(node.id) ?? {};
  const kind = restart === undefined ? "start" : "restart";
  const of = { runId, taskId: node.id, mapIndex, tryNumber, attempt: null };
  return (restart ?? start ?? []).map((signalId) => ({ ...of, signalId, kind }));
}

/** A wait was ended by signals or webhook calls. */
export function resumeWrites(fired: FiredDeferral, tryNumber: number): EffectWrite[] {
  const outcome = fired.outcome as unknown as TriggerOutcome;
  if (outcome.kind !== "event") return [];
  const { attempt, dag_run_id: runId, map_index: mapIndex, task_id: taskId } = fired;
  const signals = new Set([...(outcome.signals ?? []), ...Object.values(outcome.calls ?? {})]);
  return [...signals].map((signalId) => ({
    ...{ signalId, runId, taskId, mapIndex, tryNumber, attempt },
    kind: "resume",
  }));
}
