/** The answers of a test to the approvals of its DAG, with the rules of the engine. */
import { mayAnswer, outcomeOfAnswer, type TriggerOutcome } from "@tradewind/engine/model";
import type { ApprovalArgs } from "@tradewind/sdk/approval-request";
import type { ApprovalManifest, TaskManifest, TriggerCall } from "@tradewind/sdk/manifest";
import { DagTestError } from "../errors.ts";
import type { Asker, Firing } from "./scripted-triggers.ts";
import { type Delayed, jsonOf, split, type WaitFacts } from "./trigger-script.ts";

/**
 * A person's answer to an approval, by default of its first assignee.
 * @example const answer: GivenAnswer = { answer: { region: "eu" }, by: "ann", comment: "looks good" };
 */
export interface GivenAnswer {
  /** Default "approve". */
  readonly decision?: "approve" | "reject";
  /** The answer to the form. */
  readonly answer?: unknown;
  readonly by?: string;
  readonly comment?: string;
}

type Given = "approve" | "reject" | GivenAnswer;

/**
 * An entry of `approvals`: an answer, `after()`, undefined (no answer), or a function.
 * @example const script: ApprovalScript = (request) => (request.title.includes("eu") ? "approve" : after("1h", "reject"));
 */
export type ApprovalScript =
  | Given
  | Delayed<Given>
  | undefined
  | ((request: ApprovalArgs, wait: WaitFacts) => Given | Delayed<Given> | undefined);

/**
 * Answers to approvals, by task id.
 * @example const approvals: Approvals = { publish: "approve", target: after("1d", { answer: { region: "eu" } }) };
 */
export type Approvals = Readonly<Record<string, ApprovalScript>>;

/** The entries for approvals among these tasks. */
export function approvalsOf(approvals: Approvals, tasks: readonly TaskManifest[]): Approvals {
  const known = idsOf(tasks);
  return Object.fromEntries(Object.entries(approvals).filter(([taskId]) => known.has(taskId)));
}

function idsOf(tasks: readonly TaskManifest[]): ReadonlySet<string> {
  return new Set(tasks.flatMap(({ approval, taskId }) => (approval === undefined ? [] : [taskId])));
}

/**
 * Rejects an entry that is for no approval; with sub-DAGs, it may be for one of theirs.
 * @throws DagTestError
 */
export function checkApprovals(approvals: Approvals, tasks: readonly TaskManifest[]): void {
  if (tasks.some(({ dag }) => dag !== undefined)) return;
  const known = [...idsOf(tasks)];
  for (const taskId of Object.keys(approvals)) {
    if (known.includes(taskId)) continue;
    const has = known.length === 0 ? "the DAG has none" : `approvals: ${known.join(", ")}`;
    throw new DagTestError("TW_TEST_BAD_OPTION", `approvals: there is no approval "${taskId}"`, has);
  }
}

/** When the test answers; null: never. Undefined: the timeout answers, and the test has no entry. */
export function answerOf(
  approvals: Approvals,
  call: TriggerCall,
  asker: Asker & { readonly now: Date },
): Firing | null | undefined {
  const { instance, now, since, step } = asker;
  const { node, tryNumber } = instance;
  const { id: taskId, manifest } = node;
  if (!Object.hasOwn(approvals, taskId)) {
    if (call.timed !== null) return undefined;
    throw new DagTestError(
      "TW_TEST_NO_EVENT",
      `task "${taskId}" waits for an answer, and has no entry in \`approvals\``,
      `give it: runDag(dag, { approvals: { "${taskId}": ${manifest.approval?.form ? "{ answer: … }" : '"approve"'} } })`,
    );
  }
  const request = call.args as unknown as ApprovalArgs;
  const script = approvals[taskId];
  if (typeof script !== "function" && request.problem !== null)
    throw bad(taskId, `the form rejects the answer: ${request.problem}`);
  const given =
    typeof script === "function" ? script({ ...request }, { taskId, tryNumber, step, now }) : script;
  if (given === undefined) return null;
  const { delayMs, value } = split(given);
  const outcome = outcomeFor(value as Given, { taskId, request, approval: manifest.approval });
  return { at: since + delayMs, outcome };
}

interface Asked {
  readonly taskId: string;
  readonly request: ApprovalArgs;
  readonly approval: ApprovalManifest | undefined;
}

/** With the checks of the API. */
function outcomeFor(given: Given, { approval, request, taskId }: Asked): TriggerOutcome {
  const isWord = given === "approve" || given === "reject";
  if (!isWord && (typeof given !== "object" || given === null))
    throw bad(taskId, 'must be "approve", "reject" or { answer: … }');
  const { answer, by, comment, decision = "approve" }: GivenAnswer = isWord ? { decision: given } : given;
  const person = by ?? request.assignees[0] ?? "user";
  const form = approval?.form ?? null;
  if (!mayAnswer(request, { name: person, isAdmin: false }))
    throw bad(taskId, `"${person}" may not answer; assigned to: ${request.assignees.join(", ")}`);
  if (answer !== undefined && (form === null || decision === "reject"))
    throw bad(
      taskId,
      `has ${form === null ? "no form" : "no answer if it is rejected"}: leave the answer out`,
    );
  if (answer === undefined && form !== null && decision === "approve")
    throw bad(taskId, "has a form: give { answer: … }");
  const json = answer === undefined ? undefined : jsonOf(`approvals: the answer to "${taskId}"`, answer);
  const approved = decision === "approve" ? { answer: json } : null;
  return outcomeOfAnswer(
    { form, onReject: approval?.onReject ?? "skip" },
    { by: person, comment: comment ?? null, approved },
  );
}

function bad(taskId: string, problem: string): DagTestError {
  return new DagTestError("TW_TEST_BAD_OPTION", `approvals: "${taskId}": ${problem}`);
}
