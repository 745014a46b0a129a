/** The fields of the REST API's answers that the commands read; JSON and YAML output passes on all the others too. */

export interface Dag {
  readonly dag_id: string;
  readonly is_paused: boolean;
  readonly is_stale: boolean;
  readonly description: string | null;
  readonly fileloc: string;
  readonly relative_fileloc: string | null;
  readonly timetable_summary: string | null;
  readonly tags: readonly { readonly name: string }[];
  readonly owners: readonly string[];
  readonly has_import_errors: boolean;
  readonly next_dagrun_run_after: string | null;
  /** The one with the latest run_after. */
  readonly last_run: {
    readonly dag_run_id: string;
    readonly state: string;
    readonly queued_at: string;
    readonly start_date: string | null;
    readonly end_date: string | null;
  } | null;
  /** Of the times that its schedule names. */
  readonly timezone: string | null;
  /** Why it is paused, when nobody did it by hand. */
  readonly pause_reason: string | null;
  readonly schedule_error: ScheduleError | null;
  readonly last_parsed_time: string | null;
  readonly max_active_runs: number | null;
  readonly max_active_tasks: number;
}

/** Why a timetable of the DAG's own has no answer. */
interface ScheduleError {
  readonly code: string;
  readonly message: string;
  readonly failures: number;
  readonly next_try: string | null;
}

interface Retries {
  readonly retries: number;
  /** In seconds. */
  readonly delay: number;
}

/** What only `/dags/{id}/details` tells. */
export interface DagDetails extends Dag {
  readonly timetable_description: string | null;
  /** The next five, as far as they follow from times. */
  readonly next_runs: readonly { readonly logical_date: string; readonly run_after: string }[];
  /** Of a schedule on assets. */
  readonly asset_expression: AssetExpression | null;
  readonly latest_dag_version: { readonly version_number: number; readonly created_at: string } | null;
  readonly params_schema: unknown;
  readonly catchup: boolean;
  readonly start_date: string | null;
  /** ISO 8601: PT30S. */
  readonly jitter: string | null;
  /** How a failed run is tried again. */
  readonly run_retries: (Retries & { readonly from: "failure" | "start" }) | null;
  readonly group_retries: readonly (Retries & { readonly group_id: string })[];
  /** 0: never. */
  readonly max_consecutive_failed_dag_runs: number;
}

/** What a schedule on assets listens to. */
export type AssetExpression =
  | { readonly asset: { readonly uri: string } }
  | { readonly alias: { readonly name: string } }
  | { readonly time: unknown }
  | { readonly task: string }
  | { readonly all: readonly AssetExpression[] }
  | { readonly any: readonly AssetExpression[] };

export interface Task {
  readonly task_id: string;
  readonly operator_name: string | null;
  readonly trigger_rule: string | null;
  readonly retries: number | null;
  readonly pool: string | null;
  readonly depends_on_past: boolean;
  readonly downstream_task_ids: readonly string[];
  readonly upstream_task_ids: readonly string[];
  readonly is_mapped: boolean;
  /** Every task comes after its upstream. */
  readonly topological_index: number;
  /** The groups that it is in, the outermost first. */
  readonly task_group_path: readonly string[];
  readonly role: "work" | "setup" | "teardown";
  readonly teardown_of: string | null;
}

/** What happened to an asset since the last run of a DAG that is scheduled on it. */
export interface QueuedAsset {
  readonly uri: string;
  readonly events: number;
  /** Of the first of them. */
  readonly created_at: string;
}

export interface DagRun {
  readonly dag_run_id: string;
  readonly dag_id: string;
  readonly run_kind: string;
  readonly state: string;
  readonly logical_date: string | null;
  readonly data_interval_start: string | null;
  readonly data_interval_end: string | null;
  readonly run_after: string;
  readonly queued_at: string | null;
  readonly start_date: string | null;
  readonly end_date: string | null;
  readonly duration: number | null;
  readonly conf: unknown;
  readonly note: string | null;
  readonly end_reason: string | null;
  readonly try_number: number;
  /** null: no try of it has failed so far. */
  readonly max_tries: number | null;
  readonly retry_at: string | null;
  /** Of one run: its groups with retries of which something is to be told. */
  readonly groups?: readonly RunGroup[];
  /** Of one run: the process that drives it; null: none does. */
  readonly lock?: {
    readonly job_id: number;
    readonly kind: string;
    readonly hostname: string;
    readonly pid: number;
    readonly generation: number;
    readonly since: string | null;
  } | null;
  /** Of one run: why it does not start, or none of its tasks does. */
  readonly held_by?: readonly { readonly code: string; readonly message: string }[];
  /** Of one run: its task instances. */
  readonly progress?: {
    readonly total: number;
    readonly finished: number;
    readonly percent: number | null;
    readonly by_state: Readonly<Record<string, number>>;
  };
  readonly slot_seconds?: { readonly running: number; readonly occupied: number; readonly deferred: number };
  readonly triggering_user_name: string | null;
  /** The task that asked for it. */
  readonly parent: {
    readonly dag_id: string;
    readonly dag_run_id: string;
    readonly task_id: string;
    readonly map_index: number;
    readonly rendered_map_index: string | null;
    readonly is_sub_dag: boolean;
  } | null;
  readonly dag_versions: readonly { readonly version_number: number }[];
}

export interface RunGroup {
  readonly group_id: string;
  /** Of an item of a mapped group; -1 otherwise. */
  readonly map_index: number;
  readonly state: string;
  readonly try_number: number;
  readonly max_tries: number;
  /** When its next try begins. */
  readonly retry_at: string | null;
}

