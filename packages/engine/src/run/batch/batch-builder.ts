/** Turns the decisions of actors into the rows of one batch, and sends the wake-ups that follow from it. */
import { randomUUID } from "node:crypto";
import type { Json, NoticeAction } from "@tradewind/sdk/manifest";
import type { AttemptReport } from "../../execute/contract.ts";
import type { WakeUps } from "../../job/wake-up.ts";
import {
  type Change,
  type GroupChange,
  type ImmediateEffect,
  type Instance,
  isOccupying,
  type MapChanges,
  type Place,
  runRetryAt,
  type TaskState,
} from "../../model/index.ts";
import type { AgainWrite, DriveWrite } from "../../store/drive/run-drives.ts";
import { limitNames } from "../../store/pool/limit-key.ts";
import type { RetryWrite } from "../../store/run/run-retry.ts";
import type { EffectWrite } from "../../store/signal/signal-effects.ts";
import type { InstanceMove } from "../../store/task/instance-moves.ts";
import type { MapWrite } from "../../store/task/map-expansions.ts";
import type { InstanceBirth } from "../../store/task/new-instances.ts";
import type { RunBatch, RunEnd, SignalWrite } from "../../store/task/run-batch.ts";
import type { GroupWrite } from "../../store/task/run-groups.ts";
import { stateSignal } from "../../store/task/state-signals.ts";
import type { DeferralWrite, WaitEnd } from "../../store/trigger/deferrals.ts";
import { type EventTraces, traceGroup, traceRun } from "../loaded/event-traces.ts";
import type { RunActor, Traces } from "../loaded/run-actor.ts";
import { immediateWrites, startWrites } from "../loaded/signal-causes.ts";

/** One actor's part of a batch; kept until the commit, and given back if that fails. */
export interface ActorChanges {
  readonly actor: RunActor;
  readonly changes: readonly Change[];
  readonly maps: MapChanges | null;
  readonly groups: readonly GroupChange[] | null;
  /** The changed signal state of the run; null: unchanged. */
  readonly drive: DriveWrite | null;
  readonly effects: readonly ImmediateEffect[];
}

/** The rows of workers' reports that a batch deletes: of ends with their assignments. */
export type StoredRows = Pick<RunBatch, "endedAssignments" | "reports">;

/** The reports of runs that are not loaded are left to the owner of the run. */
export function storedRows(
  reports: readonly AttemptReport[],
  actors: ReadonlyMap<number, RunActor>,
): StoredRows {
  const rows = reports.filter(({ stored }) => stored && actors.has(stored.runId));
  const [ends, starts] = [
    rows.filter(({ type }) => type === "ended"),
    rows.filter(({ type }) => type === "started"),
  ];
  return {
    endedAssignments: ends.map(({ attempt }) => attempt),
    reports: starts.flatMap(({ stored }) => stored?.report || []),
  };
}

/** Takes the decisions of an actor since the last call. */
export function changesOf(actor: RunActor): ActorChanges {
  const { subscriptions: ears, model } = actor;
  const maps = model.drainMapChanges();
  const changes = model.drainChanges();
  const groups = model.groups?.drainChanges() ?? null;
  if (!ears) return { actor, changes, maps, groups, drive: null, effects: [] };
  const state = (model.drive?.drainState() ?? null) as Json | null;
  const starts = model.drive?.drainStarts() ?? [];
  const effects = model.drive?.drainEffects() ?? [];
  const hasDriven = state !== null || starts.length > 0 || effects.length > 0;
  // A changed log position alone is not worth a transaction.
  const isQuiet = !hasDriven && changes.length === 0 && !maps && !ears.isLate && !ears.hasManualCommands;
  if (isQuiet) return { actor, changes, maps, groups, drive: null, effects: [] };
  const drive = { runId: actor.id, ...ears.drainPosition(), state, starts };
  return { actor, changes, maps, groups, drive, effects };
}

export interface BatchOwner {
  readonly jobId: number;
  readonly hostname: string;
  /** The notices of the installation for failed runs. */
  readonly onFailure: readonly NoticeAction[];
}

/** States that are published as signals; scheduled and queued are internal. */
const SIGNALLED: ReadonlySet<TaskState> = new Set([
  "running",
  "deferred",
  "up_for_retry",
  "up_for_reschedule",
  "success",
  "failed",
  "skipped",
  "upstream_failed",
  "removed",
]);

/** Runs that end or are retried. */
export interface RunEnds {
  readonly ends: readonly RunEnd[];
  readonly retries: readonly RetryWrite[];
}

