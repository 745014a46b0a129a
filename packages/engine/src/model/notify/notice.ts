/**
 * What notices say of a task, a group or a run that has ended, or is tried again. The same for every way in which they are
 * sent; written down when it happens, because the run may be cleared before a notice has been delivered.
 */

export type NoticeEvent = "success" | "failure" | "retry";

/** The failure that a failed group or run is a consequence of. */
export interface NoticeCause {
  readonly taskId: string;
  /** -1 when the task is not mapped. */
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly reason: string | null;
}

/** JSON. Instants are ISO texts. */
export interface NoticeReport {
  readonly event: string;
  readonly dagId: string;
  readonly runId: string;
  /** null: of the run, or of a group. */
  readonly taskId: string | null;
  readonly groupId: string | null;
  /** -1: neither a mapped task nor an item of a mapped group. */
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly state: string;
  /** Secrets in it are masked. */
  readonly reason: string | null;
  readonly logicalDate: string | null;
  readonly startedAt: string | null;
  /** null: the moment at which it was stored. */
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
/** What is said of an error; its log has the rest. */
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

/** An error as the reason of a failure. */
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
