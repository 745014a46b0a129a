/** The rules of the product as pure functions: no I/O, no clock, no randomness. */

export * from "./asset/asset-events.ts";
export * from "./asset/asset-gather.ts";
export * from "./calendar/backfill.ts";
export * from "./calendar/backoff.ts";
export { Cron, validateCron } from "./calendar/cron.ts";
export { cronWords } from "./calendar/cron-words.ts";
export { dayStarts, type RangeEnd, rangeInstants, zoneOf } from "./calendar/day-range.ts";
export * from "./calendar/latest.ts";
export { waitEndsAt } from "./calendar/moments.ts";
export { isTimeSchedule, type TimeSchedule } from "./calendar/ticks.ts";
export * from "./calendar/timetable.ts";
export { upcomingRuns } from "./calendar/upcoming-runs.ts";
export type { BranchVerdict } from "./graph/branches.ts";
export * from "./graph/diagram.ts";
export { type FailedPlace, FailedUpstream } from "./graph/failed-upstream.ts";
export * from "./graph/graph.ts";
export type { GroupChange, GroupEvent, GroupRow, GroupState } from "./graph/groups.ts";
export * from "./graph/scope.ts";
export { dependsOnSetup, pendingTeardowns } from "./graph/setups.ts";
export * from "./graph/trigger-rules.ts";
export { EXACT_LIMIT } from "./graph/weights.ts";
export { wholeState, worstState } from "./graph/whole-task.ts";
export { type Expansion, type ExpansionRow, Expansions, type ScopePlace } from "./map/expansions.ts";
export {
  expansionOf,
  InputReader,
  type InputStanding,
  isListEnd,
  type OutputLookup,
} from "./map/input-reader.ts";
export { ItemCut, JsonItems } from "./map/json-items.ts";
export * from "./map/large-value.ts";
export * from "./map/map-labels.ts";
export type { MapChanges } from "./map/mapping.ts";
export * from "./notify/deadline.ts";
export * from "./notify/notice.ts";
export * from "./pool/admission.ts";
export { byTurn } from "./pool/lane.ts";
export { attemptEnd, type EndTerms } from "./run/attempt-end.ts";
export type { AttemptOutcome } from "./run/attempt-outcome.ts";
export { type Cancel, type Command, GRACE_MS, isStopped } from "./run/commands.ts";
export { DEFAULT_QUEUE } from "./run/default-queue.ts";
export * from "./run/errors.ts";
export { failingReason } from "./run/failing.ts";
export { failureFingerprint } from "./run/failure-fingerprint.ts";
export { firstFailure } from "./run/first-failure.ts";
export { haltedAs } from "./run/halting.ts";
export { beginAgain, type EditableRow, isImpliedEnd } from "./run/implied-ends.ts";
export type { Change, Gate, Instance, InstanceRow, Place, Wait } from "./run/instance.ts";
export { isOccupying, isUnexpanded } from "./run/instance.ts";
export * from "./run/run.ts";
export type { AttemptEnd, RunEvent } from "./run/run-event.ts";
export { runRetryAt } from "./run/run-retry.ts";
export type { RunEnding, RunVerdict } from "./run/run-verdict.ts";
export * from "./run/states.ts";
export * from "./run/transitions.ts";
export * from "./run/wait.ts";
export {
  Drive,
  type FailedOnSignal,
  type ImmediateEffect,
  isDriven,
  isStreaming,
  needsStart,
  type StoredDrive,
  storedDrive,
} from "./signal/drive.ts";
export * from "./signal/joint-wait.ts";
export * from "./signal/signal-condition.ts";
export * from "./signal/signal-condition-match.ts";
export * from "./signal/signal-rules.ts";
export type { Cause, StartChanges, StoredStart } from "./signal/waiting-starts.ts";
export * from "./timeline/critical-path.ts";
export * from "./timeline/intervals.ts";
export * from "./timeline/projection.ts";
export type { PastInstance } from "./timeline/stints.ts";
export * from "./trigger/approval.ts";
export { unifiedDiff } from "./version/line-diff.ts";
export { diffVersions, isSameShape } from "./version/version-diff.ts";
