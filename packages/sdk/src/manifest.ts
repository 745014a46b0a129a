/**
 * The serialised form of a DAG: the bundler writes it; scheduler, API and web UI know nothing else of the DAG. Pure
 * JSON. Fields are added, but never change their meaning: old manifests stay in the database as long as their runs.
 */

/**
 * Any JSON value.
 * @example const value: Json = { rows: [1, 2], ok: true, note: null };
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * When a task may start, given the states of its direct upstream tasks.
 * @example const rule: TriggerRule = "noneFailed";
 */
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

/**
 * How the priority of a task is computed from weights: its own, plus all downstream or all upstream weights.
 * @example const weightRule: WeightRule = "absolute";
 */
export type WeightRule = "absolute" | "downstream" | "upstream";

/** When the scheduler creates runs of a DAG. */
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
  /** One run at each of these moments: ISO instants, the earliest first, no two the same. */
  | { readonly kind: "dates"; readonly dates: readonly string[] }
  /** One run at each moment that any of them names; those with a style have "trigger". */
  | { readonly kind: "several"; readonly of: readonly MomentSchedule[] }
  /** A class of the DAG's bundle is called for each run. Its name and arguments are for display: the bundle has both. */
  | { readonly kind: "timetable"; readonly name: string; readonly args: Json }
  /** One run per event, with the event in the run's conf. */
  | { readonly kind: "trigger"; readonly trigger: TriggerCall }
  /**
   * One run each time the condition comes true. `route`: a path into the signal's value, e.g. "order.id"; what is there
   * names the run. Its leaves are signals, without `inRun` and without references into a conf.
   */
  | {
      readonly kind: "signal";
      readonly when: SignalCondition;
      readonly route: string | null;
      /** Present for a schedule on assets. */
      readonly gather?: GatherManifest;
    };

/** How asset events become runs; the leaves of the condition have the namespace "asset" or "schedule". */
export interface GatherManifest {
  /** "batch": one run for all events until the run is created; "event": the condition is evaluated at every event. */
  readonly each: "batch" | "event";
  /** One condition and one run per partition. */
  readonly partitioned: boolean;
  readonly assets: readonly AssetManifest[];
  /** The times of the leaf with the namespace "schedule", whose empty key stands for the DAG's id. */
  readonly time?: Extract<ScheduleManifest, { kind: "cron" | "interval" }>;
}

/** An asset that a task or a schedule names, or an alias for assets. */
export type AssetManifest =
  | {
      readonly kind: "asset";
      readonly uri: string;
      readonly group: string;
      readonly description: string | null;
    }
  | { readonly kind: "alias"; readonly name: string; readonly group: string };

/**
 * A schedule by time that can be part of a list.
 * @example const schedules: MomentSchedule[] = [cron("0 2 * * *"), every("6h"), dates(["2027-01-04"])];
 */
export type MomentSchedule = Extract<ScheduleManifest, { kind: "cron" | "interval" | "dates" }>;

/**
 * A condition on signals; a leaf becomes true with the first signal that matches `where` and `inRun` or, with `equals`,
 * is true while the latest value is equal.
 */
export type SignalCondition =
  | {
      readonly kind: "signal";
      /** In both, "*" matches any text, including an empty one. */
      readonly namespace: string;
      readonly key: string;
      /**
       * A part of the value: an object matches an object that has its members and more; other values match equal
       * values. An object with the only member "$conf" stands for the value at that path of the run's conf.
       */
      readonly where: Json | null;
      readonly equals: { readonly value: Json } | null;
      readonly inRun: boolean;
    }
  /** That task has succeeded in this run. */
  | { readonly kind: "task"; readonly taskId: string }
  | { readonly kind: "all"; readonly of: readonly SignalCondition[] }
  | { readonly kind: "any"; readonly of: readonly SignalCondition[] };

/** The action of a task each time a condition becomes true; with `once`, only the first time. */
export interface SignalRule {
  readonly action: "start" | "restart" | "stop";
  readonly when: SignalCondition;
  readonly once: boolean;
}

/**
 * The stored form of a trigger: its id and arguments.
 * @example const { kind, args }: TriggerCall = serialise(new FileTrigger({ path: "/data/in.csv" }));
 */
export interface TriggerCall {
  readonly kind: string;
  readonly args: Json;
  /** "builtin": part of the engine; "bundle": a class in the DAG's bundle. */
  readonly source: "builtin" | "bundle";
  /** The queue of the triggerers that run it. */
  readonly queue: string;
  /** The number of triggerers that run it at the same time; their events are distinguished by key. */
  readonly replicas: 1 | 2;
  /**
   * The earliest time at which it can fire: an ISO instant, or milliseconds after the wait began; until then it uses no
   * resources.
   */
  readonly wake: { readonly at: string } | { readonly afterMs: number } | null;
  /** If set, it fires at `wake` without being run, with this payload (null: that moment). */
  readonly timed: { readonly payload: Json } | null;
  /** Present if its class has an `onCancel`. */
  readonly onCancel?: true;
}

