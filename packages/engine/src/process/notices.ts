import { NoticeHost, type NoticeHostOptions } from "../notify/notice-host.ts";
import type { SchedulerJob } from "../run/job/scheduler-job.ts";
import { openConnection } from "../store/settings/connections.ts";
import type { ServiceParts } from "./parts/service-parts.ts";

/** Runs beside every scheduler, and shares its connections and wake-ups. */
export function createNoticeHost(
  parts: ServiceParts,
  scheduler: SchedulerJob,
  how: Pick<NoticeHostOptions, "times"> = {},
): NoticeHost {
  const { config, database, logger, secretBox, wakeUps } = parts;
  return new NoticeHost({
    database,
    logger: logger.child({ component: "notices" }),
    wakeUps,
    publicUrl: config.publicUrl,
    onHanded: () => scheduler.requestCallbacks(),
    connection: (id) => openConnection(database, secretBox, id),
    ...how,
  });
}
