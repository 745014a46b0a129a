/** The result of a DAG: the outputs of the tasks whose handles its build function returned. */

import type { Json } from "../manifest.ts";
import type { ResultTasks } from "../runtime/program.ts";
import { type AnyOutput, type Output, ownerOf, sourceOf } from "./handle.ts";

/**
 * The type of a DAG's result: the output of the handle, or of each handle, that its build function returned.
 * @example const result: ResultOf<{ total: Output<number> }> = { total: 7 };
 */
export type ResultOf<R> =
  R extends Output<infer T>
    ? T
    : R extends Readonly<Record<string, AnyOutput>>
      ? { readonly [K in keyof R]: R[K] extends Output<infer T> ? T : never }
      : null;

/** Returns undefined if the build function did not return handles of this DAG. */
export function resultOf(returned: unknown, owner: object): ResultTasks | undefined {
  const taskId = ownTask(returned, owner);
  if (taskId !== null) return { taskId };
  if (Object.getPrototypeOf(returned ?? 0) !== Object.prototype) return undefined;
  const members = Object.entries(returned as object).map(([name, each]) => [name, ownTask(each, owner)]);
  const isResult = members.length > 0 && members.every(([, id]) => id !== null);
  return isResult ? { members: Object.fromEntries(members) as Record<string, string> } : undefined;
}

function ownTask(handle: unknown, owner: object): string | null {
  const source = ownerOf(handle) === owner ? sourceOf(handle) : null;
  return source !== null && "taskId" in source ? source.taskId : null;
}

export function resultTasks(of: ResultTasks): string[] {
  return "taskId" in of ? [of.taskId] : [...new Set(Object.values(of.members))];
}

export function resultValue(of: ResultTasks, outputOf: (taskId: string) => Json): Json {
  if ("taskId" in of) return outputOf(of.taskId);
  return Object.fromEntries(Object.entries(of.members).map(([name, id]) => [name, outputOf(id)]));
}
