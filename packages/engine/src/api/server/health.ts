/** Health for load balancers and users. A component is healthy while a job of its kind holds its lease. */
import { z } from "zod";
import { type ExecutorHealth, executorHealth } from "../../store/execute/executors.ts";
import { unservedDags } from "../../store/job/served-dags.ts";
import { componentHealth } from "../../store/list/jobs.ts";
import { type TriggererHealth, triggererHealth } from "../../store/why/triggerer-health.ts";
import type { Resource } from "./context.ts";
import { iso } from "./fields.ts";

const MAX_UNSERVED = 10;
const status = z.string().nullable();

/** Additional to Airflow. Null while the database is unreachable. */
const triggers = {
  triggers: z.number().nullable(),
  capacity: z.number().nullable(),
  full_triggerers: z.number().nullable(),
  unclaimed_triggers: z.array(z.object({ queue: z.string(), triggers: z.number() })).nullable(),
  process_crashes: z.number().nullable(),
  suspected_triggers: z.number().nullable(),
};

/** Additional to Airflow. Null while the database is unreachable. */
const executors = {
  /** Queues with waiting tasks and without a live worker. */
  unserved_queues: z
    .array(z.object({ executor: z.string(), queue: z.string(), tasks: z.number() }))
    .nullable(),
  /** Executors with which a live scheduler cannot start tasks. */
  failing_executors: z.array(z.string()).nullable(),
};

export const health: Resource = (app, { database, logger }) => {
  app.get(
    "/api/v2/monitor/health",
    {
      config: { open: true },
      schema: {
        response: {
          200: z.object({
            metadatabase: z.object({ status }),
            scheduler: z.object({
              status,
              latest_scheduler_heartbeat: z.string().nullable(),
              /** Additional to Airflow: the first DAGs without a live scheduler. */
              unserved_dags: z.array(z.string()).nullable(),
              ...executors,
            }),
            triggerer: z.object({ status, latest_triggerer_heartbeat: z.string().nullable(), ...triggers }),
            dag_processor: z.object({ status, latest_dag_processor_heartbeat: z.string().nullable() }),
          }),
        },
        tags: ["Monitor"],
      },
    },
    async () => {
      const read = Promise.all([
        componentHealth(database),
        triggererHealth(database),
        unservedDags(database, MAX_UNSERVED),
        executorHealth(database, MAX_UNSERVED),
      ]);
      const [jobs, triggering, unserved, executing] = await read.catch((error: unknown) => {
        logger.warn("database does not respond to the health check", { error: String(error) });
        return [null, null, null, null] as const;
      });
      const of = (kind: string) => {
        const job = jobs?.find((each) => each.kind === kind);
        // A component that never ran is unknown, not unhealthy; a scheduler is required.
        const absent = kind === "scheduler" || jobs === null ? "unhealthy" : null;
        return {
          status: job === undefined ? absent : job.is_alive ? "healthy" : "unhealthy",
          heartbeat: job === undefined ? null : iso(job.heartbeat_at),
        };
      };
      const [scheduler, triggerer, processor] = [of("scheduler"), of("triggerer"), of("dag_processor")];
      return {
        metadatabase: {
          status: jobs === null ? "unhealthy" : app.diskSpace.isShort ? "degraded" : "healthy",
        },
        scheduler: {
          status: scheduler.status,
          latest_scheduler_heartbeat: scheduler.heartbeat,
          unserved_dags: unserved,
          ...executorsOf(executing),
        },
        triggerer: {
          status: triggerer.status,
          latest_triggerer_heartbeat: triggerer.heartbeat,
          ...triggersOf(triggering),
        },
        dag_processor: { status: processor.status, latest_dag_processor_heartbeat: processor.heartbeat },
      };
    },
  );
};

function executorsOf(health: ExecutorHealth | null) {
  return {
    unserved_queues: health && [...health.unserved],
    failing_executors: health && [...health.failing],
  };
}

function triggersOf(health: TriggererHealth | null) {
  return {
    triggers: health?.triggers ?? null,
    capacity: health?.capacity ?? null,
    full_triggerers: health?.full ?? null,
    unclaimed_triggers: health === null ? null : [...health.unclaimed],
    process_crashes: health?.crashes ?? null,
    suspected_triggers: health?.suspects ?? null,
  };
}
