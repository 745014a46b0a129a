/**
 * `/approvals`: what waits for a person, and who has answered what. An answer is validated by the JSON Schema of the DAG
 * version; the task validates it again. Airflow's `/hitlDetails` has another model and is not served.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { type Decision, mayAnswer, outcomeOfAnswer } from "../../model/trigger/approval.ts";
import { ParamsValidator } from "../../service/params-validator.ts";
import { ADMIN } from "../../store/access/tokens.ts";
import {
  APPROVAL_ORDER,
  APPROVAL_STATES,
  type ApprovalRow,
  findApproval,
  listApprovals,
} from "../../store/list/approvals.ts";
import { answerApproval, lockApproval } from "../../store/trigger/approval-answer.ts";
import { type Principal, principalOf } from "../server/auth.ts";
import type { Resource } from "../server/context.ts";
import { cursorPageOf, cursorQuery, id, int, iso, jsonValue, many, orderBy, text } from "../server/fields.ts";
import { create } from "../server/idempotent.ts";
import { type FieldError, notFound, Problem } from "../server/problem.ts";
import { approvalDocument, showApproval } from "./approval-document.ts";

const MAX_INT8 = Number.MAX_SAFE_INTEGER;
const MAX_ANSWER_BYTES = 65_536;

const listQuery = z.strictObject({
  ...cursorQuery,
  dag_id: id.optional(),
  run_id: id.optional(),
  task_id: id.optional(),
  state: many(z.enum(APPROVAL_STATES)).optional(),
  assignee: id.optional(),
  order_by: orderBy(APPROVAL_ORDER, "id"),
});
const approvalParams = z.object({ approval_id: int(1, MAX_INT8) });
const answerBody = z.strictObject({
  decision: z.enum(["approve", "reject"]),
  /** Required to approve an approval with a form. */
  answer: jsonValue.optional(),
  comment: text.max(1000).nullish(),
});

export const approvals: Resource = (app, options) => {
  const { database } = options;
  const tags = ["Approval"];
  const validator = new ParamsValidator();

  app.get(
    "/api/v2/approvals",
    {
      schema: {
        querystring: listQuery,
        response: {
          200: z.object({
            approvals: z.array(approvalDocument),
            total_entries: z.number().nullable(),
            next_cursor: z.string().nullable(),
            previous_cursor: z.string().nullable(),
          }),
        },
        tags,
      },
    },
    async (request) => {
      const { query } = request;
      const filter = {
        dagId: query.dag_id,
        runId: query.run_id,
        taskId: query.task_id,
        states: query.state,
        assignee: query.assignee,
      };
      const page = await listApprovals(database, filter, cursorPageOf(query));
      const principal = principalOf(request);
      return {
        approvals: page.rows.map((row) => showApproval(row, isAllowed(row, principal))),
        total_entries: page.total,
        next_cursor: page.next,
        previous_cursor: page.previous,
      };
    },
  );

  app.get(
    "/api/v2/approvals/:approval_id",
    { schema: { params: approvalParams, response: { 200: approvalDocument }, tags } },
    async (request) => {
      const row = (await findApproval(database, request.params.approval_id)) ?? unknown(request.params);
      return showApproval(row, isAllowed(row, principalOf(request)));
    },
  );

  app.post(
    "/api/v2/approvals/:approval_id/answer",
    {
      schema: { params: approvalParams, body: answerBody, response: { 200: approvalDocument }, tags },
    },
    async (request, reply) => {
      const { body, params } = request;
      const principal = principalOf(request);
      let dagRunId: number | undefined;
      const { body: answered } = await create(options, { request, reply }, async (tx) => {
        // Its lock first: what is read after it stays true.
        const isOpen = await lockApproval(tx, params.approval_id);
        const row = (await findApproval(tx, params.approval_id)) ?? unknown(params);
        if (!isOpen || row.state !== "open") throw closed(row);
        if (!isAllowed(row, principal)) throw notAllowed(row, principal);
        const comment = body.comment || null;
        const approved =
          body.decision === "approve" ? { answer: checked(row, body.answer, validator) } : null;
        if (approved === null && body.answer !== undefined)
          throw unprocessable("answer", "A rejection has no answer: give a comment", "extra_forbidden");
        const decision: Decision = { by: principal.name, comment, approved };
        const outcome = outcomeOfAnswer(row.approval ?? { form: null, onReject: "skip" }, decision);
        const isStored = await answerApproval(tx, { id: row.id, by: principal.name, comment, outcome });
        const after = (await findApproval(tx, row.id))!;
        // An edit or the owner of the run ended the wait, which needs no lock of the trigger.
        if (!isStored) throw closed(after);
        dagRunId = row.dag_run_id;
        return {
          status: 200,
          body: showApproval(after, true),
          deed: {
            action: "answer_approval",
            dagId: row.dag_id,
            runId: row.run_id,
            taskId: row.task_id,
            ...(row.map_index >= 0 && { mapIndex: row.map_index }),
            details: {
              approval_id: row.id,
              decision: body.decision,
              comment,
              ...(approved?.answer !== undefined && { answer: approved.answer }),
            },
          },
        };
      });
      if (dagRunId !== undefined) options.notify({ kind: "approval_answered", dagRunId });
      return answered;
    },
  );
};

