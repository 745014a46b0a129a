/**
 * The content of notices about a task, a group or a run that has ended or is retried. It is the same for every channel. It
 * is stored when the event happens, because the run may be cleared before the notice is delivered.
 */

export type NoticeEvent = "success" | "failure" | "retry";

/** The failure that caused a group or run to fail. */
export interface NoticeCause {
  readonly taskId: string;
  /** -1 when the task is not mapped. */
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly reason: string | null;
}

/** JSON; instants are ISO strings. */
export interface NoticeReport {
  readonly event: string;
  readonly dagId: string;
  readonly runId: string;
  /** null: the notice is about the run or a group. */
  readonly taskId: string | null;
  readonly groupId: string | null;
  /** -1: neither a mapped task nor an item of a mapped group. */
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly state: string;
  /** With secrets masked. */
  readonly reason: string | null;
  readonly logicalDate: string | null;
  readonly startedAt: string | null;
  /** null: the moment at which the notice was stored. */
  readonly endedAt: string | null;
  /** When the next try begins, if one follows. */
  readonly nextTryAt: string | null;
}

export interface NoticedRun {
  readonly dagId: string;
  readonly runId: string;
  readonly logicalDate: string | null;
  readonly startedAt: string | null;
}

const HAPPENED = { success: "succeeded", failure: "failed", retry: "retrying" } as const;
const STATE = { success: "success", failure: "failed", retry: "up_for_retry" } as const;
/** The maximum length of a reason; the log has the full error. */
const MAX_REASON = 2_000;

export function taskNotice(
  run: NoticedRun,
  event: NoticeEvent,
  of: {
    readonly taskId: string;
    readonly mapIndex: number;
    readonly tryNumber: number;
    readonly startedAt: number | null;
    readonly endedAt: number;
    readonly retryAt: number | null;
    readonly reason: string | null;
  },
): NoticeReport {
  const { mapIndex, retryAt, taskId, tryNumber } = of;
  return {
    ...named(run, `task.${HAPPENED[event]}`, { taskId, groupId: null, mapIndex }),
    tryNumber,
    state: STATE[event],
    reason: words(of.reason),
    logicalDate: run.logicalDate,
    startedAt: iso(of.startedAt),
    endedAt: iso(of.endedAt),
    nextTryAt: event === "retry" ? iso(retryAt) : null,
  };
}

export function groupNotice(
  run: NoticedRun,
  event: NoticeEvent,
  of: {
    readonly groupId: string;
    readonly mapIndex: number;
    readonly tryNumber: number;
    readonly retryAt: number | null;
  },
): NoticeReport {
  const { groupId, mapIndex, retryAt, tryNumber } = of;
  return {
    ...named(run, `group.${HAPPENED[event]}`, { taskId: null, groupId, mapIndex }),
    tryNumber,
    state: STATE[event],
    reason: null,
    logicalDate: run.logicalDate,
    startedAt: null,
    endedAt: null,
    nextTryAt: event === "retry" ? iso(retryAt) : null,
  };
}

export function runNotice(
  run: NoticedRun,
  event: Exclude<NoticeEvent, "retry">,
  of: { readonly tryNumber: number; readonly reason: string | null },
): NoticeReport {
  return {
    ...named(run, `run.${HAPPENED[event]}`, { taskId: null, groupId: null, mapIndex: -1 }),
    tryNumber: of.tryNumber,
    state: STATE[event],
    reason: words(of.reason),
    logicalDate: run.logicalDate,
    startedAt: run.startedAt,
    endedAt: null,
    nextTryAt: null,
  };
}

/** Formats an error as the reason of a failure. */
export function failureReason(error: {
  readonly code: string | null;
  readonly name: string;
  readonly message: string;
}): string {
  return `${error.code ?? error.name}: ${error.message}`;
}

function named(
  { dagId, runId }: NoticedRun,
  event: string,
  place: { readonly taskId: string | null; readonly groupId: string | null; readonly mapIndex: number },
) {
  return { event, dagId, runId, ...place };
}

function words(reason: string | null): string | null {
  if (reason === null) return null;
  const text = reason.replaceAll("\u0000", "");
  return (text.length > MAX_REASON ? `${text.slice(0, MAX_REASON)}…` : text).toWellFormed();
}

function iso(moment: number | null): string | null {
  return moment === null ? null : new Date(moment).toISOString();
}
