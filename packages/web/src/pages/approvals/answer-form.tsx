/** Approves, rejects, or answers with the form that the task asks for. */
import { useMemo, useState } from "react";
import { toast } from "sonner";
import { send } from "../../actions/api-call.ts";
import { reloadPaths } from "../../actions/change.ts";
import { Twin } from "../../actions/twin.tsx";
import { ApiProblem, messageOf } from "../../api/problem.ts";
import { fieldOf } from "../../forms/fields.ts";
import { SchemaForm } from "../../forms/schema-form.tsx";
import { serverErrors } from "../../forms/server-errors.ts";
import { type FormErrors, initialValue, jsonOf, problemsOf } from "../../forms/values.ts";
import { Button } from "../../ui/button.tsx";
import { Field, TextArea } from "../../ui/field.tsx";
import {
  APPROVALS,
  type Approval,
  answerCommand,
  answerRequest,
  type Decision,
  stateText,
} from "./approval.ts";

const NO_ERRORS: FormErrors = new Map();

export function AnswerForm({ approval }: { readonly approval: Approval }) {
  const { form, has_form: hasForm, id, title } = approval;
  const field = useMemo(() => fieldOf(form ?? {}, "answer"), [form]);
  const [value, setValue] = useState<unknown>(() => (hasForm ? initialValue(field) : undefined));
  const [comment, setComment] = useState("");
  const [errors, setErrors] = useState(NO_ERRORS);
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);

  const local = hasForm ? problemsOf(field, value) : NO_ERRORS;
  const said = comment.trim() === "" ? {} : { comment: comment.trim() };
  const approving: Decision = {
    decision: "approve",
    ...(hasForm && { answer: local.size === 0 ? jsonOf(value) : {} }),
    ...said,
  };

  const answer = async (decision: Decision) => {
    setProblem(undefined);
    setErrors(NO_ERRORS);
    setBusy(true);
    try {
      const answered = await send<Approval>(answerRequest(id, decision));
      toast.success(`${stateText(answered)}: ${title}`);
      await reloadPaths([APPROVALS, `${APPROVALS}/{approval_id}`]);
    } catch (error) {
      const found = error instanceof ApiProblem ? serverErrors(error, "answer") : null;
      if (found === null) setProblem(messageOf(error));
      else setErrors(found);
      // Another person was first: the pane shows what was answered.
      if (error instanceof ApiProblem && error.code === "APPROVAL_CLOSED") {
        toast.error(messageOf(error));
        await reloadPaths([APPROVALS, `${APPROVALS}/{approval_id}`]);
      }
    } finally {
      setBusy(false);
    }
  };

  return (
    <form
      className="flex flex-col gap-3"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (local.size > 0) setErrors(local);
        else void answer(approving);
      }}
    >
      {problem !== undefined && (
        <p role="alert" className="rounded-md bg-danger-soft px-3 py-2 break-words">
          {problem}
        </p>
      )}
      {hasForm && <SchemaForm field={field} value={value} errors={errors} onChange={setValue} />}
      <Field label="Comment" hint="Kept with the answer and in the audit log.">
        {(ids) => (
          <TextArea
            {...ids}
            rows={2}
            maxLength={1_000}
            value={comment}
            className="font-sans"
            onChange={(event) => setComment(event.target.value)}
          />
        )}
      </Field>
      <div className="flex flex-wrap items-center gap-2">
        <Button kind="primary" type="submit" disabled={busy}>
          {hasForm ? "Send answer" : "Approve"}
        </Button>
        <Button kind="danger" disabled={busy} onClick={() => void answer({ decision: "reject", ...said })}>
          Reject
        </Button>
        <span className="ml-auto">
          <Twin cli={answerCommand(id, approving)} request={answerRequest(id, approving)} />
        </span>
      </div>
    </form>
  );
}
