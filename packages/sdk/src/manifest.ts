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
  /** One run at each of these moments: ISO instants, the earliest first, no two the same. */
  | { readonly kind: "dates"; readonly dates: readonly string[] }
  /** One run at each moment that any of them names; those with a style have "trigger". */
  | { readonly kind: "several"; readonly of: readonly MomentSchedule[] }
  /** A class of the DAG's bundle is asked for each run. Its name and arguments are for people: the bundle has both. */
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
      /** Of a schedule on assets. */
      readonly gather?: GatherManifest;
    };

/** How what happens to assets becomes runs. The leaves of the condition are of the namespace "asset", and of "schedule". */
export interface GatherManifest {
  /** "batch": what has happened until the run is made goes into one run; "event": the condition is judged at every event. */
  readonly each: "batch" | "event";
  /** One condition, and one run, for each partition. */
  readonly partitioned: boolean;
  readonly assets: readonly AssetManifest[];
  /** The times of the leaf of the namespace "schedule", whose key is empty: it stands for the DAG's id. */
  readonly time?: Extract<ScheduleManifest, { kind: "cron" | "interval" }>;
}

/** An asset that a task or a schedule names, or an alias that stands for some. */
export type AssetManifest =
  | {
      readonly kind: "asset";
      readonly uri: string;
      readonly group: string;
      readonly description: string | null;
    }
  | { readonly kind: "alias"; readonly name: string; readonly group: string };

/** A schedule that can be one of several. */
export type MomentSchedule = Extract<ScheduleManifest, { kind: "cron" | "interval" | "dates" }>;

/**
 * What has to be heard. A leaf hears the signals of its key that match `where` and, with `inRun`, come from a task of
 * the same run. Without `equals` it becomes true with the first one and stays so; with `equals` it is true as long as
 * the latest one has exactly that value.
 */
export type SignalCondition =
  | {
      readonly kind: "signal";
      /** In both, "*" stands for any text, also none. */
      readonly namespace: string;
      readonly key: string;
      /**
       * A part of the value: an object matches one that has its members and more, everything else only its equal. An
       * object with the only member "$conf" stands for what is at that path of the run's conf.
       */
      readonly where: Json | null;
      readonly equals: { readonly value: Json } | null;
      readonly inRun: boolean;
    }
  /** That task has succeeded in this run. */
  | { readonly kind: "task"; readonly taskId: string }
  | { readonly kind: "all"; readonly of: readonly SignalCondition[] }
  | { readonly kind: "any"; readonly of: readonly SignalCondition[] };

/** What a task does each time a condition comes true; with `once`, the first time only. */
export interface SignalRule {
  readonly action: "start" | "restart" | "stop";
  readonly when: SignalCondition;
  readonly once: boolean;
}

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
  /** Its class has an `onCancel`. Left out otherwise. */
  readonly onCancel?: true;
}

/** A task that begins by waiting: no worker is needed before the trigger has fired. */
export interface StartTrigger {
  readonly trigger: TriggerCall;
  /** Where a worker goes on; null: the event is the task's output, and no worker is needed at all. */
  readonly method: string | null;
  readonly kwargs: Json;
  readonly timeoutMs: number | null;
  readonly onTimeout: "fail" | "fatal" | "skip";
  /** There is an `onCancel` to run if the wait ends without its event. Left out otherwise. */
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
  /** ISO instants; null when not given. */
  readonly start: string | null;
  readonly end: string | null;
  readonly catchup: boolean;
  readonly maxActiveRuns: number;
  /** Per run. */
  readonly maxActiveTasks: number;
  /** Over all runs. Left out when there is no such limit. */
  readonly maxActiveTasksPerDag?: number;
  readonly runTimeoutMs: number | null;
  /** JSON Schema of `params`, when the validator can tell it; null otherwise. */
  readonly paramsSchema: Json | null;
  readonly hasParams: boolean;
  /** Whether there are functions to call. */
  readonly callbacks: { readonly success: boolean; readonly failure: boolean };
  /** Left out when there is none. */
  readonly notices?: NoticesManifest;
  readonly tasks: readonly TaskManifest[];
  readonly groups: readonly GroupManifest[];
  /** Parents before what is inside them. Left out when there is none. */
  readonly maps?: readonly MapManifest[];
  /** Closes the run. */
  readonly stop?: SignalCondition | null;
  /** When a run with streaming tasks or rules is closed by itself: "batchDone", or never ("stopped"), when left out. */
  readonly endWhen?: "stopped" | "batchDone";
  /** Left out when there is none. */
  readonly deadlines?: readonly DeadlineManifest[];
  /** Scheduled runs are due up to that much later, each by a time of its own. Left out when there is none. */
  readonly jitterMs?: number;
  /** After so many failed scheduled runs in a row the DAG is paused. Left out when it never is. */
  readonly pauseAfterFailures?: number;
  /** How a failed run is tried again. Left out when it never is. */
  readonly runRetry?: RunRetryManifest;
  /** Versions of the packages that the DAG's bundle requires at run time, by name. Added by the bundler; left out when there is none. */
  readonly packages?: Readonly<Record<string, string>>;
}

/** "failure": what failed and all that comes after it runs again; "start": everything. */
export interface RunRetryManifest {
  readonly retries: number;
  readonly delayMs: number;
  readonly from: "failure" | "start";
}

/** By when a run or a task has to have succeeded, and what is done when it has not. */
export interface DeadlineManifest {
  readonly after: DeadlineStart;
  readonly withinMs: number;
  readonly actions: readonly DeadlineAction[];
}

/** The run's moment that a deadline counts from; the average is added to its start. */
export type DeadlineStart =
  | "queued"
  | "logicalDate"
  | "start"
  | { readonly averageOf: number; readonly atLeast: number };

