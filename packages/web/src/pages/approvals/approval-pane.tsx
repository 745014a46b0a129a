import { Link } from "@tanstack/react-router";
import { $api } from "../../api/client.ts";
import { runPath, taskPath } from "../../app/paths.ts";
import { Ago, Exact } from "../../time/time.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { Facts } from "../../ui/page.tsx";
import { Pane } from "../../ui/pane.tsx";
import { Loads } from "../../ui/panels.tsx";
import { AnswerForm } from "./answer-form.tsx";
import { APPROVALS, type Approval, rejectText, stateText, timeoutText, whoText } from "./approval.ts";

/** One approval: the question, and its form or its answer. It stays shown when another person answers it. */
export function ApprovalPane({ id, onClose }: { readonly id: number; readonly onClose: () => void }) {
  const query = $api.useQuery("get", `${APPROVALS}/{approval_id}`, {
    params: { path: { approval_id: id } },
  });
  return (
    <Pane title={`Approval ${id}`} onClose={onClose}>
      <Loads query={query}>{(approval) => <Details approval={approval} />}</Loads>
    </Pane>
  );
}

function Details({ approval }: { readonly approval: Approval }) {
  const { assignees, message, problem, state, title } = approval;
  return (
    <div className="flex flex-col gap-4 p-4">
      <div className="flex flex-col gap-2">
        <h3 className="text-lg break-words">{title}</h3>
        {message !== null && <Markdown text={message} />}
      </div>
      {problem !== null && (
        <p className="rounded-md bg-warn-soft px-3 py-2">
          The task rejected the previous answer: <span className="break-words">{problem}</span>
        </p>
      )}
      {state === "open" &&
        (approval.may_answer ? (
          <AnswerForm key={approval.id} approval={approval} />
        ) : (
          <p className="rounded-md border border-line bg-raised px-3 py-2">
            Only {assignees.join(" and ")} may answer.
          </p>
        ))}
      {state !== "open" && <Answer approval={approval} />}
      <Context approval={approval} />
    </div>
  );
}

function Answer({ approval }: { readonly approval: Approval }) {
  const { answer, answered_by, closed_at, comment } = approval;
  return (
    <section className="flex flex-col gap-2 rounded-md border border-line bg-raised px-3 py-2.5">
      <p>
        <span className="font-semibold">{stateText(approval)}</span>
        {answered_by !== null && ` by ${answered_by}`} <Ago at={closed_at} />
      </p>
      {comment !== null && <p className="break-words whitespace-pre-wrap">{comment}</p>}
      {answer !== null && <JsonTree value={answer} name="answer" />}
    </section>
  );
}

function Context({ approval }: { readonly approval: Approval }) {
  const { dag_id: dag, dag_run_id: run, map_index: map, task_id: task } = approval;
  return (
    <Facts
      rows={[
        [
          "Task",
          <Link key="task" to={taskPath(dag, run, task)} search={map < 0 ? {} : { map }} className="link">
            {dag} › {task}
            {map >= 0 && `[${approval.rendered_map_index ?? map}]`}
          </Link>,
        ],
        [
          "Run",
          <Link key="run" to={runPath(dag, run)} className="link font-mono break-all">
            {run}
          </Link>,
        ],
        ["Who may answer", whoText(approval)],
        ["Asked", <Exact key="asked" at={approval.opened_at} />],
        [
          "Until",
          approval.expires_at === null ? (
            "no timeout"
          ) : (
            <span key="until">
              <Exact at={approval.expires_at} />, then {timeoutText(approval)}
            </span>
          ),
        ],
        approval.state === "open" ? ["A rejection", rejectText(approval)] : null,
        approval.closed_at === null ? null : ["Closed", <Exact key="closed" at={approval.closed_at} />],
        approval.try_number > 1 ? ["Try", approval.try_number] : null,
      ]}
    />
  );
}
