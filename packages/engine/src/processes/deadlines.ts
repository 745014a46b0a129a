import { DeadlineHost, type DeadlineHostOptions } from "../deadline/deadline-host.ts";
import type { SchedulerJob } from "../schedule/scheduler-job.ts";
import { openConnection } from "../store/connections.ts";
import type { ServiceParts } from "./service-parts.ts";

/** Beside every scheduler; their connections and wake-ups are shared. */
export function createDeadlineHost(
  parts: ServiceParts,
  scheduler: SchedulerJob,
  how: Pick<DeadlineHostOptions, "times"> = {},
): DeadlineHost {
  const { database, logger, secretBox, wakeUps } = parts;
  return new DeadlineHost({
    database,
    logger: logger.child({ component: "deadlines" }),
    wakeUps,
    onHanded: () => scheduler.lookForCallbacks(),
    connection: (id) => openConnection(database, secretBox, id),
    ...how,
  });
}
