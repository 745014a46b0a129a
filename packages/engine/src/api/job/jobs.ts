import { z } from "zod";
import { JOB_ORDER, listJobs } from "../../store/list/jobs.ts";
import { pageOf } from "../dag/dags.ts";
import type { Resource } from "../server/context.ts";
import { absent, flag, instantRange, instantsOf, orderBy, pageQuery, text } from "../server/fields.ts";
import { JOB_KINDS, jobDocument, showJob } from "./job-document.ts";

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
      const kind =
        query.job_type === undefined ? undefined : (JOB_KINDS.get(query.job_type) ?? query.job_type);
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
        jobs: rows.map(showJob),
        total_entries: total,
      };
    },
  );
};
