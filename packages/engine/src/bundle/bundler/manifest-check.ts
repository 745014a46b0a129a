/**
 * The last check of a manifest before it leaves the child. The SDK prevents most of these errors, but a bundle carries
 * its own copy of the SDK, and everything after this check trusts the manifest.
 */
import type { DagManifest, StartTrigger, TaskManifest } from "@tradewind/sdk/manifest";
import { compileGraph, RuleSet, validateSchedule } from "../../model/index.ts";
import { isDelay, isKey, isTriggerCall, isWait } from "../../model/trigger/trigger-call.ts";
import { messageOf } from "../../service/errors.ts";

/** The problem, or null. */
export function manifestProblem(manifest: DagManifest): string | null {
  const name = describeId(manifest?.dagId);
  if (name === null) return "A DAG has no id: give dag() a non-empty string of at most 250 characters.";
  const notJson = notJsonAt(manifest, "");
  if (notJson !== null) return `DAG "${name}" cannot be stored: ${notJson}.`;
  if (!Array.isArray(manifest.tasks)) return `DAG "${name}" has no list of tasks.`;
  const { schedule } = manifest;
  if (schedule?.kind === "trigger" && !isTriggerCall(schedule.trigger)) {
    return `The schedule of DAG "${name}" is a trigger that cannot be stored: build the file with this engine's SDK.`;
  }
  return confProblem(name, manifest) ?? taskProblem(name, manifest.tasks) ?? ruleProblem(name, manifest);
}

/** Schedules whose runs receive the triggering event as their conf. */
const WITH_CONF: ReadonlySet<string> = new Set(["none", "trigger", "signal"]);

/** Runs at scheduled times get no conf, so each run would fail. */
function confProblem(name: string, { paramsSchema, schedule }: DagManifest): string | null {
  if (WITH_CONF.has(schedule?.kind)) return null;
  const { required } = (paramsSchema ?? {}) as { readonly required?: unknown };
  if (!Array.isArray(required) || required.length === 0) return null;
  const needed = required.map((each) => `"${each}"`).join(", ");
  return `DAG "${name}" has a schedule, and its params need ${needed}, which scheduled runs are not given: give each a default, or leave out the schedule.`;
}

/** Applies the scheduler's rules once here: an error there would block every other DAG. */
function ruleProblem(name: string, manifest: DagManifest): string | null {
  try {
    validateSchedule(manifest.schedule);
    for (const { every } of manifest.tasks) if (every) validateSchedule(every);
    compileGraph(manifest);
    new RuleSet(manifest);
    return null;
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    return `DAG "${name}": ${messageOf(error)}${typeof code === "string" ? ` [${code}]` : ""}`;
  }
}

/** An id that one file exports twice. */
export function duplicateId(manifests: readonly DagManifest[]): string | null {
  const seen = new Set<string>();
  for (const { dagId } of manifests) {
    if (seen.has(dagId)) return `DAG "${dagId}" is exported twice by this file: give each DAG its own id.`;
    seen.add(dagId);
  }
  return null;
}

function taskProblem(dagId: string, tasks: readonly TaskManifest[]): string | null {
  const waiting = new Map<string, number>();
  for (const { taskId, upstream, startTrigger } of tasks) {
    if (describeId(taskId) === null) return `DAG "${dagId}" has a task without an id.`;
    if (!Array.isArray(upstream)) return `Task "${taskId}" of DAG "${dagId}" has no list of upstream tasks.`;
    if (waiting.has(taskId)) return `DAG "${dagId}" has two tasks "${taskId}": give each task its own id.`;
    waiting.set(taskId, new Set(upstream).size);
    if (startTrigger && !isStart(startTrigger)) {
      return `Task "${taskId}" of DAG "${dagId}" begins with a wait that cannot be stored: build the file with this engine's SDK.`;
    }
  }
  const downstream = new Map<string, string[]>();
  for (const { taskId, upstream } of tasks) {
    for (const above of new Set(upstream)) {
      if (!waiting.has(above)) {
        return `Task "${taskId}" of DAG "${dagId}" comes after "${above}", which is not a task of this DAG.`;
      }
      downstream.set(above, [...(downstream.get(above) ?? []), taskId]);
    }
  }
  return cycle(dagId, waiting, downstream);
}

/** The scheduler stores it in a batch with other changes, so it must not make that batch fail. */
function isStart({ trigger, method, timeoutMs, kwargs, onTimeout }: StartTrigger): boolean {
  const isKnown = onTimeout === "fail" || onTimeout === "fatal" || onTimeout === "skip";
  const hasTime = timeoutMs === null || isDelay(timeoutMs);
  return isWait(trigger, kwargs) && isKnown && hasTime && (method === null || isKey(method));
}

/** Removes tasks without pending upstream until none is left; the rest is in or behind a cycle. */
function cycle(
  dagId: string,
  waiting: Map<string, number>,
  downstream: ReadonlyMap<string, readonly string[]>,
): string | null {
  const free = [...waiting].filter(([, count]) => count === 0).map(([taskId]) => taskId);
  for (let taskId = free.pop(); taskId !== undefined; taskId = free.pop()) {
    waiting.delete(taskId);
    for (const below of downstream.get(taskId) ?? []) {
      const left = (waiting.get(below) ?? 0) - 1;
      waiting.set(below, left);
      if (left === 0) free.push(below);
    }
  }
  if (waiting.size === 0) return null;
  const names = [...waiting.keys()].slice(0, 5).join(", ");
  return `DAG "${dagId}" has a cycle among its tasks (${names}): a task cannot wait for itself.`;
}

function describeId(id: unknown): string | null {
  return typeof id === "string" && id.length > 0 && id.length <= 250 ? id : null;
}

/** The first value that JSON or jsonb cannot hold, with its path. */
function notJsonAt(value: unknown, path: string): string | null {
  if (value === null || typeof value === "boolean") return null;
  if (typeof value === "string") {
    if (value.includes("\u0000")) return `${place(path)} contains the character U+0000`;
    return value.isWellFormed() ? null : `${place(path)} is not valid Unicode (a lone surrogate)`;
  }
  if (typeof value === "number") return Number.isFinite(value) ? null : `${place(path)} is ${value}`;
  if (typeof value !== "object") return `${place(path)} is of type ${typeof value}, which is not JSON`;
  if (path.length > 1_000) return `${place(path.slice(0, 80))} refers to itself or is nested too deeply`;
  if (Array.isArray(value)) {
    return firstProblem(value.map((item, index) => [item, `${path}[${index}]`] as const));
  }
  const prototype = Object.getPrototypeOf(value) as unknown;
  if (prototype !== Object.prototype && prototype !== null) {
    return `${place(path)} is an instance of ${value.constructor?.name ?? "a class"}, which is not JSON`;
  }
  return firstProblem(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [item, path === "" ? key : `${path}.${key}`] as const),
  );
}

function firstProblem(items: readonly (readonly [unknown, string])[]): string | null {
  for (const [item, path] of items) {
    const problem = notJsonAt(item, path);
    if (problem !== null) return problem;
  }
  return null;
}

function place(path: string): string {
  return path === "" ? "its manifest" : path;
}
