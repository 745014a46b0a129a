/**
 * The trigger classes of a file. A stored trigger is recreated in another process from its class's static id alone, so
 * each id must identify one class, and that class must be at the top level of a module.
 */
import type { DagManifest, TriggerCall } from "@tradewind/sdk/manifest";
import { CLASSES_EXPORT, TRIGGER } from "@tradewind/sdk/program";
import { isJointKind, membersOf } from "../../model/index.ts";
import { DagRefused } from "./refusal.ts";

type TriggerClass = { readonly name: string; readonly id?: unknown; readonly prototype: object };

/** @throws DagRefused for two classes with one id, a class without one, and triggers of classes that cannot be found by id. */
export function refuseTriggerClasses(
  exports: Readonly<Record<string, unknown>>,
  manifests: readonly DagManifest[],
): void {
  const classes = triggerClasses(exports);
  const byId = new Map<unknown, TriggerClass>();
  for (const each of classes) {
    const id = ownId(each);
    if (id === undefined) {
      refuseUnnamed(each, classes);
      continue;
    }
    const other = byId.get(id);
    if (other !== undefined)
      throw new DagRefused(
        `trigger classes ${other.name} and ${each.name} have the same static id ${JSON.stringify(id)}: give one of them another id.`,
      );
    byId.set(id, each);
  }
  for (const { dagId, schedule, tasks } of manifests) {
    if (schedule?.kind === "trigger") refuseNested(schedule.trigger, `the schedule of dag "${dagId}"`, byId);
    for (const { startTrigger, taskId } of tasks)
      if (startTrigger) refuseNested(startTrigger.trigger, `dag "${dagId}", task "${taskId}"`, byId);
  }
}

function triggerClasses(exports: Readonly<Record<string, unknown>>): TriggerClass[] {
  const list = exports[CLASSES_EXPORT];
  const listed = typeof list === "function" ? (list() as unknown[]) : [];
  const all = [...listed, ...Object.values(exports)];
  return [...new Set(all)].filter(
    (each): each is TriggerClass & ((...args: unknown[]) => unknown) =>
      typeof each === "function" && TRIGGER in each,
  );
}

function ownId(each: TriggerClass): unknown {
  return Object.hasOwn(each, "id") ? each.id : undefined;
}

/** A class without an id may be a base class. A concrete one that no class extends lacks its id by mistake. */
function refuseUnnamed(each: TriggerClass, classes: readonly TriggerClass[]): void {
  const canRun = typeof (each.prototype as { run?: unknown }).run === "function";
  if (!canRun || classes.some((other) => Object.prototype.isPrototypeOf.call(each, other))) return;
  throw new DagRefused(
    `trigger class ${each.name || "(without a name)"} has no static id: write e.g. static id = "acme.job_done".`,
  );
}

function refuseNested(call: TriggerCall, where: string, byId: ReadonlyMap<unknown, TriggerClass>): void {
  if (isJointKind(call.kind)) {
    for (const member of Object.values(membersOf(call))) refuseNested(member, where, byId);
    return;
  }
  if (call.source !== "bundle" || byId.has(call.kind)) return;
  throw new DagRefused(
    `${where}: the class of trigger "${call.kind}" is inside a function, where it cannot be found again: move it to the top level of its module; in a CommonJS file, export it as well.`,
  );
}
