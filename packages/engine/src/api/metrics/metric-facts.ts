/** What `/metrics` shows: a few reads, one after the other, so that a scrape takes one connection of the pool. */
import type { Connection } from "../../store/database/database.ts";
import { queueDepths, queueWorkers, schedulerExecutors } from "../../store/execute/executors.ts";
import { activeInstances, activeRuns, delays } from "../../store/metrics/active-work.ts";
import { componentCounts, triggerCounts, unreadSignalAge } from "../../store/metrics/services.ts";
import { errorCounts } from "../../store/ui/home.ts";
import { livePools } from "../../store/ui/live-facts.ts";
import { triggererHealth } from "../../store/why/triggerer-health.ts";

export async function readFacts(connection: Connection) {
  return {
    components: await componentCounts(connection),
    runs: await activeRuns(connection),
    instances: await activeInstances(connection),
    delays: await delays(connection),
    executors: await schedulerExecutors(connection),
    queues: await queueDepths(connection),
    workers: await queueWorkers(connection),
    pools: await livePools(connection),
    triggers: await triggerCounts(connection),
    triggerers: await triggererHealth(connection),
    unreadSignalAge: await unreadSignalAge(connection),
    errors: await errorCounts(connection),
  };
}

export type MetricFacts = Awaited<ReturnType<typeof readFacts>>;
