/** Converts rows to the JSON of Airflow's API: versions, runs and task instances, shared by several resources. */

import { createHash } from "node:crypto";
import { instanceText } from "@tradewind/sdk/wording";
import { z } from "zod";
import { PATH_SEPARATOR } from "../../model/map/map-labels.ts";
import type { DagRunRow } from "../../store/list/dag-runs.ts";
import type { DagVersionRow } from "../../store/list/dag-versions.ts";
import type { TaskInstanceRow, TryRow } from "../../store/list/task-instances.ts";
import type { ListedPage } from "../../store/page/query.ts";
import type { StoredGroup } from "../../store/task/run-groups.ts";
import { finishedOf, type RunProgress } from "../../store/why/run-progress.ts";
import { jobDocument, jobType, showJob } from "../job/job-document.ts";
import { RUN_KINDS, RUN_TYPES, runTypes, TRIGGERED_BY } from "../run/run-types.ts";
import { showWaitedTrigger, waitedTrigger } from "../trigger/waited-trigger.ts";
import type { Finding } from "../why/why-deferred.ts";
import { BUNDLE_NAME, date, iso, nullableDate, RUN_STATES, seconds, TASK_STATES } from "./fields.ts";

export const versionDocument = z
  .object({
    id: z.string(),
    version_number: z.number(),
    dag_id: z.string(),
    bundle_name: z.string().nullable(),
    bundle_version: z.string().nullable(),
    created_at: date,
    dag_display_name: z.string(),
    bundle_url: z.string().nullable(),
  })
  .meta({ id: "DagVersionResponse" });

export function showVersion(row: DagVersionRow): z.output<typeof versionDocument> {
  return {
    id: `00000000-0000-8000-8000-${row.id.toString(16).padStart(12, "0")}`,
    version_number: row.number,
    dag_id: row.dag_id,
    bundle_name: BUNDLE_NAME,
    bundle_version: row.bundle_hash,
    created_at: iso(row.created_at),
    dag_display_name: row.dag_id,
    bundle_url: null,
  };
}

/** The fields that identify a task instance. */
export const instanceAddress = {
  dag_id: z.string(),
  dag_run_id: z.string(),
  task_id: z.string(),
  map_index: z.number(),
  rendered_map_index: z.string().nullable(),
};

export const dagRunDocument = z
  .object({
    dag_run_id: z.string(),
    dag_id: z.string(),
    logical_date: nullableDate,
    queued_at: nullableDate,
    start_date: nullableDate,
    end_date: nullableDate,
    duration: z.number().nullable(),
    data_interval_start: nullableDate,
    data_interval_end: nullableDate,
    run_after: date,
    last_scheduling_decision: nullableDate,
    run_type: z.enum(RUN_TYPES),
    run_kind: z
      .enum(RUN_KINDS)
      .describe(
        "The cause of the run. `run_type` has Airflow's closest value, which does not cover signals.",
      ),
    state: z.enum(RUN_STATES),
    triggered_by: z.enum(TRIGGERED_BY).nullable(),
    triggering_user_name: z.string().nullable(),
    conf: z.record(z.string(), z.any()).nullable(),
    note: z.string().nullable(),
    end_reason: z.string().nullable(),
    try_number: z.number(),
    max_tries: z.number().nullable(),
    retry_at: nullableDate,
    /**
     * Only for a single run, and only if there are any: groups with retries or callbacks that have ended or are at a later try.
     * For a mapped group with retries, the items with a failed try, about the first 200.
     */
    groups: z
      .array(
        z.object({
          group_id: z.string(),
          /** The item of a mapped group; -1 otherwise. */
          map_index: z.number(),
          state: z.string(),
          try_number: z.number(),
          max_tries: z.number(),
          retry_at: nullableDate,
        }),
      )
      .optional(),
    /** Only for a single run: the job that drives it; null: no owner. */
    lock: z
      .object({
        job_id: z.number(),
        kind: z.string(),
        hostname: z.string(),
        pid: z.number(),
        generation: z.number(),
        since: nullableDate,
      })
      .nullable()
      .optional(),
    /** Only for a single run: why it is queued or, if running, why none of its tasks starts. */
    held_by: z.array(z.object({ code: z.string(), message: z.string(), until: nullableDate })).optional(),
    /** Only for a single run: the number of ended task instances. */
    progress: z
      .object({
        total: z.number(),
        finished: z.number(),
        percent: z.number().nullable(),
        by_state: z.record(z.string(), z.number()),
      })
      .optional(),
    /** Only for a single run: seconds in which its tasks ran, held pool slots, and were deferred. */
    slot_seconds: z.object({ running: z.number(), occupied: z.number(), deferred: z.number() }).optional(),
    /** The task that started it; a sub-DAG run is a part of that task. */
    parent: z.object({ ...instanceAddress, is_sub_dag: z.boolean() }).nullable(),
    dag_versions: z.array(versionDocument),
    bundle_version: z.string().nullable(),
    dag_display_name: z.string(),
    partition_key: z.string().nullable(),
    partition_date: nullableDate,
  })
  .meta({ id: "DAGRunResponse" });

