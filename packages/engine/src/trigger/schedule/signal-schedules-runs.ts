/** The effect of a page of signals on a schedule: the runs to create, and the state of its condition afterwards. */
import { createHash } from "node:crypto";
import type { Json, SignalCondition } from "@tradewind/sdk/manifest";
import {
  advance,
  type CompiledCondition,
  type ConditionState,
  type LeafState,
  loadState,
  NO_RUN,
  valueAt,
} from "../../model/index.ts";
import type { ScheduleMove } from "../../store/signal/signal-schedules.ts";
import type { ScheduleTerms } from "../../store/signal/signal-schedules-publish.ts";
import { type SignalRow, sentAt, signalFacts } from "../../store/signal/signals-read.ts";

/** A schedule with its condition, which keeps the values of signals. */
export interface CompiledSchedule {
  readonly terms: ScheduleTerms;
  readonly condition: CompiledCondition;
}

/** Null if no signal concerns the schedule. */
export function firings(
  { condition, terms }: CompiledSchedule,
  stored: Json,
  signals: readonly SignalRow[],
): Omit<ScheduleMove, "to"> | null {
  const hasAll = joins(terms.when);
  const runs: ScheduleMove["runs"][number][] = [];
  let state: ConditionState = loadState(condition, stored);
  let heard = 0;
  for (const row of signals) {
    if (!isWithin(terms, sentAt(row))) continue;
    const next = advance(condition, state, { kind: "signal", ...signalFacts(row) }, NO_RUN);
    if (next.state === state && !next.fired) continue;
    heard++;
    state = next.state;
    if (!next.fired) continue;
    const signal = { key: row.key, value: row.value, version: row.id };
    const conf = { signal, ...(hasAll && { signals: byKey(next.by) }) } as unknown as Json;
    const causes = hasAll ? next.by.flatMap(({ version }) => version ?? []) : [row.id];
    runs.push({ runId: signalRunId(terms.route, row), conf, causes });
  }
  return heard === 0 ? null : { state: state as unknown as Json, received: heard, runs };
}

/**
 * The id of the run that a firing creates. With a route it is derived from the value at that path, so that a second
 * firing with the same value finds the run; without such a value, every firing creates a run as without a route. Ids
 * contain only characters that are safe in URLs and file names; a hash distinguishes other or longer values.
 */
function signalRunId(route: string | null, { id, value }: Pick<SignalRow, "id" | "value">): string {
  if (route === null) return `signal__${id}`;
  const found = valueAt(value, route);
  if (typeof found !== "string" && typeof found !== "number" && typeof found !== "boolean")
    return `signal__~${id}`;
  return `signal__${partOfRunId(String(found))}`;
}

export function partOfRunId(name: string): string {
  if (/^[\w.:+-]{1,200}$/.test(name)) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 16);
  return `${name.replace(/[^\w.:+-]/g, "_").slice(0, 150)}~${hash}`;
}

/** Of two leaves with the same key, the later signal. */
function byKey(leaves: readonly LeafState[]): Json {
  const ordered = leaves.toSorted((a, b) => (a.version ?? 0) - (b.version ?? 0));
  return Object.fromEntries(
    ordered.map(({ key, value = null, version }) => [key, { key, value, version }]),
  ) as Json;
}

function joins(condition: SignalCondition): boolean {
  return condition.kind === "all" || (condition.kind === "any" && condition.of.some(joins));
}

export function isWithin({ end, start }: ScheduleTerms, sent: Date): boolean {
  return (start === null || sent >= new Date(start)) && (end === null || sent <= new Date(end));
}
