/**
 * The effect of a page of signals on a schedule on assets: the runs to create, and the events gathered afterwards. A run
 * receives its events in its conf; more events than one run can hold create several runs.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { type GatheredRun, gather, loadGathered, portions, storedGathered } from "../../model/index.ts";
import { type AssetEventRow, readEvents } from "../../store/asset/asset-events.ts";
import type { Database } from "../../store/database/database.ts";
import type { ScheduleMove, ScheduleRun } from "../../store/signal/signal-schedules.ts";
import { type SignalRow, sentAt, signalFacts } from "../../store/signal/signals-read.ts";
import { type CompiledSchedule, isWithin, partOfRunId } from "./signal-schedules-runs.ts";

/** Limited because every task of the run receives the conf. */
const MAX_EVENTS = 1_000;
const MAX_CHARACTERS = 1_000_000;

/** Null if no signal concerns the schedule. */
export async function gathered(
  database: Database,
  { condition, terms }: CompiledSchedule,
  stored: Json,
  { isEnd, signals }: { readonly signals: readonly SignalRow[]; readonly isEnd: boolean },
): Promise<Omit<ScheduleMove, "to"> | null> {
  const how = terms.gather!;
  const inTime = signals.filter((row) => isWithin(terms, sentAt(row))).map(signalFacts);
  const before = loadGathered(condition, how, stored);
  const { heard, runs, state } = gather(condition, how, before, { signals: inTime, isEnd, most: MAX_EVENTS });
  if (heard === 0 && runs.length === 0) return null;
  const rows = await readEvents(
    database,
    runs.flatMap(({ events }) => events),
  );
  const byId = new Map(rows.map((row) => [row.id, row]));
  return {
    state: storedGathered(state),
    received: heard,
    runs: runs.flatMap((run) => scheduleRuns(run, how, byId)),
  };
}

function scheduleRuns(
  { events, last, partition, time }: GatheredRun,
  { partitioned }: { readonly partitioned: boolean },
  rows: ReadonlyMap<number, AssetEventRow>,
): ScheduleRun[] {
  // A missing event was deleted.
  const found = events.flatMap((id) => rows.get(id) ?? []).map(eventOf);
  const parts = portions(found, {
    maxItems: MAX_EVENTS,
    maxSize: MAX_CHARACTERS,
    sizeOf: (event) => JSON.stringify(event).length,
  });
  return parts.map((assetEvents, index) => {
    const isLast = index === parts.length - 1;
    const number = isLast ? last : assetEvents.at(-1)!.id;
    const name = partition === null ? "" : `${partOfRunId(partition)}__`;
    const conf = { assetEvents, ...(partitioned && { partition }), ...(time !== null && { time }) };
    return {
      runId: `asset__${name}${number}`,
      conf: conf as unknown as Json,
      events: assetEvents.map(({ id }) => id),
      partition,
    };
  });
}

/** In the form that tasks receive: `AssetEvent` of the SDK. */
function eventOf(row: AssetEventRow) {
  const { source_dag_id: dagId, source_run_id: runId, source_task_id: taskId } = row;
  const isProduced = dagId !== null && runId !== null && taskId !== null;
  return {
    id: row.id,
    uri: row.uri,
    payload: row.payload,
    partition: row.partition_key,
    alias: row.alias,
    time: row.created_at.toISOString(),
    source: isProduced ? { dagId, runId, taskId, mapIndex: row.source_map_index ?? -1 } : null,
  };
}
