/** The internal form of a defined DAG: the builder writes it; `describe` and `run` read it. */

import type { StandardSchemaV1 } from "../check/standard-schema.ts";
import type {
  ApprovalManifest,
  GroupManifest,
  InputSource,
  MapManifest,
  TaskManifest,
  TriggerCall,
} from "../manifest.ts";
import type { GroupCallback, TaskContext } from "../runtime/context.ts";
import type { ResultTasks } from "../runtime/program.ts";
import type { Operator } from "../trigger/operator.ts";
import type { DagCallbacks, DagSettings } from "./dag-options.ts";
import type { Env } from "./params/env.ts";
import type { TaskCallbacks, TaskSettings } from "./task-options.ts";

/** A handler without its types, which the builder has checked. */
export type UserFunction = (inputs: Readonly<Record<string, unknown>>, ctx: TaskContext) => unknown;

/** Like {@link UserFunction}, for a mapped task. */
export type MappedFunction = (
  item: unknown,
  inputs: Readonly<Record<string, unknown>>,
  ctx: TaskContext,
) => unknown;

/** The name of the input that holds the item of a mapped task. */
export const ITEM = "item";

/** The name of the input that holds the output of a teardown's setup. */
export const RESOURCE = "resource";

/** The code of a task. */
export type TaskBody =
  | { readonly kind: "task"; readonly run: UserFunction }
  | { readonly kind: "branch"; readonly run: UserFunction }
  | { readonly kind: "shortCircuit"; readonly run: UserFunction; readonly respectRules: boolean }
  | { readonly kind: "latestOnly" }
  /** `dag`: of a sub-DAG, here and below. */
  | {
      readonly kind: "operator";
      readonly operator: Operator<unknown, unknown>;
      readonly dag?: string;
      readonly approval?: ApprovalManifest;
    }
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

/** The fields of a task's manifest about signals and times. */
export type TaskDrive = Pick<TaskManifest, "rules" | "lifetime" | "graceMs" | "every" | "onSignalTimeoutMs">;

export interface TaskPlan {
  readonly taskId: string;
  readonly group: string | null;
  readonly body: TaskBody;
  readonly role: TaskManifest["role"];
  readonly settings: TaskSettings;
  /** What starts or stops the task besides its upstream; only the options that were given. */
  readonly drive: TaskDrive;
  readonly callbacks: TaskCallbacks;
  /** The task's own `env`, without that of the DAG. */
  readonly env: Env | undefined;
  readonly inputs: Readonly<Record<string, InputSource>>;
  /** The innermost map around the task. */
  readonly map: string | null;
  /** Grows until the DAG is complete: a group passes its `after` to its first tasks when it closes. */
  readonly upstream: Set<string>;
}

/** The callbacks of a group. */
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
  /** The identity of the builder: the owner of all handles of this DAG. */
  readonly owner: object;
  /** The tasks of the DAG's result, if its build function returned handles. */
  readonly result: ResultTasks | undefined;
}

/** All tasks downstream of the given ones; a given task is included only if it is reached from another. */
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
