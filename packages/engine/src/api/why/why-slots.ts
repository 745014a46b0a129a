/** Whether a ready task waits for a slot of its scheduler's executor, and which tasks hold the slots. */
import type { Connection } from "../../store/database/database.ts";
import { readSlotHolders, type SlotHolder } from "../../store/list/slot-holders.ts";
import type { Finding } from "./why-deferred.ts";

/** @param owner The job that drives the run. */
export async function slotReasons(
  connection: Connection,
  owner: number | null,
  isStreaming: boolean,
): Promise<Finding[]> {
  const found = owner === null ? null : await readSlotHolders(connection, owner);
  if (found?.facts?.draining) {
    const { drain_until: until = null } = found.facts;
    const message = `The scheduler on ${found.hostname} (job ${owner}) drains and starts no more tasks. Another scheduler takes over the run when its running tasks have ended.`;
    return [{ code: "SCHEDULER_DRAINING", message, until: until === null ? null : new Date(until) }];
  }
  if (found === null || found.slots === null) return [];
  const count = (holders: readonly SlotHolder[]) => holders.reduce((sum, each) => sum + each.count, 0);
  const streaming = found.holders.filter((each) => each.is_streaming);
  const own = found.facts?.streaming_slots ?? 0;
  // Streaming tasks use their own slots first, then ordinary ones.
  const inOwn = Math.min(count(streaming), own);
  if (count(found.holders) - inOwn < found.slots || (isStreaming && inOwn < own)) return [];
  const forGood =
    streaming.length === 0
      ? ""
      : ` Streaming tasks keep their slots until they are stopped: ${named(streaming)}.`;
  const slots =
    own === 0
      ? `${found.slots} slots`
      : `${found.slots} ordinary slots${isStreaming ? ` and ${own} slots for streaming tasks` : ""}`;
  const more = streaming.length === 0 && !isStreaming ? "" : " or TRADEWIND_STREAMING_SLOTS";
  const all = own === 0 && found.slots === 1 ? "The only slot" : `All ${slots}`;
  const verb = own === 0 && found.slots === 1 ? "is" : "are";
  const message = `${all} of the scheduler on ${found.hostname} (job ${owner}) ${verb} in use: ${named(found.holders)}.${forGood} Raise TRADEWIND_PARALLELISM${more}, or start another scheduler.`;
  return [{ code: "EXECUTOR_FULL", message, until: null }];
}

const SHOWN = 5;

function named(holders: readonly SlotHolder[]): string {
  const first = holders
    .slice(0, SHOWN)
    .map(({ count, dag_id, task_id }) => `${dag_id}.${task_id} (${count})`);
  const rest = holders.length - first.length;
  return rest > 0 ? `${first.join(", ")} and ${rest} more tasks` : first.join(", ");
}
