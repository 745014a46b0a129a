/** `why`: what a queued task waits for: a process of its scheduler, or a worker of its executor. */
import type { Connection } from "../../store/database/database.ts";
import {
  type AttemptPlace,
  attemptPlace,
  type QueueWorkers,
  queueWorkers,
  schedulerExecutors,
} from "../../store/execute/executors.ts";
import type { TaskInstanceRow } from "../../store/list/task-instances.ts";
import type { Finding } from "./why-deferred.ts";

export async function queuedReasons(connection: Connection, instance: TaskInstanceRow): Promise<Finding[]> {
  const place = await attemptPlace(connection, instance);
  if (place === undefined) {
    const slots = instance.pool_slots === 1 ? "slot" : "slots";
    const message = `It has its ${slots} of pool "${instance.pool}" and waits for a free process of the executor. If this lasts, raise TRADEWIND_PARALLELISM or start another scheduler.`;
    return [reason("EXECUTOR", message)];
  }
  if (place.worker_job !== null) {
    const message = `Worker "${place.worker}" on ${place.hostname} (worker ${place.worker_job}) has received it and starts its process.`;
    return [reason("WORKER_STARTS", message)];
  }
  return [await unclaimedReason(connection, place)];
}

async function unclaimedReason(connection: Connection, place: AttemptPlace): Promise<Finding> {
  const { executor, queue } = place;
  const found = (await schedulerExecutors(connection)).filter(({ name }) => name === executor);
  const failing = found.find(({ problem }) => problem !== null);
  if (failing !== undefined)
    return reason(
      "EXECUTOR_FAILING",
      `Executor "${executor}" cannot start it: the scheduler on ${failing.hostname} (job ${failing.job_id}) ${failing.problem}.`,
    );
  const [first] = found;
  if (first === undefined)
    return reason(
      "EXECUTOR_MISSING",
      `No live scheduler has the executor "${executor}" that it was queued for. Add it to TRADEWIND_EXECUTORS of a scheduler, or clear the task.`,
    );
  if (first.type !== "queue")
    return reason(
      "EXECUTOR_STARTS",
      `Executor "${executor}" was asked to start it, and its worker has not claimed it yet.`,
    );
  return queueReason(
    place,
    (await queueWorkers(connection)).find((each) => each.queue === queue),
  );
}

function queueReason({ ahead, executor, queue }: AttemptPlace, served: QueueWorkers | undefined): Finding {
  const waits = `It waits in queue "${queue}" of executor "${executor}"`;
  if (served === undefined)
    return reason(
      "QUEUE_UNSERVED",
      `${waits}, which no live worker serves. Start one: tradewind worker --queues ${queue}`,
    );
  const { free_slots: free, slots, workers } = served;
  const behind = ahead === 0 ? "" : ` behind ${ahead} other${ahead === 1 ? "" : "s"}`;
  const whose = workers === 1 ? "the worker that serves it" : `the ${workers} workers that serve it`;
  return reason(
    "WORKERS_BUSY",
    `${waits}${behind}: ${free} of ${slots} slots of ${whose} are free. If this lasts, start another worker: tradewind worker --queues ${queue}`,
  );
}

function reason(code: string, message: string): Finding {
  return { code, message, until: null };
}