/** The trigger of a task that starts by waiting, before it needs a worker. */
export interface StartTrigger {
  readonly trigger: TriggerCall;
  /** The method that a worker resumes with; null: the event is the output, and no worker is needed. */
  readonly method: string | null;
  readonly kwargs: Json;
  readonly timeoutMs: number | null;
  readonly onTimeout: "fail" | "fatal" | "skip";
  /** Present if there is an `onCancel` to run when the wait ends without its event. */
  readonly onCancel?: true;
}

/** One DAG of a bundle. */
export interface DagManifest {
  readonly dagId: string;
  readonly description: string | null;
  readonly docs: string | null;
  readonly owner: string | null;
  readonly tags: readonly string[];
  readonly schedule: ScheduleManifest;
  /** ISO instants; null if not given. */
  readonly start: string | null;
  readonly end: string | null;
  readonly catchup: boolean;
  readonly maxActiveRuns: number;
  /** The limit per run. */
  readonly maxActiveTasks: number;
  /** The limit over all runs; omitted if there is none. */
  readonly maxActiveTasksPerDag?: number;
  readonly runTimeoutMs: number | null;
  /** The JSON Schema of `params`; null if the validator cannot provide one. */
  readonly paramsSchema: Json | null;
  readonly hasParams: boolean;
  /** Whether there are functions to call. */
  readonly callbacks: { readonly success: boolean; readonly failure: boolean };
  /** Omitted if there are none. */
  readonly notices?: NoticesManifest;
  readonly tasks: readonly TaskManifest[];
  readonly groups: readonly GroupManifest[];
  /** Outer maps before inner maps; omitted if there are none. */
  readonly maps?: readonly MapManifest[];
  /** The condition that closes the run. */
  readonly stop?: SignalCondition | null;
  /** When a run with streaming tasks or rules is closed automatically; omitted: "stopped", i.e. never. */
  readonly endWhen?: "stopped" | "batchDone";
  /** Omitted if there are none. */
  readonly deadlines?: readonly DeadlineManifest[];
  /** The maximum random delay of scheduled runs; omitted if there is none. */
  readonly jitterMs?: number;
  /** The number of failed scheduled runs in a row after which the DAG is paused; omitted if it never is. */
  readonly pauseAfterFailures?: number;
  /** How a failed run is retried; omitted if it never is. */
  readonly runRetry?: RunRetryManifest;
  /**
   * The versions of the packages that the bundle requires at run time, by name; added by the bundler, omitted if there
   * are none.
   */
  readonly packages?: Readonly<Record<string, string>>;
}

/** How a failed run is retried: "failure" repeats failed tasks and all downstream of them, "start" everything. */
export interface RunRetryManifest {
  readonly retries: number;
  readonly delayMs: number;
  readonly from: "failure" | "start";
}

/** The time by which a run or a task must have succeeded, and the actions if it has not. */
export interface DeadlineManifest {
  readonly after: DeadlineStart;
  readonly withinMs: number;
  readonly actions: readonly DeadlineAction[];
}

/** The moment of the run from which a deadline counts; an average is added to its start. */
export type DeadlineStart =
  | "queued"
  | "logicalDate"
  | "start"
  | { readonly averageOf: number; readonly atLeast: number };

/** An action of a missed deadline; a function is in the bundle, at the same position of the same deadline. */
export type DeadlineAction = { readonly kind: "function" } | NoticeAction;

/** A message that is sent after an event. */
export type NoticeAction =
  /** An http address, or the id of a connection. */
  | { readonly kind: "webhook"; readonly to: string }
  | { readonly kind: "email"; readonly to: readonly string[]; readonly connection: string }
  /** Without a value: what happened. */
  | { readonly kind: "signal"; readonly namespace: string; readonly key: string; readonly value?: Json };

/** Notices by event; events without notices are omitted. */
export interface NoticesManifest {
  readonly success?: readonly NoticeAction[];
  readonly failure?: readonly NoticeAction[];
  readonly retry?: readonly NoticeAction[];
}

/** A group of tasks: a prefix of ids and a box in the graph. */
export interface GroupManifest {
  readonly groupId: string;
  readonly parent: string | null;
  readonly docs: string | null;
  /** How the whole group is retried; omitted if it never is. */
  readonly retry?: GroupRetryManifest;
  /** Omitted if there are none. */
  readonly callbacks?: { readonly success: boolean; readonly failure: boolean; readonly retry: boolean };
  /** Omitted if there are none. */
  readonly notices?: NoticesManifest;
}

/** How a failed group is retried. */
export interface GroupRetryManifest {
  readonly retries: number;
  readonly delayMs: number;
  /** The innermost map that the group is, or is in: each of its items is retried separately; omitted without a map. */
  readonly map?: string;
}

