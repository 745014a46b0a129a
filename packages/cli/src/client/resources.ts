/** The fields of API responses that the commands read; JSON and YAML output includes all fields. */

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
  /** The run with the latest run_after. */
  readonly last_run: {
    readonly dag_run_id: string;
    readonly state: string;
    readonly queued_at: string;
    readonly start_date: string | null;
    readonly end_date: string | null;
  } | null;
  /** The time zone of the schedule. */
  readonly timezone: string | null;
  /** Why it is paused, unless a user paused it. */
  readonly pause_reason: string | null;
  readonly schedule_error: ScheduleError | null;
  readonly last_parsed_time: string | null;
  readonly max_active_runs: number | null;
  readonly max_active_tasks: number;
}

/** Why a custom timetable failed. */
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

/** Fields that only `/dags/{id}/details` returns. */
export interface DagDetails extends Dag {
  readonly timetable_description: string | null;
  /** The next ten dates of a time-based schedule. */
  readonly next_runs: readonly { readonly logical_date: string; readonly run_after: string }[];
  /** The condition of an asset schedule. */
  readonly asset_expression: AssetExpression | null;
  readonly latest_dag_version: { readonly version_number: number; readonly created_at: string } | null;
  readonly params_schema: unknown;
  readonly catchup: boolean;
  readonly start_date: string | null;
  /** ISO 8601: PT30S. */
  readonly jitter: string | null;
  /** How a failed run is retried. */
  readonly run_retries: (Retries & { readonly from: "failure" | "start" }) | null;
  readonly group_retries: readonly (Retries & { readonly group_id: string })[];
  /** 0 = never. */
  readonly max_consecutive_failed_dag_runs: number;
}

/** The condition of an asset schedule. */
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
  /** Every task has a higher index than its upstream tasks. */
  readonly topological_index: number;
  /** The enclosing groups, outermost first. */
  readonly task_group_path: readonly string[];
  readonly role: "work" | "setup" | "teardown";
  readonly teardown_of: string | null;
}

/** Events of an asset since the last run of a DAG that is scheduled on it. */
export interface QueuedAsset {
  readonly uri: string;
  readonly events: number;
  /** Time of the first of these events. */
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
  /** null: no try has failed so far. */
  readonly max_tries: number | null;
  readonly retry_at: string | null;
  /** Only for a single run: groups with a failed or pending try. */
  readonly groups?: readonly RunGroup[];
  /** Only for a single run: the process that drives it; null if none does. */
  readonly lock?: {
    readonly job_id: number;
    readonly kind: string;
    readonly hostname: string;
    readonly pid: number;
    readonly generation: number;
    readonly since: string | null;
  } | null;
  /** Only for a single run: why it, or all of its tasks, cannot start. */
  readonly held_by?: readonly { readonly code: string; readonly message: string }[];
  /** Only for a single run: counts of its task instances. */
  readonly progress?: {
    readonly total: number;
    readonly finished: number;
    readonly percent: number | null;
    readonly by_state: Readonly<Record<string, number>>;
  };
  readonly slot_seconds?: { readonly running: number; readonly occupied: number; readonly deferred: number };
  readonly triggering_user_name: string | null;
  /** The task that started this run. */
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
  /** The item of a mapped group; -1 otherwise. */
  readonly map_index: number;
  readonly state: string;
  readonly try_number: number;
  readonly max_tries: number;
  /** Start of the next try. */
  readonly retry_at: string | null;
}

export interface TaskInstance {
  readonly task_id: string;
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly map_index: number;
  /** Label, or path through nested maps; null if not mapped. */
  readonly rendered_map_index: string | null;
  readonly state: string | null;
  readonly try_number: number;
  readonly max_tries: number;
  readonly start_date: string | null;
  readonly end_date: string | null;
  readonly duration: number | null;
  readonly pool: string;
  /** Details of the outcome beyond the state. */
  readonly reason: string | null;
  /** For upstream_failed: the failed task at the start of the chain. */
  readonly failed_upstream: {
    readonly task_id: string;
    readonly map_index: number;
    readonly rendered_map_index: string | null;
  } | null;
  readonly queue: string | null;
  /** Where its process runs or ran. */
  readonly hostname: string | null;
  readonly executor_job: {
    readonly id: number;
    readonly job_type: string;
    readonly name: string | null;
  } | null;
  readonly operator: string | null;
  readonly operator_name: string | null;
  readonly priority_weight: number | null;
  readonly note: string | null;
}

export interface Deadline {
  readonly id: number;
  readonly dag_id: string;
  readonly dag_run_id: string;
  /** null: belongs to the run. */
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

/** A triggerer that runs a trigger, or is its standby. */
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
  /** Only for a single trigger: the first hundred. */
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

/** The signal conditions of a run. */
export interface RunConditions {
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly run_state: string;
  readonly is_driven: boolean;
  /** The cause of the close; null while the run is open. */
  readonly closed: string | null;
  readonly rules: readonly SignalRule[];
  readonly tasks: readonly {
    readonly task_id: string;
    readonly pending_starts: number;
    readonly stopping: string | null;
    readonly next_tick: string | null;
    readonly reacts_to: readonly string[];
    readonly on_signal_failure: {
      readonly key: string;
      readonly version: number;
      readonly attempts: number;
      readonly again_at: string | null;
    } | null;
  }[];
  /** Open transactions that block the delivery of its signals. */
  readonly held_by: readonly { readonly message: string }[];
}

export interface SignalRule {
  /** null: belongs to the run. */
  readonly task_id: string | null;
  readonly action: string;
  readonly once: boolean;
  readonly condition: string;
  readonly missing: string;
  readonly is_armed: boolean;
  /** null after the end of the run: the count is not kept. */
  readonly fired: number | null;
}

/** The result of a manual command. */
export interface Ordered {
  /** Version of the signal that carries the command; null if the run had ended and its tasks were cleared instead. */
  readonly version: number | null;
  readonly cleared: readonly { readonly task_id: string; readonly map_index: number }[];
}

export interface Token {
  readonly id: number;
  readonly name: string;
  readonly role: "admin" | "worker" | "metrics";
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

/** Task instance states that do not change without a manual command. */
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