/** A function is in the bundle, at the same place of the same deadline. */
export type DeadlineAction = { readonly kind: "function" } | NoticeAction;

/** What is sent when something has happened. */
export type NoticeAction =
  /** An http address, or the id of a connection. */
  | { readonly kind: "webhook"; readonly to: string }
  | { readonly kind: "email"; readonly to: readonly string[]; readonly connection: string }
  /** Without a value: what happened. */
  | { readonly kind: "signal"; readonly namespace: string; readonly key: string; readonly value?: Json };

/** By event. Left out where there are none. */
export interface NoticesManifest {
  readonly success?: readonly NoticeAction[];
  readonly failure?: readonly NoticeAction[];
  readonly retry?: readonly NoticeAction[];
}

/** A task group: an id prefix and a box in the graph. */
export interface GroupManifest {
  readonly groupId: string;
  readonly parent: string | null;
  readonly docs: string | null;
  /** The whole group runs again when it has failed. Left out when it never does. */
  readonly retry?: GroupRetryManifest;
  /** Left out when it has none. */
  readonly callbacks?: { readonly success: boolean; readonly failure: boolean; readonly retry: boolean };
  /** Left out when there is none. */
  readonly notices?: NoticesManifest;
}

export interface GroupRetryManifest {
  readonly retries: number;
  readonly delayMs: number;
  /** The innermost map that the group is, or is in: each of its items is tried again by itself. Left out without one. */
  readonly map?: string;
}

/** Tasks that run once per item of a list: one mapped task, or all tasks of a mapped group. */
export interface MapManifest {
  /** The id of the mapped task or group. */
  readonly mapId: string;
  /** The map around this one. */
  readonly parent: string | null;
  readonly over: MapSource;
  /** How many items of a mapped group or DAG are under way at once; any other mapped task has `maxActivePerRun`. */
  readonly limit: number | null;
  /** What its items are called. Left out when they have only their index. */
  readonly label?: MapLabel;
}

/** Words, and what is put between them: the field of the item that lies at the end of a path. */
export type MapLabel = readonly (string | readonly string[])[];

/** Where the items come from. */
export type MapSource =
  /** The output of a task, which is a list; of a mapped one, the list of its outputs. */
  | { readonly kind: "output"; readonly taskId: string }
  /** The item of a map around this one, which is a list itself. */
  | { readonly kind: "item"; readonly mapId: string }
  | { readonly kind: "list"; readonly items: readonly Json[] }
  /** Items are lists, one member per source: of the same place in each; or each with each, the last one fastest. */
  | { readonly kind: "zip" | "cross"; readonly of: readonly MapSource[] };

/** Where the value of an input comes from: a task's output, or the item that this instance runs for. */
export type InputSource = { readonly taskId: string } | { readonly item: string };

/** One task of a DAG, all defaults filled in. */
export interface TaskManifest {
  readonly taskId: string;
  /** What the author used: "task", "branch", "shortCircuit", "latestOnly", "dag", or the operator's class name. */
  readonly operator: string;
  /** Its operator is a `Sensor`. */
  readonly isSensor?: true;
  /** Direct upstream task ids, data and order edges alike, without duplicates. */
  readonly upstream: readonly string[];
  /** Data edges: input name to what it takes. Of a task that is mapped, and this one not: the list of its outputs. */
  readonly inputs: Readonly<Record<string, InputSource>>;
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
  /** It may return while work that it started is still open. Left out: it may not. */
  readonly openWork?: "allow";
  readonly dependsOnPast: boolean;
  readonly waitForDownstream: boolean;
  /** Running instances of this task across all runs of the DAG, and within one run. */
  readonly maxActivePerDag: number | null;
  readonly maxActivePerRun: number | null;
  readonly group: string | null;
  /**
   * A setup makes what others need, its teardown clears that away, however they ended; the tasks between the two are
   * its scope. A failing teardown does not fail the run.
   */
  readonly role: "work" | "setup" | "teardown";
  /** Of a teardown: its setup, and whether its failure fails the run. */
  readonly teardown?: { readonly of: string; readonly failsRun: boolean };
  readonly callbacks: { readonly success: boolean; readonly failure: boolean; readonly retry: boolean };
  /** Left out when there is none. */
  readonly notices?: NoticesManifest;
  readonly docs: string | null;
  /** The innermost map it is in. Left out when it is in none. */
  readonly map?: string;
  /** Left out when there is none. */
  readonly deadlines?: readonly DeadlineManifest[];
  /** Left out in manifests older than deferral. */
  readonly startTrigger?: StartTrigger | null;
  /** In the order in which they act. Left out, as all below, when there is nothing to say. */
  readonly rules?: readonly SignalRule[];
  /**
   * "streaming": it does not end by itself. Unless its author says otherwise, its `retries` are a thousand
   * millions, which no task reaches, with a delay of 1 s that doubles up to a minute.
   */
  readonly lifetime?: "batch" | "streaming";
  /** How long it may take to end when it is stopped: 10 s when left out. */
  readonly graceMs?: number;
  /** Started at these times while the run is running. */
  readonly every?: Extract<ScheduleManifest, { kind: "cron" | "interval" }>;
  /** What its `onSignal` wants to be asked about. */
  readonly reacts?: readonly { readonly namespace: string; readonly key: string }[];
  /** How long its `onSignal` may take: 30 s when left out. */
  readonly onSignalTimeoutMs?: number;
  /** What its success changes. */
  readonly produces?: readonly AssetManifest[];
  /** What it reads: for people to see, nothing waits for it. */
  readonly consumes?: readonly AssetManifest[];
  /** The DAG of which each try makes a run, and waits for it. */
  readonly dag?: string;
}