/** The runs among these whose tasks have all ended: they end, or wait for their next try. */
export function runEnds(parts: readonly ActorChanges[], now: number): RunEnds {
  const ends: RunEnd[] = [];
  const retries: RetryWrite[] = [];
  for (const { actor } of parts) {
    // A map whose length is being read is no deadlock.
    const verdict = actor.unmeasured > 0 ? ({ state: "running" } as const) : actor.model.verdict();
    if (verdict.state === "running") {
      // An edit has reopened tasks while the run waited for its retry.
      if (actor.retryAt !== null) retries.push({ runId: actor.id, retryAt: null });
      continue;
    }
    const { ending, run, version } = actor;
    if (ending) {
      ends.push({ runId: actor.id, ...ending });
      continue;
    }
    const standing = { tryNumber: run.try_number, verdict, isTimedOut: false };
    const retryAt = runRetryAt(version.manifest, standing, now);
    if (retryAt !== null) {
      if (actor.retryAt === null) retries.push({ runId: actor.id, retryAt });
      continue;
    }
    const reason = verdict.state === "failed" ? verdict.reason : null;
    ends.push({ runId: actor.id, state: verdict.state, reason });
  }
  return { ends, retries };
}

/** Whether the batch has nothing that is worth a transaction. */
export function isEmpty(batch: RunBatch): boolean {
  const { births, deadLetters, drives, ends, groups, instances, maps, retries, waitEnds } = batch;
  const rows = [batch.reports, batch.endedAssignments];
  const parts = [births, deadLetters, drives, ends, groups, instances, maps, retries, waitEnds, ...rows];
  return parts.every(({ length }) => length === 0);
}

export function buildBatch(
  { onFailure, ...owner }: BatchOwner,
  parts: readonly ActorChanges[],
  extra: RunEnds & { readonly traces: Traces; readonly reports: StoredRows },
): RunBatch {
  const slots = new Map<string, number>();
  const maps: MapWrite[] = [];
  const births: InstanceBirth[] = [];
  const instances: InstanceMove[] = [];
  const signals: SignalWrite[] = [...extra.traces.states];
  const drives: DriveWrite[] = [];
  const again: AgainWrite[] = [];
  const startSignals = new Set<number>();
  const effects: EffectWrite[] = [...extra.traces.effects];
  for (const { actor, changes, drive, effects: done, maps: mapped } of parts) {
    effects.push(...done.flatMap((each) => immediateWrites(actor.id, each)));
    if (drive) drives.push(drive);
    if (mapped) maps.push({ runId: actor.id, ...mapped });
    for (const instance of mapped?.released ?? []) occupy(slots, actor.placeOf(instance), -1);
    for (const change of changes) {
      if (change.from === null) births.push(birth(actor, change));
      if (change.from !== null || change.instance.attempt !== null)
        instances.push({ ...change, runId: actor.id });
      addSlotChange(slots, actor, change);
      const { instance } = change;
      if (instance.state === "queued") {
        addCauses(startSignals, actor, instance);
        effects.push(...startWrites(actor, instance));
      }
      if (hasNewTries(change))
        again.push({ runId: actor.id, taskId: instance.node.id, mapIndex: instance.mapIndex });
      if (SIGNALLED.has(instance.state)) signals.push(stateSignal(actor.run, instance));
    }
  }
  const waitEnds = waitsEnded(parts, extra.traces.waitEnds);
  const actors = new Map(parts.map(({ actor }) => [actor.id, actor]));
  // Copies: a rejected batch is built again from the same traces.
  const events = { callbacks: [...extra.traces.callbacks], deliveries: [...extra.traces.deliveries] };
  const groups = groupWrites(parts, events);
  for (const end of extra.ends) {
    const actor = actors.get(end.runId);
    if (!actor) continue;
    if (actor.subscriptions && drives.every((drive) => drive.runId !== end.runId))
      drives.push({ runId: end.runId, ...actor.subscriptions.drainPosition(), state: null, starts: [] });
    const { dag_id: dagId, run_id: runId } = actor.run;
    // The signal state of a run is deleted with its end: this signal keeps the reason why it was closed.
    const closedBy = actor.model.drive?.closed ?? null;
    const value = {
      state: end.state,
      ...(closedBy !== null && { closedBy: closedBy.replaceAll("\u0000", "") }),
    };
    signals.push({ namespace: "run", key: `${dagId}/${runId}`, value });
    if (!isEndedByHand(actor)) traceRun(actor, end, { ...events, onFailure });
  }
  for (const [pool, delta] of slots) if (delta === 0) slots.delete(pool);
  return {
    ...owner,
    sender: `scheduler:${owner.jobId}`,
    fences: parts.map(({ actor }) => ({ runId: actor.id, generation: actor.run.generation })),
    slots,
    maps,
    births,
    instances,
    attempts: extra.traces.attempts,
    outputs: extra.traces.outputs,
    signals,
    callbacks: events.callbacks.map((each) => ({ id: randomUUID(), ...each })),
    deliveries: events.deliveries,
    sends: extra.traces.signals,
    deferrals: waitsBegun(parts, extra.traces.deferrals, waitEnds),
    waitEnds,
    ends: extra.ends,
    retries: extra.retries,
    groups,
    drives,
    again,
    deadLetters: extra.traces.deadLetters,
    effects,
    ...extra.reports,
    startSignals: [...startSignals],
  };
}

