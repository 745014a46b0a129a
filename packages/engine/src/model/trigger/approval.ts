/** Approvals: who may answer one, and how an answer ends its wait. */
import type { ApprovalRequest } from "@tradewind/sdk/approval-request";
import type { ApprovalManifest, Json } from "@tradewind/sdk/manifest";
import type { TriggerOutcome } from "../run/wait.ts";

/** A person's decision. */
export interface Decision {
  readonly by: string;
  readonly comment: string | null;
  /** null: rejected. `answer` is undefined for an approval without a form. */
  readonly approved: { readonly answer: Json | undefined } | null;
}

/** @param isAdmin May answer every approval. */
export function mayAnswer(
  { assignees }: Pick<ApprovalRequest, "assignees">,
  person: { readonly name: string; readonly isAdmin: boolean },
): boolean {
  return assignees.length === 0 || assignees.includes(person.name) || person.isAdmin;
}

/** The outcome of the wait. Only an answer to a form needs the task's code: its validator has the last word. */
export function outcomeOfAnswer(
  { form, onReject }: Pick<ApprovalManifest, "form" | "onReject">,
  { approved, by, comment }: Decision,
): Exclude<TriggerOutcome, { kind: "failed" }> {
  if (approved === null) {
    const reason = `rejected by ${by}${comment === null ? "" : `: ${comment}`}`;
    if (onReject === "skip") return { kind: "ending", ending: { kind: "skipped", reason } };
    return { kind: "ending", ending: { kind: "failed", reason, retry: false } };
  }
  if (form === null) return { kind: "ending", ending: { kind: "success", output: { by, comment } } };
  return { kind: "event", payload: { answer: approved.answer ?? null, by, comment }, key: null };
}
