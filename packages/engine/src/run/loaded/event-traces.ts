/**
 * The callbacks and notice deliveries that follow from the end or the retry of a task, a group or a run. They are rows of
 * the batch that stores the event, so that neither is stored without the other.
 */
import type { NoticeAction, NoticesManifest } from "@tradewind/sdk/manifest";
import type { ErrorFacts, RunFacts, SignalToSend } from "@tradewind/sdk/program";
import {
  failureReason,
  firstFailure,
  type GroupChange,
  groupNotice,
  type Instance,
  type NoticeEvent,
  type NoticeReport,
  runNotice,
  successSignals,
  taskNotice,
} from "../../model/index.ts";
import { senderName } from "../../model/signal/sender-name.ts";
import type { DeliveryWrite } from "../../store/notify/deliveries.ts";
import type { SignalDraft } from "../../store/signal/signals.ts";
import type { CallbackWrite, RunEnd } from "../../store/task/run-batch.ts";
import type { RunActor } from "./run-actor.ts";

export interface EventTraces {
  readonly callbacks: Omit<CallbackWrite, "id">[];
  readonly deliveries: DeliveryWrite[];
}

/** A try of a task has ended. */
export function traceTask(
  actor: RunActor,
  event: NoticeEvent,
  instance: Instance,
  { error, ...traces }: EventTraces & { readonly error: ErrorFacts | null },
): void {
  const { mapIndex, node, retryAt, startedAt, tryNumber } = instance;
  const { callbacks, notices } = node.manifest;
  const of = { taskId: node.id, mapIndex, tryNumber };
  if (callbacks[event])
    traces.callbacks.push({ runId: actor.id, ...of, event, error: error && { ...error } });
  if (!notices?.[event]) return;
  const reason = error && failureReason(error);
  const endedAt = instance.endedAt ?? 0;
  const report = taskNotice(actor.facts, event, { ...of, startedAt, endedAt, retryAt, reason });
  traces.deliveries.push(...deliveries(actor, event, notices[event], report, undefined));
}

export function traceGroup(actor: RunActor, { events, ...group }: GroupChange, traces: EventTraces): void {
  const { groupId, mapIndex, retryAt } = group;
  const { groups } = actor.model;
  const { callbacks, notices }: GroupOptions =
    actor.version.manifest.groups.find((each) => each.groupId === groupId) ?? {};
  for (const { event, tryNumber } of events) {
    const of = { runId: actor.id, taskId: null, groupId, mapIndex: mapIndex < 0 ? null : mapIndex };
    if (callbacks?.[event]) traces.callbacks.push({ ...of, event, tryNumber, error: null });
    if (!notices?.[event]) continue;
    const report = groupNotice(actor.facts, event, { groupId, mapIndex, tryNumber, retryAt });
    const first = event === "success" ? undefined : groups?.firstFailure(groupId, mapIndex);
    traces.deliveries.push(...deliveries(actor, event, notices[event], report, first));
  }
}

interface GroupOptions {
  readonly callbacks?: { readonly [Event in NoticeEvent]: boolean };
  readonly notices?: NoticesManifest;
}

/** `onFailure`: the notices of the installation for failed runs, except runs of sub-DAGs. */
export function traceRun(
  actor: RunActor,
  { reason, state }: RunEnd,
  { onFailure, ...traces }: EventTraces & { readonly onFailure: readonly NoticeAction[] },
): void {
  const { facts, model, run, version } = actor;
  const event = state === "success" ? "success" : "failure";
  const { callbacks, notices } = version.manifest;
  const { try_number: tryNumber } = run;
  const none = { taskId: null, mapIndex: null, error: null };
  if (callbacks[event]) traces.callbacks.push({ runId: actor.id, ...none, event, tryNumber });
  const own = notices?.[event] ?? [];
  const isAlone = event === "failure" && run.parent_try === null;
  const sent = isAlone ? [...own, ...onFailure] : own;
  if (sent.length === 0) return;
  const first = event === "failure" ? firstFailure(model.instances(), ({ isLeaf }) => isLeaf) : undefined;
  const report = runNotice(facts, event, { tryNumber, reason });
  traces.deliveries.push(...deliveries(actor, event, sent, report, first));
}

function deliveries(
  { id: runId }: RunActor,
  event: NoticeEvent,
  actions: readonly NoticeAction[],
  report: NoticeReport,
  first: Instance | undefined,
): DeliveryWrite[] {
  const { groupId, mapIndex, taskId } = report;
  const cause = first ? { taskId: first.node.id, mapIndex: first.mapIndex } : null;
  const of = { runId, event, deadlineId: null, taskId, groupId, mapIndex, cause };
  return actions.map((action, place) => ({ ...of, place, action, report: { ...report } }));
}

/** The signals that a task sends with its success: its own, and the events of its assets. */
export function successDrafts(
  { dagId, runId }: RunFacts,
  { mapIndex, node }: Instance,
  told: readonly SignalToSend[] = [],
): SignalDraft[] {
  const source = { dagId, runId, taskId: node.id, mapIndex };
  const sender = senderName(source);
  return successSignals(node.manifest, told, source).map((signal) => ({ ...signal, sender }));
}
