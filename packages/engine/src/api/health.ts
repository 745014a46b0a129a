/** Liveness for load balancers and people. A component is healthy while one job of its kind holds its lease. */
import { z } from "zod";
import { componentHealth } from "../store/list/jobs.ts";
import type { Resource } from "./context.ts";
import { iso } from "./fields.ts";

const status = z.string().nullable();

export const health: Resource = (app, { database, logger }) => {
  app.get(
    "/api/v2/monitor/health",
    {
      config: { open: true },
      schema: {
        response: {
          200: z.object({
            metadatabase: z.object({ status }),
            scheduler: z.object({ status, latest_scheduler_heartbeat: z.string().nullable() }),
            triggerer: z.object({ status, latest_triggerer_heartbeat: z.string().nullable() }),
            dag_processor: z.object({ status, latest_dag_processor_heartbeat: z.string().nullable() }),
          }),
        },
        tags: ["Monitor"],
      },
    },
    async () => {
      const jobs = await componentHealth(database).catch((error: unknown) => {
        logger.warn("The database does not answer the health check", { error: String(error) });
        return null;
      });
      const of = (kind: string) => {
        const job = jobs?.find((each) => each.kind === kind);
        // A component that never was is unknown rather than sick; a scheduler there must be.
        const absent = kind === "scheduler" || jobs === null ? "unhealthy" : null;
        return {
          status: job === undefined ? absent : job.is_alive ? "healthy" : "unhealthy",
          heartbeat: job === undefined ? null : iso(job.heartbeat_at),
        };
      };
      const [scheduler, triggerer, processor] = [of("scheduler"), of("triggerer"), of("dag_processor")];
      return {
        metadatabase: { status: jobs === null ? "unhealthy" : "healthy" },
        scheduler: { status: scheduler.status, latest_scheduler_heartbeat: scheduler.heartbeat },
        triggerer: { status: triggerer.status, latest_triggerer_heartbeat: triggerer.heartbeat },
        dag_processor: { status: processor.status, latest_dag_processor_heartbeat: processor.heartbeat },
      };
    },
  );
};
