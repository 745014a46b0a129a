/** A defined DAG, from the inside: what the builder collects and what describing and running it read. */

import type { StandardSchemaV1 } from "../check/standard-schema.ts";
import type { GroupManifest, InputSource, MapManifest, TaskManifest, TriggerCall } from "../manifest.ts";
import type { GroupCallback, TaskContext } from "../runtime/context.ts";
import type { ResultTasks } from "../runtime/program.ts";
import type { Operator } from "../trigger/operator.ts";
import type { DagCallbacks, DagSettings } from "./dag-options.ts";
import type { Env } from "./params/env.ts";
import type { TaskCallbacks, TaskSettings } from "./task-options.ts";

/** A handler, its types erased: the builder has checked them. */
export type UserFunction = (inputs: Readonly<Record<string, unknown>>, ctx: TaskContext) => unknown;

/** As {@link UserFunction}, of a mapped task. */
export type MappedFunction = (
  item: unknown,
  inputs: Readonly<Record<string, unknown>>,
  ctx: TaskContext,
) => unknown;

/** The input under which a mapped task finds its item. */
export const ITEM = "item";

/** The input under which a teardown finds what its setup has made. */
export const RESOURCE = "resource";

/** What runs when the task runs. */
export type TaskBody =
  | { readonly kind: "task"; readonly run: UserFunction }
  | { readonly kind: "branch"; readonly run: UserFunction }
  | { readonly kind: "shortCircuit"; readonly run: UserFunction; readonly respectRules: boolean }
  | { readonly kind: "latestOnly" }
  /** `dag`: of a sub-DAG, here and below. */
  | { readonly kind: "operator"; readonly operator: Operator<unknown, unknown>; readonly dag?: string }
  /** Once per item, which is its input of the name {@link ITEM}. */
  | { readonly kind: "map"; readonly run: MappedFunction }
  | { readonly kind: "mapOperator"; readonly make: MappedFunction; readonly dag?: string }
  /** The first to be given is what its setup has made, its input of the name {@link RESOURCE}. */
  | {
      readonly kind: "teardown";
      readonly run: MappedFunction;
      readonly of: string;
      readonly failsRun: boolean;
    }
  /** Has no code: it waits, and its event is its output. */
  | { readonly kind: "trigger"; readonly call: TriggerCall };

/** The part of a task's manifest that says what signals and time do to it. */
export type TaskDrive = Pick<TaskManifest, "rules" | "lifetime" | "graceMs" | "every" | "onSignalTimeoutMs">;

export interface TaskPlan {
  readonly taskId: string;
  readonly group: string | null;
  readonly body: TaskBody;
  readonly role: TaskManifest["role"];
  readonly settings: TaskSettings;
  /** What drives it besides its upstream; only what its author has said. */
  readonly drive: TaskDrive;
  readonly callbacks: TaskCallbacks;
  /** Its own, without that of the DAG. */
  readonly env: Env | undefined;
  readonly inputs: Readonly<Record<string, InputSource>>;
  /** The innermost map it is in. */
  readonly map: string | null;
  /** Grows until the DAG is complete: a group hands its own `after` to its first tasks when it closes. */
  readonly upstream: Set<string>;
}

/** The functions of a group that run after the fact. */
interface GroupCallbacks {
  readonly onSuccess: readonly GroupCallback<never>[];
  readonly onFailure: readonly GroupCallback<never>[];
  readonly onRetry: readonly GroupCallback<never>[];
}

export interface GroupPlan {
  readonly manifest: GroupManifest;
  readonly callbacks: GroupCallbacks;
}

export interface DagPlan {
  readonly dagId: string;
  readonly settings: DagSettings;
  readonly params: StandardSchemaV1 | null;
  readonly callbacks: DagCallbacks;
  readonly env: Env | undefined;
  readonly tasks: ReadonlyMap<string, TaskPlan>;
  readonly groups: ReadonlyMap<string, GroupPlan>;
  readonly maps: ReadonlyMap<string, MapManifest>;
  /** Direct downstream task ids. */
  readonly downstream: ReadonlyMap<string, readonly string[]>;
  /** The builder's identity: the owner of all handles of this DAG. */
  readonly owner: object;
  /** What its build function returned, if that is its result. */
  readonly result: ResultTasks | undefined;
}

/** Everything reachable from some tasks, without the tasks themselves unless reached again. */
export function reachable(plan: DagPlan, from: Iterable<string>): Set<string> {
  const seen = new Set<string>();
  const open = [...from];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const next of plan.downstream.get(id) ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(next);
    }
  }
  return seen;
}
