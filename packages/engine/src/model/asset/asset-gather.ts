/**
 * Asset schedules, as a reducer: events are gathered until the condition is true, then all of them go into one run. With
 * "event" the condition is evaluated after every event, with "batch" at the current end of the log. Every event is in
 * exactly one run, in order, for any page sizes. Gathered events are stored by version, because a group may wait long for
 * its missing events.
 *
 * A partitioned schedule has one such group for each partition with gathered events, and none for other partitions.
 */
import type { GatherManifest, Json } from "@tradewind/sdk/manifest";
import {
  addFact,
  type CompiledCondition,
  type ConditionState,
  isTrue,
  loadState,
} from "../signal/signal-condition.ts";
import { NO_RUN, type SignalFacts } from "../signal/signal-condition-match.ts";
import { ASSETS, assetNews } from "./asset-events.ts";

export type GatherTerms = Pick<GatherManifest, "each" | "partitioned">;

/** The events gathered since the last run. */
interface Group {
  readonly condition: ConditionState;
  /** Versions of asset events, in the order of the log. */
  readonly events: readonly number[];
  /** The latest of the DAG's own scheduled times. */
  readonly time: string | null;
  /** The version of the last matching signal. */
  readonly last: number;
}

/** By partition; null: events without a partition. Stored in JSON as pairs. */
export type GatherState = ReadonlyMap<string | null, Group>;

export interface GatheredRun extends Pick<Group, "events" | "time" | "last"> {
  readonly partition: string | null;
}

export interface Gathering {
  readonly state: GatherState;
  readonly heard: number;
  /** In the order in which their conditions became true. */
  readonly runs: readonly GatheredRun[];
}

export function loadGathered(condition: CompiledCondition, terms: GatherTerms, stored: Json): GatherState {
  const pairs = (stored as { readonly groups?: unknown } | null)?.groups;
  if (!Array.isArray(pairs)) return new Map();
  const groups = new Map<string | null, Group>();
  for (const [partition, group] of pairs as [string | null, Group][]) {
    const loaded: Group = { ...group, condition: loadState(condition, group.condition as unknown as Json) };
    const key = terms.partitioned ? partition : null;
    const other = groups.get(key);
    // No longer partitioned: the groups of the partitions are merged.
    groups.set(key, other === undefined ? loaded : joined(other, loaded));
  }
  return groups;
}

export function storedGathered(state: GatherState): Json {
  return state.size === 0 ? null : ({ groups: [...state] } as unknown as Json);
}

/** One page of the log. */
export interface GatherPage {
  readonly signals: readonly SignalFacts[];
  /** The log has no later signals now. */
  readonly isEnd: boolean;
  /** A run is created with this many events, even if more follow. */
  readonly most: number;
}

export function gather(
  condition: CompiledCondition,
  { each, partitioned }: GatherTerms,
  state: GatherState,
  { isEnd, most, signals }: GatherPage,
): Gathering {
  const groups = new Map(state);
  const runs: GatheredRun[] = [];
  // The events of a group are copied once per page, not once per event: a group may have many.
  const own = new Map<string | null, number[]>();
  let heard = 0;
  const fire = (partition: string | null, { events, last, time }: Group) => {
    runs.push({ partition, events, last, time });
    groups.delete(partition);
    own.delete(partition);
  };
  for (const signal of signals) {
    const partition = partitioned ? assetNews(signal.value).partition : null;
    const before = groups.get(partition) ?? empty(condition);
    const after = addFact(condition, before.condition, { kind: "signal", ...signal }, NO_RUN);
    if (after === before.condition) continue;
    heard++;
    const isEvent = signal.namespace === ASSETS;
    const events = own.get(partition) ?? [...before.events];
    if (isEvent) events.push(signal.version);
    const group: Group = {
      condition: after,
      events,
      time: isEvent ? before.time : (momentOf(signal.value) ?? before.time),
      last: signal.version,
    };
    own.set(partition, events);
    const isEnough = each === "event" || events.length >= most;
    if (isEnough && isTrue(condition, after)) fire(partition, group);
    else groups.set(partition, group);
  }
  // Includes groups that became true in an earlier page, before the end of the log was reached.
  if (isEnd) for (const [key, group] of [...groups]) if (isTrue(condition, group.condition)) fire(key, group);
  return { state: groups, heard, runs };
}

/** Splits a list, in order, into parts that each fit in one run. Returns at least one part. */
export function portions<T>(
  items: readonly T[],
  { maxItems, maxSize, sizeOf }: { maxItems: number; maxSize: number; sizeOf: (item: T) => number },
): T[][] {
  const parts: T[][] = [[]];
  let size = 0;
  for (const item of items) {
    const part = parts.at(-1)!;
    const grown = size + sizeOf(item);
    const isFull = part.length > 0 && (part.length >= maxItems || grown > maxSize);
    if (isFull) parts.push([item]);
    else part.push(item);
    size = isFull ? sizeOf(item) : grown;
  }
  return parts;
}

function empty({ leaves }: CompiledCondition): Group {
  return { condition: { leaves: leaves.map(() => null) }, events: [], time: null, last: 0 };
}

function joined(a: Group, b: Group): Group {
  return {
    condition: { leaves: a.condition.leaves.map((leaf, at) => leaf ?? b.condition.leaves[at] ?? null) },
    events: [...a.events, ...b.events].sort((one, other) => one - other),
    time: a.time ?? b.time,
    last: Math.max(a.last, b.last),
  };
}

/** The scheduled time in a signal of the DAG's own schedule. */
function momentOf(value: Json): string | null {
  const at = (value as { readonly runAfter?: Json } | null)?.runAfter;
  return typeof at === "string" ? at : null;
}
