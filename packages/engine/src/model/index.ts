/** The rules of the system, as pure functions: no I/O, no clock, no randomness. */
export * from "./admission.ts";
export * from "./asset-events.ts";
export * from "./asset-gather.ts";
export * from "./backfill.ts";
export * from "./backoff.ts";
export type { BranchVerdict } from "./branches.ts";
export { Cron, validateCron } from "./cron.ts";
export { cronWords } from "./cron-words.ts";
export { type RangeEnd, rangeInstants, zoneOf } from "./day-range.ts";
export * from "./deadline.ts";
export * from "./diagram.ts";
export {
  type Asking,
  Drive,
  isDriven,
  isStreaming,
  needsStart,
  type StoredDrive,
  storedDrive,
} from "./drive.ts";
export * from "./errors.ts";
export { type Expansion, type ExpansionRow, Expansions, type ScopePlace } from "./expansions.ts";
export { type FailedPlace, FailedUpstream } from "./failed-upstream.ts";
export { failingReason } from "./failing.ts";
export { firstFailure } from "./first-failure.ts";
export * from "./graph.ts";
export type { GroupChange, GroupEvent, GroupRow, GroupState } from "./groups.ts";
export { haltedAs } from "./halting.ts";
export { beginAgain, type EditableRow, isImpliedEnd } from "./implied-ends.ts";
export {
  expansionOf,
  InputReader,
  type InputStanding,
  isListEnd,
  type OutputLookup,
} from "./input-reader.ts";
export type { Change, Gate, Instance, InstanceRow, Place, Wait } from "./instance.ts";
export { isOccupying, isUnexpanded } from "./instance.ts";
export * from "./joint-wait.ts";
export { ItemCut, JsonItems } from "./json-items.ts";
export { byTurn } from "./lane.ts";
export * from "./large-value.ts";
export * from "./latest.ts";
export { unifiedDiff } from "./line-diff.ts";
export * from "./map-labels.ts";
export type { MapChanges } from "./mapping.ts";
export * from "./notice.ts";
export { type Cancel, GRACE_MS, isStopped, type Order } from "./orders.ts";
export * from "./run.ts";
export type { RunEvent } from "./run-event.ts";
export { runRetryAt } from "./run-retry.ts";
export type { RunEnding, RunVerdict } from "./run-verdict.ts";
export * from "./scope.ts";
export { dependsOnSetup, owedTeardowns } from "./setups.ts";
export * from "./signal-condition.ts";
export * from "./signal-condition-match.ts";
export * from "./signal-rules.ts";
export * from "./states.ts";
export { isTimeSchedule, type TimeSchedule } from "./ticks.ts";
export * from "./timetable.ts";
export * from "./transitions.ts";
export * from "./trigger-rules.ts";
export { upcomingRuns } from "./upcoming-runs.ts";
export { diffVersions, isSameShape } from "./version-diff.ts";
export * from "./wait.ts";
export type { Cause, StartChanges, StoredStart } from "./waiting-starts.ts";
export { EXACT_LIMIT } from "./weights.ts";
export { wholeState } from "./whole-task.ts";