export interface TaskInstance {
  readonly task_id: string;
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly map_index: number;
  /** Its label, or its path through the maps around it; null: it is not mapped. */
  readonly rendered_map_index: string | null;
  readonly state: string | null;
  readonly try_number: number;
  readonly max_tries: number;
  readonly start_date: string | null;
  readonly end_date: string | null;
  readonly duration: number | null;
  readonly pool: string;
  /** Why it ended as it did, when there is more to say than its state. */
  readonly reason: string | null;
  /** Of one that is upstream_failed: the failed one at the start of the chain. */
  readonly failed_upstream: {
    readonly task_id: string;
    readonly map_index: number;
    readonly rendered_map_index: string | null;
  } | null;
  readonly queue: string | null;
  readonly operator: string | null;
  readonly operator_name: string | null;
  readonly priority_weight: number | null;
  readonly note: string | null;
}

export interface Deadline {
  readonly id: number;
  readonly dag_id: string;
  readonly dag_run_id: string;
  /** null: of the run. */
  readonly task_id: string | null;
  readonly after: string;
  readonly due_at: string;
  readonly state: "pending" | "met" | "missed";
  readonly dag_run_state: string;
  readonly deliveries: number;
  readonly done_deliveries: number;
  readonly dead_deliveries: number;
}

export interface ImportProblem {
  readonly filename: string;
  readonly timestamp: string;
  readonly stack_trace: string;
}

export interface Pool {
  readonly name: string;
  readonly slots: number;
  readonly description: string | null;
  readonly include_deferred: boolean;
  readonly occupied_slots: number;
  readonly running_slots: number;
  readonly queued_slots: number;
  readonly scheduled_slots: number;
  readonly open_slots: number;
  readonly deferred_slots: number;
}

export interface Variable {
  readonly key: string;
  readonly value?: string | null;
  readonly description: string | null;
}

export interface Connection {
  readonly connection_id: string;
  readonly conn_type: string;
  readonly description: string | null;
  readonly host: string | null;
  readonly login: string | null;
  readonly schema: string | null;
  readonly port: number | null;
  readonly password: string | null;
  readonly extra: string | null;
}

/** A triggerer that runs a trigger, or stands by for it. */
export interface TriggerRunner {
  readonly id: number;
  readonly hostname: string | null;
  readonly is_alive?: boolean;
}

export interface Trigger {
  readonly id: number;
  readonly kind: string;
  readonly args: unknown;
  readonly args_text: string;
  readonly bundle_hash: string | null;
  readonly queue: string;
  readonly replicas: number;
  readonly state: string;
  readonly dag_id: string | null;
  readonly created_at: string;
  readonly wake_at: string | null;
  readonly triggerer: TriggerRunner | null;
  readonly standby: TriggerRunner | null;
  readonly last_polled_at: string | null;
  readonly waiting_tasks: number;
  /** Only of one that is asked for by itself: the first hundred. */
  readonly waits?: readonly Wait[];
}

export interface Wait {
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly task_id: string;
  readonly map_index: number;
  readonly rendered_map_index: string | null;
  readonly kind: string;
  readonly args: unknown;
  readonly args_text: string;
  readonly trigger_state: string;
  readonly since: string;
  readonly until: string | null;
  readonly triggerer: TriggerRunner | null;
  readonly last_polled_at: string | null;
}

/** What drives a run besides the order of its tasks. */
export interface RunConditions {
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly run_state: string;
  readonly is_driven: boolean;
  /** By what; null: it is open. */
  readonly closed: string | null;
  readonly rules: readonly SignalRule[];
  readonly tasks: readonly {
    readonly task_id: string;
    readonly pending_starts: number;
    readonly stopping: string | null;
    readonly next_tick: string | null;
    readonly reacts_to: readonly string[];
    readonly asking: {
      readonly key: string;
      readonly version: number;
      readonly attempts: number;
      readonly again_at: string | null;
    } | null;
  }[];
  /** Open transactions that hold its signals back. */
  readonly held_by: readonly { readonly message: string }[];
}

export interface SignalRule {
  /** null: the run's own. */
  readonly task_id: string | null;
  readonly action: string;
  readonly once: boolean;
  readonly condition: string;
  readonly missing: string;
  readonly is_armed: boolean;
  /** null: the run is over, and with it the count. */
  readonly fired: number | null;
}

/** What became of an order by hand. */
export interface Ordered {
  /** Of the signal that carries it; null: the run was over, and what was to start was cleared. */
  readonly version: number | null;
  readonly cleared: readonly { readonly task_id: string; readonly map_index: number }[];
}

export interface Token {
  readonly id: number;
  readonly name: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly is_current: boolean;
}

export interface Health {
  readonly metadatabase: { readonly status: string | null };
  readonly scheduler: {
    readonly status: string | null;
    readonly latest_scheduler_heartbeat?: string | null;
    readonly unserved_dags?: readonly string[] | null;
  };
  readonly triggerer?: {
    readonly status: string | null;
    readonly latest_triggerer_heartbeat?: string | null;
    readonly triggers?: number | null;
    readonly capacity?: number | null;
    readonly full_triggerers?: number | null;
    readonly unclaimed_triggers?: readonly { readonly queue: string; readonly triggers: number }[] | null;
    readonly process_crashes?: number | null;
    readonly suspected_triggers?: number | null;
  } | null;
  readonly dag_processor?: {
    readonly status: string | null;
    readonly latest_dag_processor_heartbeat?: string | null;
  } | null;
}

/** Task instance states that no scheduler will change by itself. */
export const ENDED_TASK_STATES: ReadonlySet<string> = new Set([
  "success",
  "failed",
  "skipped",
  "upstream_failed",
  "removed",
]);

export function isRunEnded(run: Pick<DagRun, "state">): boolean {
  return run.state === "success" || run.state === "failed";
}
