/** An approval in a response. */
import type { Json } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { APPROVAL_STATES, type ApprovalRow } from "../../store/list/approvals.ts";
import { instanceAddress } from "../server/documents.ts";
import { date, iso, nullableDate } from "../server/fields.ts";
import { taskPlace } from "../server/task-place.ts";

export const approvalDocument = z
  .object({
    id: z.number(),
    ...instanceAddress,
    try_number: z.number(),
    /** timed_out: there was no answer in time; `answer` is then that of `onTimeout`. cancelled: the task was cancelled, cleared or marked. */
    state: z.enum(APPROVAL_STATES),
    title: z.string(),
    /** Markdown. */
    message: z.string().nullable(),
    /** Who may answer; empty: anyone. */
    assignees: z.array(z.string()),
    /** The caller may answer. */
    may_answer: z.boolean(),
    /** Why the task rejected the previous answer. */
    problem: z.string().nullable(),
    /** An answer is expected; otherwise only a decision. */
    has_form: z.boolean(),
    /** The JSON Schema of the answer; null: the validator cannot provide one, or there is no form. */
    form: z.any(),
    on_reject: z.enum(["skip", "fail"]),
    on_timeout: z.enum(["fail", "skip", "answer"]),
    opened_at: date,
    /** null: never. */
    expires_at: nullableDate,
    /** The end of the wait, in any case. */
    closed_at: nullableDate,
    answered_by: z.string().nullable(),
    decision: z.enum(["approve", "reject"]).nullable(),
    comment: z.string().nullable(),
    /** null: none, or none yet. */
    answer: z.any(),
  })
  .meta({ id: "Approval" });

export type ApprovalDocument = z.output<typeof approvalDocument>;

export function showApproval(row: ApprovalRow, mayAnswer: boolean): ApprovalDocument {
  const { assignees, message, problem, title } = row.request;
  const { approval } = row;
  return {
    id: row.id,
    ...taskPlace(row),
    state: row.state,
    title,
    message,
    assignees: [...assignees],
    may_answer: row.state === "open" && mayAnswer,
    problem,
    has_form: approval?.form != null,
    form: approval?.form?.schema ?? null,
    on_reject: approval?.onReject ?? "skip",
    on_timeout: approval?.onTimeout ?? "fail",
    opened_at: iso(row.opened_at),
    expires_at: iso(row.expires_at),
    closed_at: iso(row.closed_at),
    answered_by: row.answered_by,
    ...shownAnswer(row.outcome),
  };
}

type Shown = Pick<ApprovalDocument, "decision" | "comment" | "answer">;

function shownAnswer(outcome: ApprovalRow["outcome"]): Shown {
  if (outcome?.kind !== "event" && outcome?.kind !== "ending")
    return { decision: null, comment: null, answer: null };
  const { comment = null } = outcome as { readonly comment?: string | null };
  if (outcome.kind === "ending")
    return { decision: outcome.ending.kind === "success" ? "approve" : "reject", comment, answer: null };
  const { answer = null } = outcome.payload as { readonly answer?: Json };
  return { decision: "approve", comment, answer };
}
