import { z } from "zod";
import { JOB_ORDER, listJobs } from "../store/list/jobs.ts";
import type { Resource } from "./context.ts";
import { pageOf } from "./dags.ts";
import {
  absent,
  flag,
  instantRange,
  instantsOf,
  iso,
  nullableDate,
  orderBy,
  pageQuery,
  text,
} from "./fields.ts";

const jobDocument = z
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
  })
  .meta({ id: "JobResponse" });

/** Airflow's names of the kinds, which its clients filter by and look for. Kinds it has not keep their own. */
const KINDS: ReadonlyMap<string, string> = new Map([
  ["SchedulerJob", "scheduler"],
  ["DagProcessorJob", "dag_processor"],
  ["TriggererJob", "triggerer"],
]);
const NAMES: ReadonlyMap<string, string> = new Map([...KINDS].map(([name, kind]) => [kind, name]));

export const jobs: Resource = (app, { database }) => {
  app.get(
    "/api/v2/jobs",
    {
      schema: {
        querystring: z.strictObject({
          ...pageQuery,
          ...instantRange("start_date"),
          ...instantRange("end_date"),
          is_alive: flag.optional(),
          job_state: text.optional(),
          job_type: text.optional(),
          hostname: text.optional(),
          executor_class: absent("executor classes"),
          order_by: orderBy(JOB_ORDER, "id"),
        }),
        response: { 200: z.object({ jobs: z.array(jobDocument), total_entries: z.number() }) },
        tags: ["Job"],
      },
    },
    async ({ query }) => {
      const kind = query.job_type === undefined ? undefined : (KINDS.get(query.job_type) ?? query.job_type);
      const filter = {
        kind,
        state: query.job_state,
        hostname: query.hostname,
        nothing: query.executor_class,
        isAlive: query.is_alive,
        startedAt: instantsOf(query, "start_date"),
        endedAt: instantsOf(query, "end_date"),
      };
      const { rows, total } = await listJobs(database, filter, pageOf(query));
      return {
        jobs: rows.map((row) => ({
          id: row.id,
          dag_id: null,
          state: row.state,
          job_type: NAMES.get(row.kind) ?? row.kind,
          start_date: iso(row.started_at),
          end_date: iso(row.ended_at),
          latest_heartbeat: iso(row.heartbeat_at),
          executor_class: null,
          hostname: row.hostname,
          unixname: null,
          pid: row.pid,
          version: row.version,
          is_alive: row.is_alive,
        })),
        total_entries: total,
      };
    },
  );
};