export type DagRunDocument = z.output<typeof dagRunDocument>;

export const dagRunList = z.object({
  dag_runs: z.array(dagRunDocument),
  total_entries: z.number().nullable(),
  next_cursor: z.string().nullable(),
  previous_cursor: z.string().nullable(),
});

function showDetails({ groups, heldBy, progress }: RunDetails) {
  const { byState, lock, slotSeconds } = progress;
  const { finished, total } = finishedOf(byState);
  return {
    ...(groups.length > 0 && { groups: groups.map(showGroup).sort(byGroupId) }),
    held_by: heldBy.map(({ code, message, until }) => ({ code, message, until: iso(until) })),
    lock: lock && { ...lock, since: iso(lock.since) },
    progress: {
      total,
      finished,
      percent: total === 0 ? null : Math.floor((100 * finished) / total),
      by_state: { ...byState },
    },
    slot_seconds: { ...slotSeconds },
  };
}

/** Fields of a single run that lists leave out. */
interface RunDetails {
  readonly groups: readonly StoredGroup[];
  /** Why it does not start or continue. */
  readonly heldBy: readonly Finding[];
  readonly progress: RunProgress;
}

export function showDagRun(row: DagRunRow, details?: RunDetails): DagRunDocument {
  return {
    dag_run_id: row.run_id,
    dag_id: row.dag_id,
    logical_date: iso(row.logical_date),
    queued_at: iso(row.queued_at),
    start_date: iso(row.started_at),
    end_date: iso(row.ended_at),
    duration: seconds(row.started_at, row.ended_at),
    data_interval_start: iso(row.interval_start),
    data_interval_end: iso(row.interval_end),
    run_after: iso(row.run_after),
    last_scheduling_decision: null,
    ...runTypes(row),
    state: row.state,
    triggering_user_name: row.triggering_user,
    conf: isObject(row.conf) ? row.conf : null,
    note: row.note,
    end_reason: row.end_reason,
    try_number: row.try_number,
    max_tries: row.max_tries,
    retry_at: iso(row.retry_at),
    ...(details && showDetails(details)),
    parent: row.parent && { ...row.parent, rendered_map_index: renderedMapIndex(row.parent) },
    dag_versions: [showVersion(versionOf(row))],
    bundle_version: row.bundle_hash,
    dag_display_name: row.dag_id,
    partition_key: row.partition_key,
    partition_date: null,
  };
}

function showGroup({ group_id, map_index, max_tries, retry_at, state, try_number }: StoredGroup) {
  // Like for a run: the total number of tries.
  return { group_id, map_index, state, try_number, max_tries: max_tries + 1, retry_at: iso(retry_at) };
}

function byGroupId(a: GroupKey, b: GroupKey): number {
  if (a.group_id === b.group_id) return a.map_index - b.map_index;
  return a.group_id < b.group_id ? -1 : 1;
}

type GroupKey = Pick<StoredGroup, "group_id" | "map_index">;

export function showDagRuns({ next, previous, rows, total }: ListedPage<DagRunRow>) {
  return {
    dag_runs: rows.map((row) => showDagRun(row)),
    total_entries: total,
    next_cursor: next,
    previous_cursor: previous,
  };
}

const instanceShape = {
  task_id: z.string(),
  dag_id: z.string(),
  dag_run_id: z.string(),
  map_index: z.number(),
  start_date: nullableDate,
  end_date: nullableDate,
  duration: z.number().nullable(),
  state: z.enum(TASK_STATES).nullable(),
  try_number: z.number(),
  max_tries: z.number(),
  task_display_name: z.string(),
  dag_display_name: z.string(),
  hostname: z.string().nullable(),
  unixname: z.string().nullable(),
  pool: z.string(),
  pool_slots: z.number(),
  queue: z.string().nullable(),
  priority_weight: z.number().nullable(),
  operator: z.string().nullable(),
  operator_name: z.string().nullable(),
  queued_when: nullableDate,
  scheduled_when: nullableDate,
  pid: z.number().nullable(),
  /** The scheduler or worker that runs or ran it; null before its process starts. */
  executor_job: z.object({ id: z.number(), job_type: z.string(), name: z.string().nullable() }).nullable(),
  executor: z.string().nullable(),
  executor_config: z.string(),
  reason: z.string().nullable(),
  dag_version: versionDocument.nullable(),
};

export const tryDocument = z.object(instanceShape).meta({ id: "TaskInstanceHistoryResponse" });

