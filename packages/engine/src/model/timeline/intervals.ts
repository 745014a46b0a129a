/** What a task instance did when: the intervals of all its tries, from its stored attempts and waits. */
import type { TaskState } from "../run/states.ts";

/** The states that last for a time. */
export const INTERVAL_KINDS = [
  "scheduled",
  "queued",
  "running",
  "deferred",
  "up_for_retry",
  "up_for_reschedule",
] as const;
export type IntervalKind = (typeof INTERVAL_KINDS)[number];

/** An attempt: an archived one, or the current one of the instance. Instants are milliseconds. */
export interface TimedAttempt {
  readonly attempt: string;
  readonly tryNumber: number;
  /** Its state when it ended; of the current attempt: the state of the instance. */
  readonly state: TaskState;
  readonly scheduledAt: number | null;
  readonly queuedAt: number | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** Set if a retry or another check followed automatically. */
  readonly retryAt: number | null;
}

/** A wait, of the attempt with the same id; an attempt that began with a wait may have no row of its own. */
export interface TimedWait {
  readonly attempt: string;
  readonly tryNumber: number;
  readonly scheduledAt: number | null;
  readonly deferredAt: number;
  readonly endedAt: number | null;
}

/** The present of an instance. */
export interface TimedInstance {
  readonly state: TaskState;
  readonly tryNumber: number;
  readonly attempt: string | null;
  readonly scheduledAt: number | null;
  readonly queuedAt: number | null;
  /** Of the current attempt. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly retryAt: number | null;
}

export interface Interval {
  readonly kind: IntervalKind;
  readonly tryNumber: number;
  readonly start: number;
  /** null: it goes on. */
  readonly end: number | null;
  /** The state that followed; null: it goes on. */
  readonly next: TaskState | null;
}

/** In the order of time, without overlaps: a clock that went backwards shortens the later interval. */
export function intervalsOf(
  instance: TimedInstance,
  archived: readonly TimedAttempt[],
  waits: readonly TimedWait[],
): Interval[] {
  const waitOf = new Map(waits.map((wait) => [wait.attempt, wait]));
  const attempts = [...archived];
  const own = instance.attempt;
  if (own !== null && archived.every(({ attempt }) => attempt !== own))
    attempts.push({ ...instance, attempt: own, retryAt: null });
  const known = new Set(attempts.map(({ attempt }) => attempt));
  for (const wait of waits) if (!known.has(wait.attempt)) attempts.push(startedWaiting(wait, instance));
  attempts.sort((a, b) => beginningOf(a, waitOf) - beginningOf(b, waitOf));
  const isReady = own === null && instance.state === "scheduled";
  const readyAt = (isReady ? instance.scheduledAt : null) ?? Number.POSITIVE_INFINITY;
  const drawn = new Drawing();
  for (const [place, attempt] of attempts.entries()) {
    const following = attempts[place + 1];
    const next = following ? beginningOf(following, waitOf) : readyAt;
    drawAttempt(drawn, attempt, { instance, next, wait: waitOf.get(attempt.attempt) });
  }
  if (isReady) drawn.add("scheduled", instance.tryNumber, instance.scheduledAt, null, null);
  return drawn.intervals;
}

function startedWaiting(wait: TimedWait, { attempt, state }: TimedInstance): TimedAttempt {
  const isOwn = attempt === wait.attempt;
  return {
    ...wait,
    state: isOwn ? state : "deferred",
    queuedAt: null,
    startedAt: null,
    endedAt: null,
    retryAt: null,
  };
}

function beginningOf(
  { attempt, endedAt, queuedAt, scheduledAt, startedAt }: TimedAttempt,
  waitOf: ReadonlyMap<string, TimedWait>,
): number {
  const wait = waitOf.get(attempt);
  return (
    wait?.scheduledAt ??
    scheduledAt ??
    queuedAt ??
    startedAt ??
    wait?.deferredAt ??
    endedAt ??
    Number.MAX_VALUE
  );
}

interface Around {
  readonly instance: TimedInstance;
  /** When the next attempt began; infinity: there is none. */
  readonly next: number;
  readonly wait: TimedWait | undefined;
}

function drawAttempt(drawn: Drawing, attempt: TimedAttempt, { instance, next, wait }: Around): void {
  const { queuedAt, scheduledAt, state, tryNumber } = attempt;
  const isOwn = instance.attempt === attempt.attempt;
  const isSleeping = isOwn && (instance.state === "up_for_retry" || instance.state === "up_for_reschedule");
  const last = isOwn && !isSleeping ? instance.state : state;
  // An attempt without a process began with its wait.
  const startedAt = queuedAt === null && wait ? null : attempt.startedAt;
  // The process of an attempt that deferred ended before its wait.
  const processEnd = wait ? Math.min(wait.deferredAt, attempt.endedAt ?? wait.deferredAt) : attempt.endedAt;
  drawn.add(
    "scheduled",
    tryNumber,
    wait?.scheduledAt ?? scheduledAt,
    queuedAt ?? startedAt ?? wait?.deferredAt ?? attempt.endedAt,
    queuedAt !== null ? "queued" : wait ? "deferred" : last,
  );
  drawn.add("queued", tryNumber, queuedAt, startedAt ?? processEnd, startedAt === null ? last : "running");
  drawn.add("running", tryNumber, startedAt, processEnd, wait ? "deferred" : last);
  const waitEnd = wait && endOfWait(wait, attempt, { instance, next });
  if (wait) {
    const start = startedAt === null ? wait.deferredAt : (processEnd ?? wait.deferredAt);
    drawn.add("deferred", tryNumber, start, waitEnd ?? null, last === "deferred" ? "scheduled" : last);
  }
  const end = waitEnd ?? attempt.endedAt;
  const hasSlept = attempt.retryAt !== null && Number.isFinite(next);
  if (!isSleeping && !hasSlept) return;
  const kind = state === "up_for_reschedule" ? "up_for_reschedule" : "up_for_retry";
  drawn.add(kind, tryNumber, end, hasSlept ? next : null, hasSlept ? "scheduled" : null);
}

/** A wait is ended by the commit of what follows it, which has an earlier time. */
function endOfWait(
  { endedAt }: TimedWait,
  attempt: TimedAttempt,
  { instance, next }: Pick<Around, "instance" | "next">,
): number | null {
  const isOwn = instance.attempt === attempt.attempt;
  if (isOwn && instance.state === "deferred") return endedAt;
  const end = isOwn ? instance.endedAt : null;
  const first = Math.min(end ?? Number.POSITIVE_INFINITY, endedAt ?? Number.POSITIVE_INFINITY, next);
  return Number.isFinite(first) ? first : attempt.endedAt;
}

class Drawing {
  readonly intervals: Interval[] = [];
  #at = Number.NEGATIVE_INFINITY;

  /** Leaves out what never began, or took no time, except for processes and retries. */
  add(kind: IntervalKind, tryNumber: number, from: number | null, to: number | null, next: TaskState | null) {
    if (from === null) return;
    const start = Math.max(from, this.#at);
    const end = to === null ? null : Math.max(to, start);
    this.#at = end ?? start;
    if (end === start && kind !== "running" && kind !== "up_for_retry") return;
    const before = this.intervals.at(-1);
    // It has no end of its own, but something followed it.
    if (before?.end === null)
      this.intervals[this.intervals.length - 1] = { ...before, end: start, next: kind };
    this.intervals.push({ kind, tryNumber, start, end, next: end === null ? null : next });
  }
}
