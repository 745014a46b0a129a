/** Builds the manifest of a DAG: everything the engine knows about it. */

import { DagDefinitionError, naming, show } from "../check/errors.ts";
import type { DagManifest, StartTrigger, TaskManifest } from "../manifest.ts";
import { hasCancelHook } from "../runtime/cancel.ts";
import { reactsOf } from "../signal/reaction.ts";
import { methodOf, startTrigger } from "../trigger/deferral.ts";
import { Sensor } from "../trigger/sensor.ts";
import { jsonSchemaOf } from "./params/params.ts";
import type { DagPlan, TaskPlan } from "./plan.ts";
import { weighed } from "./weight.ts";

export function describe(plan: DagPlan): DagManifest {
  return {
    dagId: plan.dagId,
    ...plan.settings,
    paramsSchema: jsonSchemaOf(plan.params),
    tasks: [...plan.tasks.values()].map((task) => {
      const described = describeTask(plan.dagId, task);
      const { weigh } = task.callbacks;
      const downstream = plan.downstream.get(task.taskId) ?? [];
      return weigh ? weighed(described, weigh, { dagId: plan.dagId, downstream }) : described;
    }),
    groups: [...plan.groups.values()].map(({ manifest }) => manifest),
    ...(plan.maps.size > 0 && { maps: [...plan.maps.values()] }),
  };
}

function describeTask(dagId: string, task: TaskPlan): TaskManifest {
  const { taskId, body, group, settings, drive, inputs, map, role, upstream } = task;
  const start = startOf(task, dagId);
  const reacts = reactsOf(task);
  return {
    taskId,
    operator: operatorName(task),
    ...(body.kind === "operator" && body.operator instanceof Sensor && { isSensor: true as const }),
    upstream: [...upstream],
    inputs,
    ...settings,
    group,
    role,
    ...(body.kind === "teardown" && { teardown: { of: body.of, failsRun: body.failsRun } }),
    ...(map !== null && { map }),
    // Omitted without a start trigger, so that the manifest and the version of other DAGs do not change.
    ...(start && { startTrigger: start }),
    ...drive,
    ...(reacts && { reacts }),
    ...("dag" in body && body.dag !== undefined && { dag: body.dag }),
    // The `timeout` of an approval limits its wait; that of the DAG's defaults is meant for code.
    ...("approval" in body && body.approval && { approval: body.approval, timeoutMs: null }),
  };
}

function operatorName({ body }: TaskPlan): string {
  if ("dag" in body && body.dag !== undefined) return "dag";
  if ("approval" in body && body.approval) return "approval";
  if (body.kind === "operator") return body.operator.constructor.name || "Operator";
  if (body.kind === "mapOperator") return "Operator";
  return body.kind === "trigger" ? body.call.kind : body.kind;
}

function startOf(task: TaskPlan, dagId: string): StartTrigger | null {
  const start = waitOf(task, dagId);
  return start && { ...start, ...(hasCancelHook(task, start.trigger) && { onCancel: true as const }) };
}

function waitOf({ taskId, body }: TaskPlan, dagId: string): StartTrigger | null {
  if (body.kind === "trigger") {
    return { trigger: body.call, method: null, kwargs: {}, timeoutMs: null, onTimeout: "fail" };
  }
  if (body.kind !== "operator") return null;
  const { operator } = body;
  const where = `dag ${show(dagId)}, task ${show(taskId)}`;
  // Sensors create their triggers here; the error has to name the task.
  const start = naming(where, () => {
    const given = operator.startFrom?.() ?? null;
    return given === null ? null : startTrigger(given);
  });
  if (start === null || start.method === null || methodOf(operator, start.method) !== null) return start;
  throw new DagDefinitionError(
    "TW_BAD_OPTION",
    `${where}: startFrom names the method ${show(start.method)}, which its operator does not have`,
  );
}
