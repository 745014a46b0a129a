/** Approvals: in which state one is, and what an answer sends. Pure. */
import { commandOf, type Request } from "../../actions/command-text.ts";
import type { components } from "../../api/schema.gen.ts";

export type Approval = components["schemas"]["Approval"];

export const APPROVALS = "/api/v2/approvals";

export interface Decision {
  readonly decision: "approve" | "reject";
  /** Of an approval with a form, unless it is rejected. */
  readonly answer?: unknown;
  readonly comment?: string;
}

type Outcome = Pick<Approval, "state" | "decision" | "has_form">;

/** What has become of it, in one or two words. */
export function stateText({ decision, has_form, state }: Outcome): string {
  if (state === "open") return "Open";
  if (state === "timed_out") return "Timed out";
  if (state === "cancelled") return "Cancelled";
  if (decision === "reject") return "Rejected";
  return has_form ? "Answered" : "Approved";
}

/** What happens if no person answers in time. */
export function timeoutText({ has_form, on_timeout }: Pick<Approval, "has_form" | "on_timeout">): string {
  if (on_timeout === "answer") return has_form ? "the default answer is used" : "it is approved";
  return on_timeout === "skip" ? "the task is skipped" : "the task fails";
}

export function rejectText({ on_reject }: Pick<Approval, "on_reject">): string {
  return on_reject === "skip" ? "skips the task" : "fails the task";
}

export function whoText({ assignees }: Pick<Approval, "assignees">): string {
  return assignees.length === 0 ? "anyone" : assignees.join(", ");
}

export function answerRequest(id: number, decision: Decision): Request {
  return { method: "POST", path: `${APPROVALS}/${id}/answer`, body: decision };
}

export function answerCommand(id: number, { answer, comment, decision }: Decision): string {
  return commandOf(
    ...["tradewind", "approvals", "answer", id],
    ...(decision === "reject"
      ? ["--reject"]
      : answer === undefined
        ? ["--approve"]
        : ["--answer", JSON.stringify(answer)]),
    ...(comment === undefined ? [] : ["--comment", comment]),
  );
}
