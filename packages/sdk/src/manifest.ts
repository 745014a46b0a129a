/**
 * The serialised form of a DAG: what the bundler writes, and all that scheduler, API and web UI ever see of it.
 * Pure JSON. A field is added, never changed in meaning: old manifests stay in the database as long as their runs.
 */

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** When a task may start, judged by the states of its direct upstream tasks. */
export type TriggerRule =
  | "allSuccess"
  | "allFailed"
  | "allDone"
  | "allDoneMinOneSuccess"
  | "allDoneSetupSuccess"
  | "oneSuccess"
  | "oneFailed"
  | "oneDone"
  | "noneFailed"
  | "noneFailedMinOneSuccess"
  | "noneSkipped"
  | "allSkipped"
  | "always";

/** How a task's own weight grows into its effective priority. */
export type WeightRule = "absolute" | "downstream" | "upstream";

/** When the scheduler makes runs of a DAG. */
export type ScheduleManifest =
  | { readonly kind: "none" }
  | { readonly kind: "once" }
  | { readonly kind: "continuous" }
  /** `style` "trigger": the logical date is the moment the run is due; "interval": the start of the period that just ended. */
  | {
      readonly kind: "cron";
      readonly expression: string;
      readonly timezone: string;
      readonly style: "trigger" | "interval";
    }
  | { readonly kind: "interval"; readonly everyMs: number; readonly style: "trigger" | "interval" }
  /** One run per event, with the event in the run's conf. */
  | { readonly kind: "trigger"; readonly trigger: TriggerCall };

/** A trigger by its id and arguments: all that is stored of it. */
export interface TriggerCall {
  readonly kind: string;
  readonly args: Json;
  /** "builtin": the engine knows it; "bundle": a class of the DAG's own bundle. */
  readonly source: "builtin" | "bundle";
  /** Triggerers of this queue run it. */
  readonly queue: string;
  /** How many triggerers run it at once; their events are told apart by key. */
  readonly replicas: 1 | 2;
  /** The earliest moment it can fire: until then it costs nothing. ISO instant, or milliseconds after the wait began. */
  readonly wake: { readonly at: string } | { readonly afterMs: number } | null;
  /** Set: it fires at `wake` by itself, with this payload (null: that moment), and never has to be run. */
  readonly timed: { readonly payload: Json } | null;
}

/** A task that begins by waiting: no worker is needed before the trigger has fired. */
export interface StartTrigger {
  readonly trigger: TriggerCall;
  /** Where a worker goes on; null: the event is the task's output, and no worker is needed at all. */
  readonly method: string | null;
  readonly kwargs: Json;
  readonly timeoutMs: number | null;
  readonly onTimeout: "fail" | "fatal" | "skip";
}

/** One DAG of a bundle. */
export interface DagManifest {
  readonly dagId: string;
  readonly description: string | null;
  readonly docs: string | null;
  readonly owner: string | null;
  readonly tags: readonly string[];
  readonly schedule: ScheduleManifest;
  /** ISO instants; null when not given. */
  readonly start: string | null;
  readonly end: string | null;
  readonly catchup: boolean;
  readonly maxActiveRuns: number;
  /** Per run. */
  readonly maxActiveTasks: number;
  readonly runTimeoutMs: number | null;
  /** JSON Schema of `params`, when the validator can tell it; null otherwise. */
  readonly paramsSchema: Json | null;
  readonly hasParams: boolean;
  readonly callbacks: { readonly success: boolean; readonly failure: boolean };
  readonly tasks: readonly TaskManifest[];
  readonly groups: readonly GroupManifest[];
}

/** A task group: an id prefix and a box in the graph. */
export interface GroupManifest {
  readonly groupId: string;
  readonly parent: string | null;
  readonly docs: string | null;
}

/** One task of a DAG, all defaults filled in. */
export interface TaskManifest {
  readonly taskId: string;
  /** What the author used: "task", "branch", "shortCircuit", or the operator's class name. */
  readonly operator: string;
  /** Direct upstream task ids, data and order edges alike, without duplicates. */
  readonly upstream: readonly string[];
  /** Data edges: input name to the task whose output it takes. */
  readonly inputs: Readonly<Record<string, { readonly taskId: string }>>;
  readonly rule: TriggerRule;
  readonly retries: number;
  readonly retryDelayMs: number;
  /** 1 = constant delay; 2 doubles it each try. */
  readonly retryBackoff: number;
  readonly maxRetryDelayMs: number | null;
  readonly timeoutMs: number | null;
  readonly memoryMb: number | null;
  readonly pool: string;
  readonly poolSlots: number;
  readonly priority: number;
  readonly weightRule: WeightRule;
  readonly queue: string;
  readonly executor: string | null;
  readonly isolation: "warm" | "fresh";
  readonly dependsOnPast: boolean;
  readonly waitForDownstream: boolean;
  /** Running instances of this task across all runs of the DAG, and within one run. */
  readonly maxActivePerDag: number | null;
  readonly maxActivePerRun: number | null;
  readonly group: string | null;
  readonly role: "work" | "setup" | "teardown";
  /** Set for a mapped task: the input whose array it runs over, and how many instances may be active at once. */
  readonly map: { readonly over: string; readonly limit: number | null } | null;
  readonly callbacks: { readonly success: boolean; readonly failure: boolean; readonly retry: boolean };
  readonly docs: string | null;
  /** Left out in manifests older than deferral. */
  readonly startTrigger?: StartTrigger | null;
}
