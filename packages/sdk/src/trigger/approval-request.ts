/**
 * What an approval asks, and how a person's answer reaches its task. Pure: the engine stores requests and delivers
 * answers, tests script them.
 */
import type { Json } from "../manifest.ts";

/**
 * The kind of the trigger that a person's answer fires; no triggerer runs it.
 * @example const isApproval = (call: TriggerCall) => call.kind === APPROVAL_KIND;
 */
export const APPROVAL_KIND = "tradewind.approval";

/** Stored with the wait: the request as a person reads it. */
export interface ApprovalRequest {
  readonly title: string;
  readonly message: string | null;
  /** The names of those who may answer; empty: anyone. */
  readonly assignees: readonly string[];
  /** Why the task rejected the previous answer; null: there was none. */
  readonly problem: string | null;
}

/** The arguments of the trigger, as lists of waits show them. */
export type ApprovalArgs = Omit<ApprovalRequest, "message">;

/**
 * The output of an approval without a form.
 * @example const approver = (approval: Approval) => approval.by ?? "the timeout";
 */
export interface Approval {
  /** The name of the person; null: its timeout approved it. */
  readonly by: string | null;
  readonly comment: string | null;
}

/** The event of an approval; with a form, it carries the answer. */
export interface ApprovalEvent extends Approval {
  readonly answer?: Json;
}

const LONGEST_TITLE = 500;
/**
 * The longest message and problem of a request, in characters.
 * @example const short = (text: string) => text.slice(0, LONGEST_MESSAGE);
 */
export const LONGEST_MESSAGE = 20_000;
const MOST_ASSIGNEES = 100;
const LONGEST_NAME = 250;

/**
 * The first problem of a request; null if it can be stored.
 * @example requestProblem({ title: "Publish?", message: null, assignees: [], problem: null }); // null
 */
export function requestProblem(raw: unknown): string | null {
  if (typeof raw !== "object" || raw === null) return "it is not a request";
  const { assignees, message, problem, title } = raw as Partial<Record<keyof ApprovalRequest, unknown>>;
  if (!isText(title, LONGEST_TITLE)) return `title must be a text of 1 to ${LONGEST_TITLE} characters`;
  if (message !== null && !isText(message, LONGEST_MESSAGE))
    return `message must be a text of 1 to ${LONGEST_MESSAGE} characters`;
  const areNames = Array.isArray(assignees) && assignees.every((name) => isText(name, LONGEST_NAME));
  if (!areNames || assignees.length > MOST_ASSIGNEES)
    return `assignees must be a list of at most ${MOST_ASSIGNEES} names`;
  return problem === null || isText(problem, LONGEST_MESSAGE) ? null : "its problem is not a text";
}

/** PostgreSQL stores neither NUL nor half of a surrogate pair. */
function isText(raw: unknown, longest: number): raw is string {
  const isOfSize = typeof raw === "string" && raw.length > 0 && raw.length <= longest;
  return isOfSize && !raw.includes("\0") && raw.isWellFormed();
}
