import { Command, Option } from "@commander-js/extra-typings";
import { instanceText } from "@tradewind/sdk/wording";
import { path } from "../../client/client.ts";
import { findRunFilter, RUN_ARGUMENT } from "../../client/find-run.ts";
import { requireNamed } from "../../client/named-filter.ts";
import { usageError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { parseJson, readSource, wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import { moment, relativeTime } from "../../output/when.ts";
import type { Fields, Session } from "../../session.ts";

interface Approval {
  readonly id: number;
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly task_id: string;
  readonly map_index: number;
  readonly rendered_map_index: string | null;
  readonly state: string;
  readonly title: string;
  readonly message: string | null;
  readonly assignees: readonly string[];
  readonly problem: string | null;
  readonly has_form: boolean;
  readonly form: unknown;
  readonly on_reject: string;
  readonly on_timeout: string;
  readonly opened_at: string;
  readonly expires_at: string | null;
  readonly closed_at: string | null;
  readonly answered_by: string | null;
  readonly decision: string | null;
  readonly comment: string | null;
  readonly answer: unknown;
}

const approvalId = wholeNumber(1);
const STATES = ["open", "answered", "timed_out", "cancelled"] as const;
const ID = "number of the approval, from `tradewind approvals list`";

export function command(session: Session) {
  const approvals = new Command("approvals")
    .description("list, show and answer approvals: tasks that wait for a person")
    .addHelpText("after", examples("tradewind approvals list", "tradewind approvals answer 7 --approve"));

  approvals
    .command("list")
    .description("list approvals, oldest first; by default the open ones")
    .addHelpText(
      "after",
      examples("tradewind approvals list", "tradewind approvals list --assignee ann --state open answered"),
    )
    .option("--all", "approvals in every state")
    .addOption(
      new Option("--state <state...>", "only approvals in these states (default: open)")
        .choices(STATES)
        .conflicts("all"),
    )
    .option("--dag <dag>", "only approvals of this DAG")
    .option("--run <run>", `only approvals of this run: ${RUN_ARGUMENT}`)
    .option("--task <task>", "only approvals of this task")
    .option("--assignee <name>", "only approvals that are assigned to this name")
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async ({ all, assignee, dag, limit, run: given, state = ["open"], task }) => {
      const what = "cannot list the approvals";
      const run = await findRunFilter(session.client, { dag, run: given });
      const states = all ? undefined : state;
      const query = { state: states, dag_id: dag, run_id: run, task_id: task, assignee };
      const listed = await session.client.list<Approval>({
        ...{ path: "/approvals", key: "approvals", what, query, limit },
      });
      await requireNamed(session.client, what, listed, { dag, run, task });
      await session.printList(listed, COLUMNS, "No approvals match.");
    });

  approvals
    .command("show")
    .description("show an approval: the question, its form, and its answer")
    .addHelpText("after", examples("tradewind approvals show 7", "tradewind approvals show 7 --json"))
    .argument("<id>", ID, approvalId)
    .action(async (id) => {
      const approval = await session.client.get<Approval>(path`/approvals/${id}`, {
        what: `cannot show the approval ${id}`,
      });
      await session.printObject(approval, fieldsOf(approval));
    });

  approvals
    .command("answer")
    .description("answer an open approval")
    .addHelpText(
      "after",
      examples(
        "tradewind approvals answer 7 --approve --comment 'looks good'",
        "tradewind approvals answer 7 --reject --comment 'too early'",
        `tradewind approvals answer 7 --answer '{"region":"eu"}'`,
      ),
    )
    .argument("<id>", ID, approvalId)
    .addOption(new Option("--approve", "approve it; for an approval without a form"))
    .addOption(
      new Option("--answer <json>", "approve it with this answer: JSON, or @file").conflicts("approve"),
    )
    .addOption(new Option("--reject", "reject it").conflicts(["approve", "answer"]))
    .option("--comment <text>", "a comment, which is kept with the answer")
    .action(async (id, { answer, approve, comment, reject }) => {
      if (!approve && !reject && answer === undefined)
        throw usageError(
          "give --approve, --answer <json> or --reject.",
          `see: tradewind approvals show ${id}`,
        );
      const source = answer === undefined ? undefined : readSource(answer, "--answer");
      const body = {
        decision: reject ? "reject" : "approve",
        ...(source && { answer: parseJson(source.text, source.name) }),
        ...(comment !== undefined && { comment }),
      };
      const what = `cannot answer the approval ${id}`;
      const done = await session.client.post<Approval>(path`/approvals/${id}/answer`, {
        ...{ what, body, idempotent: true },
      });
      const verb = done.decision === "reject" ? "Rejected" : "Approved";
      await session.printDone(done, `${verb}: ${done.title} (${placeOf(done)} of run ${done.dag_run_id}).`);
    });

  return approvals;
}

const COLUMNS: readonly Column<Approval>[] = [
  { title: "ID", value: ({ id }) => String(id), align: "right" },
  { title: "DAG", value: ({ dag_id }) => dag_id },
  { title: "RUN", value: ({ dag_run_id }) => dag_run_id, optional: true },
  { title: "TASK", value: placeOf },
  { title: "TITLE", value: ({ title }) => title, flexible: true },
  { title: "STATE", value: stateOf },
  { title: "SINCE", value: ({ opened_at }) => relativeTime(opened_at) },
  { title: "UNTIL", value: ({ expires_at }) => relativeTime(expires_at) },
  { title: "WHO", value: whoOf },
];

function fieldsOf(approval: Approval): Fields {
  const { answer, closed_at, expires_at, form, has_form, id, state } = approval;
  const how = has_form ? "--answer '<json>', or --reject" : "--approve, or --reject";
  return [
    ["id", String(id)],
    ["title", approval.title],
    ["message", approval.message],
    ["state", stateOf(approval)],
    ["dag", approval.dag_id],
    ["run", approval.dag_run_id],
    ["task", placeOf(approval)],
    ["who", whoOf(approval)],
    ["opened", moment(approval.opened_at)],
    ["until", expires_at && `${moment(expires_at)}, then: ${approval.on_timeout}`],
    ["if rejected", approval.on_reject],
    ["problem", approval.problem],
    ["form", form === null ? null : JSON.stringify(form)],
    ["how", state === "open" ? `tradewind approvals answer ${id} ${how}` : null],
    ["closed", closed_at && moment(closed_at)],
    ["answer", answer === null ? null : JSON.stringify(answer)],
    ["comment", approval.comment],
  ];
}

function stateOf({ decision, state }: Approval): string {
  if (state !== "answered") return state;
  return decision === "reject" ? "rejected" : "approved";
}

function whoOf({ answered_by, assignees }: Approval): string {
  return answered_by ?? (assignees.length === 0 ? "anyone" : assignees.join(", "));
}

function placeOf({ map_index, rendered_map_index, task_id }: Approval): string {
  return instanceText(task_id, map_index, rendered_map_index);
}