/** Tokens have no roles yet that distinguish users: the token of the installation is the administrator's. */
function isAllowed({ request }: ApprovalRow, { name }: Principal): boolean {
  return mayAnswer(request, { name, isAdmin: name === ADMIN });
}

/** The answer, if it is one that the form accepts. */
function checked(row: ApprovalRow, answer: Json | undefined, validator: ParamsValidator): Json | undefined {
  const { approval, task_id, version_id } = row;
  if (approval?.form == null) {
    if (answer === undefined) return undefined;
    throw unprocessable("answer", "This approval has no form: give only a decision", "extra_forbidden");
  }
  if (answer === undefined) throw unprocessable("answer", "Field required", "missing");
  if (Buffer.byteLength(JSON.stringify(answer)) > MAX_ANSWER_BYTES)
    throw unprocessable("answer", `Must have at most ${MAX_ANSWER_BYTES} bytes as JSON`, "too_big");
  const form = { id: `${version_id}/${task_id}`, schema: approval.form.schema };
  const fields = validator.problems(form, answer).map(({ keyword, path, problem }): FieldError => {
    const loc = ["body", "answer", ...path];
    return { loc, msg: `${loc.slice(1).join(".")}: ${problem}`, type: `form.${keyword}`, problem };
  });
  if (fields.length > 0) throw new Problem(422, "VALIDATION", fields);
  return answer;
}

function unprocessable(field: string, msg: string, type: string): Problem {
  return new Problem(422, "VALIDATION", [{ loc: ["body", field], msg, type }]);
}

function unknown({ approval_id }: { readonly approval_id: number }): never {
  throw notFound(`Approval ${approval_id} does not exist, or its run was deleted`);
}

function notAllowed({ id: approvalId, request }: ApprovalRow, { name }: Principal): Problem {
  const named = request.assignees.map((assignee) => `"${assignee}"`).join(", ");
  return new Problem(
    403,
    "APPROVAL_NOT_ASSIGNED",
    `The token "${name}" may not answer approval ${approvalId}: it is assigned to ${named}. Use one of their tokens, or the admin token of the installation.`,
  );
}

function closed(row: ApprovalRow): Problem {
  const when = iso(row.closed_at) ?? "";
  const why = {
    open: "is being ended",
    answered: `was answered by "${row.answered_by}" at ${when}`,
    timed_out: `timed out at ${when}`,
    cancelled: `was cancelled at ${when}: its task was cleared, marked, restarted or cancelled`,
  }[row.state];
  return new Problem(409, "APPROVAL_CLOSED", `Approval ${row.id} ${why}. Nothing was changed.`);
}
