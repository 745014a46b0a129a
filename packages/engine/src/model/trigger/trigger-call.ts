/**
 * Whether a value is a trigger call that can be stored and run. Calls come from processes that run user code. A call that
 * the database rejects (a NUL, a year out of range, a text too long for an index) would abort the batch that stores it,
 * together with all other changes in the batch, and every retry of it.
 */
import { APPROVAL_KIND, requestProblem } from "@tradewind/sdk/approval-request";
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import { membersOf } from "../index.ts";
import { WEBHOOK_KIND } from "./engine-kinds.ts";

export function isTriggerCall(raw: unknown): raw is TriggerCall {
  if (!isRecord(raw) || !isKey(raw.kind) || !isKey(raw.queue)) return false;
  const hasWake = raw.wake === null || (isRecord(raw.wake) && isWake(raw.wake));
  const hasTimed = raw.timed === null || (isRecord(raw.timed) && raw.wake !== null);
  if (!hasWake || !hasTimed || raw.args === undefined) return false;
  if (raw.source !== "builtin" && raw.source !== "bundle") return false;
  return raw.replicas === 1 || raw.replicas === 2;
}

/** Whether these can be the trigger and the arguments of a wait. Queries read the request of an approval. */
export function isWait(trigger: unknown, kwargs: unknown): boolean {
  if (!isTriggerCall(trigger) || kwargs === undefined) return false;
  if (trigger.kind !== APPROVAL_KIND) return true;
  return (
    isRecord(trigger.args) &&
    [kwargs, { ...trigger.args, message: null }].every((each) => requestProblem(each) === null)
  );
}

/** A text that can be a key. The SDK creates no other keys. */
export function isKey(raw: unknown): raw is string {
  if (typeof raw !== "string" || raw.length === 0 || raw.length > 250) return false;
  return !raw.includes("\u0000") && raw.isWellFormed();
}

/** Milliseconds that can be added to a date: at most 10,000 years. */
export function isDelay(raw: unknown): raw is number {
  return typeof raw === "number" && raw >= 0 && raw <= 3.2e14;
}

const FIRST_MOMENT = Date.parse("0001-01-01T00:00:00Z");
const LAST_MOMENT = Date.parse("9999-12-31T23:59:59.999Z");

/** JavaScript and PostgreSQL both support other years, but not the same ones, and format them differently. */
export function isMoment(raw: unknown): raw is string {
  const at = typeof raw === "string" ? Date.parse(raw) : Number.NaN;
  return at >= FIRST_MOMENT && at <= LAST_MOMENT;
}

function isWake(wake: Record<string, unknown>): boolean {
  return "at" in wake ? isMoment(wake.at) : isDelay(wake.afterMs);
}

function isRecord(raw: unknown): raw is Record<string, unknown> {
  return typeof raw === "object" && raw !== null;
}

/**
 * For a task that waits for a webhook: accepts calls since the run started, including calls before the wait. A task may
 * publish its URL and be called before its wait begins.
 */
export function sinceRun(call: TriggerCall, startedAt: string | null): TriggerCall {
  if (startedAt === null || !waitsForCalls(call) || !isRecord(call.args)) return call;
  if (call.kind === WEBHOOK_KIND) {
    const { after } = call.args as { readonly after?: Json };
    return after == null ? { ...call, args: { ...call.args, after: startedAt } as Json } : call;
  }
  const members = Object.entries(callsOf(call)).map(([name, each]) => [name, sinceRun(each, startedAt)]);
  return { ...call, args: { ...call.args, members: Object.fromEntries(members) as Json } as Json };
}

/** True for a webhook trigger, and for a joint wait with a webhook trigger among its members. */
export function waitsForCalls(call: TriggerCall): boolean {
  return call.kind === WEBHOOK_KIND || Object.values(callsOf(call)).some(waitsForCalls);
}

/** The members of a joint wait; none if any member is not a valid call: the triggerer rejects such a wait. */
function callsOf(call: TriggerCall): Readonly<Record<string, TriggerCall>> {
  const members = membersOf(call);
  return Object.values(members).every(isTriggerCall) ? members : {};
}