export const failedUpstreamDocument = z
  .object({ task_id: z.string(), map_index: z.number(), rendered_map_index: z.string().nullable() })
  .meta({
    id: "FailedUpstream",
    description: "For an instance in state upstream_failed: the failed instance at the start of the chain.",
  });

export const instanceDocument = z
  .object({
    id: z.string(),
    logical_date: nullableDate,
    run_after: date,
    note: z.string().nullable(),
    rendered_map_index: z.string().nullable(),
    /** Its index in each enclosing list, outermost first. */
    map_path: z.array(z.number()).nullable(),
    failed_upstream: failedUpstreamDocument.nullable(),
    rendered_fields: z.record(z.string(), z.any()),
    retry_at: nullableDate,
    trigger: waitedTrigger.nullable(),
    triggerer_job: jobDocument.nullable(),
    ...instanceShape,
  })
  .meta({ id: "TaskInstanceResponse" });

export const instanceList = z.object({
  task_instances: z.array(instanceDocument),
  total_entries: z.number().nullable(),
  next_cursor: z.string().nullable(),
  previous_cursor: z.string().nullable(),
});

export function showTry(row: TryRow): z.output<typeof tryDocument> {
  return {
    task_id: row.task_id,
    dag_id: row.dag_id,
    dag_run_id: row.run_id,
    map_index: row.map_index,
    start_date: iso(row.started_at),
    end_date: iso(row.ended_at),
    duration: seconds(row.started_at, row.ended_at),
    state: row.state === "pending" ? null : (row.state as (typeof TASK_STATES)[number]),
    try_number: row.try_number,
    max_tries: row.max_tries,
    task_display_name: row.task_id,
    dag_display_name: row.dag_id,
    hostname: row.hostname,
    unixname: null,
    pool: row.pool,
    pool_slots: row.pool_slots,
    queue: row.queue,
    priority_weight: row.priority_weight,
    operator: row.operator,
    operator_name: row.operator,
    queued_when: iso(row.queued_at),
    scheduled_when: iso(row.scheduled_at),
    pid: row.pid,
    executor_job: row.executor_job && {
      id: row.executor_job.id,
      job_type: jobType(row.executor_job.kind),
      name: row.executor_job.name,
    },
    executor: row.executor,
    executor_config: "{}",
    reason: row.reason,
    dag_version: showVersion(versionOf(row)),
  };
}

export function showInstance(row: TaskInstanceRow): z.output<typeof instanceDocument> {
  return {
    ...showTry(row),
    id: instanceUuid(row),
    logical_date: iso(row.logical_date),
    run_after: iso(row.run_after),
    note: row.note,
    rendered_map_index: renderedMapIndex(row),
    map_path: row.place.path === null ? null : [...row.place.path],
    failed_upstream: showFailedUpstream(row.failed_upstream),
    rendered_fields: {},
    retry_at: row.state === "up_for_retry" ? iso(row.retry_at) : null,
    trigger: row.wait?.trigger ? showWaitedTrigger(row.wait.kind, row.wait.trigger) : null,
    triggerer_job: row.wait?.trigger?.triggerer ? showJob(row.wait.trigger.triggerer) : null,
  };
}

export function showFailedUpstream(row: TaskInstanceRow["failed_upstream"]) {
  return row && { task_id: row.task_id, map_index: row.map_index, rendered_map_index: renderedMapIndex(row) };
}

/** Label or path; the path of a placeholder for future instances of an item ends with a star. */
export function renderedMapIndex({
  map_index,
  place,
}: Pick<TaskInstanceRow, "map_index" | "place">): string | null {
  const { label, path } = place;
  return label ?? (path && [...path, ...(map_index < 0 ? ["*"] : [])].join(PATH_SEPARATOR));
}

export function instanceName(row: Pick<TaskInstanceRow, "map_index" | "place" | "task_id">): string {
  return instanceText(row.task_id, row.map_index, renderedMapIndex(row));
}

export function showInstances({ next, previous, rows, total }: ListedPage<TaskInstanceRow>) {
  return {
    task_instances: rows.map(showInstance),
    total_entries: total,
    next_cursor: next,
    previous_cursor: previous,
  };
}

/** All instances changed by an edit, on one page. */
export function showAllInstances(rows: TaskInstanceRow[]) {
  return showInstances({ rows, total: rows.length, next: null, previous: null });
}

function versionOf(row: DagRunRow | TryRow): DagVersionRow {
  return {
    id: row.version_id,
    dag_id: row.dag_id,
    number: row.version_number,
    bundle_hash: row.bundle_hash,
    created_at: row.version_created_at,
  };
}

/** A stable id in Airflow's form. Not the attempt: that token authorizes reports for the instance. */
function instanceUuid({ dag_run_id, map_index, task_id }: TaskInstanceRow): string {
  const hex = createHash("sha256").update(`${dag_run_id}/${map_index}/${task_id}`).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