/** Tasks that run once per item of a list: one mapped task, or all tasks of a mapped group. */
export interface MapManifest {
  /** The id of the mapped task or group. */
  readonly mapId: string;
  /** The map around this one. */
  readonly parent: string | null;
  readonly over: MapSource;
  /** The maximum number of unfinished items of a mapped group or DAG; other mapped tasks use `maxActivePerRun`. */
  readonly limit: number | null;
  /** The label of the items; omitted if they only have an index. */
  readonly label?: MapLabel;
}

/** The label of a map's items: words, and paths of fields between them. */
export type MapLabel = readonly (string | readonly string[])[];

/** The source of a map's items. */
export type MapSource =
  /** The output of a task, which is a list; for a mapped task, the list of its outputs. */
  | { readonly kind: "output"; readonly taskId: string }
  /** The item of a map around this one, which is a list itself. */
  | { readonly kind: "item"; readonly mapId: string }
  | { readonly kind: "list"; readonly items: readonly Json[] }
  /** Items are lists, one member per source: of the same place in each; or each with each, the last one fastest. */
  | { readonly kind: "zip" | "cross"; readonly of: readonly MapSource[] };

/** The source of an input: the output of a task, or the item of this instance. */
export type InputSource = { readonly taskId: string } | { readonly item: string };

/** One task of a DAG, with all defaults filled in. */
export interface TaskManifest {
  readonly taskId: string;
  /** "task", "branch", "shortCircuit", "latestOnly", "dag", "approval", or the class name of the operator. */
  readonly operator: string;
  /** Present if its operator is a `Sensor`. */
  readonly isSensor?: true;
  /** Direct upstream task ids from `inputs` and `after`, without duplicates. */
  readonly upstream: readonly string[];
  /** Input names and their sources; outside of its map, a mapped task is the list of its outputs. */
  readonly inputs: Readonly<Record<string, InputSource>>;
  readonly rule: TriggerRule;
  readonly retries: number;
  readonly retryDelayMs: number;
  /** The factor of the delay: 1 keeps it constant, 2 doubles it at each try. */
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
  /** Passed to the executor unchanged; omitted if it was not given. */
  readonly executorConfig?: Readonly<Record<string, Json>>;
  readonly isolation: "warm" | "fresh";
  /** Present if the task may return while work that it started is still open. */
  readonly openWork?: "allow";
  readonly dependsOnPast: boolean;
  readonly waitForDownstream: boolean;
  /** The maximum number of running instances over all runs of the DAG, and per run. */
  readonly maxActivePerDag: number | null;
  readonly maxActivePerRun: number | null;
  readonly group: string | null;
  /**
   * A setup creates a resource, its teardown removes it after the tasks between them have ended in any state. A failing
   * teardown does not fail the run.
   */
  readonly role: "work" | "setup" | "teardown";
  /** For a teardown: its setup, and whether its failure fails the run. */
  readonly teardown?: { readonly of: string; readonly failsRun: boolean };
  readonly callbacks: { readonly success: boolean; readonly failure: boolean; readonly retry: boolean };
  /** Omitted if there are none. */
  readonly notices?: NoticesManifest;
  readonly docs: string | null;
  /** The innermost map around the task; omitted if there is none. */
  readonly map?: string;
  /** Omitted if there are none. */
  readonly deadlines?: readonly DeadlineManifest[];
  /** Missing in manifests older than deferral. */
  readonly startTrigger?: StartTrigger | null;
  /** In the order in which they apply; this and all fields below are omitted if unused. */
  readonly rules?: readonly SignalRule[];
  /**
   * "streaming": the task does not end by itself. By default its `retries` are 10^9, which no task reaches, with a
   * delay of 1 s that doubles up to a minute.
   */
  readonly lifetime?: "batch" | "streaming";
  /** The grace period after a stop request (default 10 s). */
  readonly graceMs?: number;
  /** The times at which it is started while the run is active. */
  readonly every?: Extract<ScheduleManifest, { kind: "cron" | "interval" }>;
  /** The signals that its `onSignal` receives. */
  readonly reacts?: readonly { readonly namespace: string; readonly key: string }[];
  /** The timeout of its `onSignal` (default 30 s). */
  readonly onSignalTimeoutMs?: number;
  /** The assets that its success changes. */
  readonly produces?: readonly AssetManifest[];
  /** The assets that it reads, for documentation. */
  readonly consumes?: readonly AssetManifest[];
  /** The DAG of which each try creates a run to wait for. */
  readonly dag?: string;
  /** Present if a person's answer ends the task. */
  readonly approval?: ApprovalManifest;
}

/** How a person answers a task, and what an answer or its absence means. */
export interface ApprovalManifest {
  /** The JSON Schema of an answer, null if the validator cannot provide one; null: approve or reject. */
  readonly form: { readonly schema: Json | null } | null;
  readonly onReject: "skip" | "fail";
  /** "answer": the trigger of the wait fires with it. */
  readonly onTimeout: "fail" | "skip" | "answer";
  readonly timeoutMs: number | null;
}
