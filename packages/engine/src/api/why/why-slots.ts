/** Whether a ready task waits for a slot of an executor of its scheduler, and which tasks hold the slots. */
import type { Connection } from "../../store/database/database.ts";
import { readSlotHolders, readSlotJob, type SlotHolder } from "../../store/why/slot-holders.ts";
import type { Finding } from "./why-deferred.ts";

/** The executor of a scheduler that has published nothing yet. */
const LOCAL = { name: "local", type: "local", slots: null, active: 0, problem: null };

export interface SlotNeed {
  /** null: the default. */
  readonly executor: string | null;
  readonly isStreaming: boolean;
}

/** @param owner The job that drives the run. */
export async function slotReasons(
  connection: Connection,
  owner: number | null,
  { executor: name, isStreaming }: SlotNeed,
): Promise<Finding[]> {
  const found = owner === null ? undefined : await readSlotJob(connection, owner);
  if (owner === null || found === undefined) return [];
  if (found.facts?.draining) {
    const { drain_until: until = null } = found.facts;
    const message = `The scheduler on ${found.hostname} (job ${owner}) drains and starts no more tasks. Another scheduler takes over the run when its running tasks have ended.`;
    return [{ code: "SCHEDULER_DRAINING", message, until: until === null ? null : new Date(until) }];
  }
  const executors = found.facts?.executors ?? [LOCAL];
  const [standard = LOCAL] = executors;
  const executor = executors.find((each) => each.name === name) ?? standard;
  if (executor.type !== "local") {
    if (executor.slots === null || executor.active < executor.slots) return [];
    const message = `Executor "${executor.name}" has ${executor.active} of at most ${executor.slots} tasks of the scheduler on ${found.hostname} (job ${owner}). Raise TRADEWIND_QUEUE_PARALLELISM, or its parallelism in TRADEWIND_EXECUTORS.`;
    return [{ code: "EXECUTOR_FULL", message, until: null }];
  }
  if (found.slots === null) return [];
  const holders = await readSlotHolders(connection, owner, standard.name);
  const count = (of: readonly SlotHolder[]) => of.reduce((sum, each) => sum + each.count, 0);
  const streaming = holders.filter((each) => each.is_streaming);
  const own = found.facts?.streaming_slots ?? 0;
  // Streaming tasks use their own slots first, then ordinary ones.
  const inOwn = Math.min(count(streaming), own);
  if (count(holders) - inOwn < found.slots || (isStreaming && inOwn < own)) return [];
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
  const message = `${all} of the scheduler on ${found.hostname} (job ${owner}) ${verb} in use: ${named(holders)}.${forGood} Raise TRADEWIND_PARALLELISM${more}, or start another scheduler.`;
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