/** Maximum number of signals that a batch reads; a process requests the signals that are missing. */
const MAX_STARTING_SIGNALS = 1_000;

function addCauses(to: Set<number>, { model }: RunActor, { node }: Instance): void {
  const versions = model.drive?.startSignals(node.id) ?? [];
  if (to.size + versions.length <= MAX_STARTING_SIGNALS) for (const version of versions) to.add(version);
}

/** A run that was ended manually runs no callbacks and sends no notices, with or without teardowns left. */
function isEndedByHand({ run }: RunActor): boolean {
  return run.ending !== null;
}

function groupWrites(parts: readonly ActorChanges[], traces: EventTraces): GroupWrite[] {
  const writes: GroupWrite[] = [];
  for (const { actor, groups } of parts) {
    for (const change of groups ?? []) {
      const { events: _, ...group } = change;
      writes.push({ runId: actor.id, ...group });
      if (!isEndedByHand(actor)) traceGroup(actor, change, traces);
    }
  }
  return writes;
}

function birth(actor: RunActor, { instance }: Change): InstanceBirth {
  const { manifest, weight } = instance.node;
  const { taskId, queue, executor, operator } = manifest;
  const { pool, slots: poolSlots, limitKey } = actor.placeOf(instance);
  const { mapIndex, maxTries } = instance;
  const isWhole = instance.attempt === null;
  return {
    runId: actor.id,
    taskId,
    mapIndex,
    maxTries,
    pool,
    poolSlots,
    limitKey,
    queue,
    weight,
    executor,
    operator,
    state: isWhole ? instance.state : "pending",
    tryNumber: isWhole ? instance.tryNumber : 0,
    scheduledAt: isWhole ? instance.scheduledAt : null,
    endedAt: isWhole ? instance.endedAt : null,
    reason: isWhole ? instance.reason : null,
  };
}

/** Whether the instance starts over, with all tries of its task. */
function hasNewTries({ from, fromMaxTries, instance }: Change): boolean {
  return from !== null && instance.maxTries !== fromMaxTries;
}

/** Without waits that ended before they were stored, because their run was halted: they would never be ended. */
function waitsBegun(
  parts: readonly ActorChanges[],
  begun: readonly DeferralWrite[],
  ends: readonly WaitEnd[],
): DeferralWrite[] {
  const ended = new Set(ends.map(({ attempt }) => attempt));
  const models = new Map(parts.map(({ actor }) => [actor.id, actor.model]));
  return begun.filter(({ attempt, runId, taskId, mapIndex }) => {
    const instance = models.get(runId)?.get(taskId, mapIndex);
    return ended.has(attempt) || (instance?.state === "deferred" && instance.attempt === attempt);
  });
}

/** Adds the waits that ended because their run was halted. */
function waitsEnded(parts: readonly ActorChanges[], known: readonly WaitEnd[]): WaitEnd[] {
  const ends = new Map(known.map((end) => [end.attempt, end]));
  for (const { changes } of parts) {
    for (const { instance, from, fromAttempt: attempt } of changes) {
      if (
        from !== "deferred" ||
        attempt === null ||
        (instance.attempt === attempt && instance.state === "deferred")
      )
        continue;
      if (!ends.has(attempt))
        ends.set(attempt, { attempt, kind: "cancelled", mustBeUnfired: false, isCancelled: true });
    }
  }
  return [...ends.values()];
}

function addSlotChange(slots: Map<string, number>, actor: RunActor, change: Change): void {
  const was = change.wasOccupying ? 1 : 0;
  const is = isOccupying(change.instance) ? 1 : 0;
  if (was === is) return;
  occupy(slots, actor.placeOf(change.instance), is - was);
}

function occupy(slots: Map<string, number>, place: Place, by: number): void {
  add(slots, place.pool, by * place.slots);
  for (const name of limitNames(place.limitKey)) add(slots, name, by);
}

function add(slots: Map<string, number>, name: string, delta: number): void {
  slots.set(name, (slots.get(name) ?? 0) + delta);
}

/** Sends the wake-ups that follow from a stored batch. */
export function sendNews(wakeUps: WakeUps, batch: RunBatch): void {
  const { births, deferrals, deliveries, instances, sends, waitEnds } = batch;
  if (births.length + instances.length > 0) wakeUps.send("moves");
  if (sends.length > 0) wakeUps.send("signals");
  if (deliveries.length > 0) wakeUps.send("notices");
  if (deferrals.length > 0) wakeUps.send("triggers");
  // Waits that ended without their event: their triggers, and runs of sub-DAGs, may have no waiters left.
  if (waitEnds.some(({ kind }) => kind === "timeout" || kind === "cancelled")) {
    wakeUps.send("unwaited");
    wakeUps.send("callbacks");
  }
}
