/** A running service in Airflow's form: a resource of its own, and part of a deferred task instance. */
import { z } from "zod";
import type { JobRow } from "../../store/list/jobs.ts";
import { iso, nullableDate } from "../server/fields.ts";

export const jobDocument = z
  .object({
    id: z.number(),
    dag_id: z.string().nullable(),
    state: z.string().nullable(),
    job_type: z.string().nullable(),
    start_date: nullableDate,
    end_date: nullableDate,
    latest_heartbeat: nullableDate,
    executor_class: z.string().nullable(),
    hostname: z.string().nullable(),
    unixname: z.string().nullable(),
    pid: z.number(),
    version: z.string(),
    is_alive: z.boolean(),
    /** Facts reported by the service, e.g. queues and trigger count of a triggerer, or the DAGs of a restricted scheduler. */
    facts: z.any(),
  })
  .meta({ id: "JobResponse" });

/** Airflow's names of job kinds, used by its clients. Kinds unknown to Airflow keep their own names. */
export const JOB_KINDS: ReadonlyMap<string, string> = new Map([
  ["BackfillJob", "backfill"],
  ["SchedulerJob", "scheduler"],
  ["DagProcessorJob", "dag_processor"],
  ["TriggererJob", "triggerer"],
]);
const NAMES: ReadonlyMap<string, string> = new Map([...JOB_KINDS].map(([name, kind]) => [kind, name]));

/** As Airflow names it. */
export function jobType(kind: string): string {
  return NAMES.get(kind) ?? kind;
}

export function showJob(row: JobRow): z.output<typeof jobDocument> {
  return {
    id: row.id,
    dag_id: null,
    state: row.state,
    job_type: jobType(row.kind),
    start_date: iso(row.started_at),
    end_date: iso(row.ended_at),
    latest_heartbeat: iso(row.heartbeat_at),
    executor_class: null,
    hostname: row.hostname,
    unixname: null,
    pid: row.pid,
    version: row.version,
    is_alive: row.is_alive,
    facts: row.facts,
  };
}
