/**
 * `d.approval`: a task that waits until a person answers. It begins with the wait if its texts are constant, and needs
 * a worker only to compute texts, and to validate an answer with the author's own validator.
 */
import { refuse } from "../check/definition-errors.ts";
import { DagDefinitionError, show, TaskError } from "../check/errors.ts";
import type { IsJson } from "../check/json.ts";
import { choice, duration } from "../check/option-check.ts";
import { jsonCopy } from "../check/output-check.ts";
import {
  describeIssue,
  isStandardSchema,
  type SchemaInput,
  type SchemaOutput,
  type StandardSchemaV1,
} from "../check/standard-schema.ts";
import type { ApprovalManifest, Json, TriggerCall, TriggerRule } from "../manifest.ts";
import type { AnyParams, TaskContext } from "../runtime/context.ts";
import type { Duration } from "../schedule/duration.ts";
import {
  APPROVAL_KIND,
  type Approval,
  type ApprovalEvent,
  type ApprovalRequest,
  LONGEST_MESSAGE,
  requestProblem,
} from "../trigger/approval-request.ts";
import type { StartFrom } from "../trigger/deferral.ts";
import { type AnyInputs, Operator } from "../trigger/operator.ts";
import { CALL, type Waitable } from "../trigger/waitable.ts";
import type { Edges } from "./builder.ts";
import type { InputHandles, InputValues, NoInputs, Output } from "./handle.ts";
import { jsonSchemaOf } from "./params/params.ts";
import type { TaskBody } from "./plan.ts";
import type { RawOptions, TaskOptions } from "./task-options.ts";

/**
 * A part of an approval's request: a value, or a function of the inputs.
 * @example const title: ApprovalPart<string, { region: Output<string> }> = ({ region }) => `Publish ${region}?`;
 */
export type ApprovalPart<T, I = NoInputs, Rule = "allSuccess", Params = AnyParams> =
  | T
  | ((inputs: InputValues<I, Rule>, ctx: TaskContext<Params>) => T | Promise<T>);

/**
 * Options of `d.approval`, besides `inputs`, `rule`, `form` and `onTimeout`.
 * @example const options: ApprovalOptions = { title: "Publish the report?", assignees: ["ann", "bo"], timeout: "2d" };
 */
export interface ApprovalOptions<I = NoInputs, Rule = "allSuccess", Params = AnyParams>
  extends Omit<TaskOptions<Params>, "timeout"> {
  /** The question, in one line (default: the id of the task). */
  readonly title?: ApprovalPart<string, I, Rule, Params>;
  /** What the person needs to know to decide: Markdown. */
  readonly message?: ApprovalPart<string, I, Rule, Params>;
  /** The names of the tokens that may answer (default: all). */
  readonly assignees?: ApprovalPart<readonly string[], I, Rule, Params>;
  /** The maximum duration of the wait (default: no limit). */
  readonly timeout?: Duration;
  /** The effect of a rejection (default "skip"). */
  readonly onReject?: "skip" | "fail";
}

/**
 * The method of `d` that adds an approval.
 * @example const addApproval = (d: ApprovalBuilder<AnyParams>) => d.approval("publish", { assignees: ["ann"] });
 */
export interface ApprovalBuilder<Params> {
  /**
   * Adds a task that waits until a person answers, without a process. With a form the output is the answer; without
   * one it is an {@link Approval}.
   *
   * @example
   * ```ts
   * const size = d.task("count", () => 1200);
   * const choice = d.approval("target", {
   *   inputs: { size },
   *   title: ({ size }) => `Where to publish ${size} rows?`,
   *   form: z.object({ target: z.enum(["eu", "us"]), note: z.string().optional() }),
   *   assignees: ["ann", "bo"],
   *   timeout: "2d",
   *   onTimeout: { answer: { target: "eu" } },
   * });
   * d.task("publish", { inputs: { choice } }, ({ choice }) => `published in ${choice.target}`);
   * ```
   */
  approval<
    S extends StandardSchemaV1,
    I extends InputHandles = NoInputs,
    Rule extends TriggerRule = "allSuccess",
  >(
    id: string,
    options: ApprovalOptions<I, Rule, Params> &
      Edges<I, Rule> & {
        /** The validator of the answer; its JSON Schema is the form that a person fills in. */
        readonly form: S & IsJson<SchemaOutput<S>, "answer">;
        /** The effect of the timeout: an end of the task, or an answer (default "fail"). */
        readonly onTimeout?: "fail" | "skip" | { readonly answer: SchemaInput<S> };
      },
  ): Output<SchemaOutput<S>>;
  approval<I extends InputHandles = NoInputs, Rule extends TriggerRule = "allSuccess">(
    id: string,
    options?: ApprovalOptions<I, Rule, Params> &
      Edges<I, Rule> & { readonly form?: undefined; readonly onTimeout?: "fail" | "skip" | "approve" },
  ): Output<Approval>;
}

type Part<T> = T | ((inputs: AnyInputs, ctx: TaskContext) => T | Promise<T>);

interface ApprovalSettings {
  readonly title: Part<string>;
  readonly message: Part<string | null>;
  readonly assignees: Part<readonly string[]>;
  readonly form: StandardSchemaV1 | null;
  readonly timeoutMs: number | null;
  readonly onTimeout: "fail" | "skip";
  /** Fired by the timeout; null: the timeout ends the task. */
  readonly fallback: ApprovalEvent | null;
}

class ApprovalOperator extends Operator<ApprovalSettings, Json, AnyInputs> {
  /** Without a form, the event is the output. */
  override startFrom(): StartFrom | null {
    const { assignees, form, message, title } = this.args;
    if ([title, message, assignees].some((part) => typeof part === "function")) return null;
    const request = { title, message, assignees, problem: null } as ApprovalRequest;
    return { ...this.#wait(request), ...(form !== null && { method: "answered" }) };
  }

  override async execute(ctx: TaskContext, inputs: AnyInputs) {
    const part = async <T>(given: Part<T>): Promise<T> =>
      typeof given === "function"
        ? (given as (inputs: AnyInputs, ctx: TaskContext) => T | Promise<T>)(inputs, ctx)
        : given;
    const { assignees, message, title } = this.args;
    const request = {
      title: await part(title),
      message: await part(message),
      assignees: await part(assignees),
      problem: null,
    };
    const problem = requestProblem(request);
    if (problem !== null)
      throw new TaskError("TW_APPROVAL_INVALID", `approval "${ctx.taskId}": ${problem}; change the function`);
    return this.#ask(request);
  }

  async answered(ctx: TaskContext, event: ApprovalEvent, request: ApprovalRequest) {
    const { answer = null, by, comment } = event;
    const { form } = this.args;
    if (form === null) return { by, comment };
    const result = await form["~standard"].validate(answer);
    if (!result.issues) return result.value as Json;
    const problem = result.issues.map(describeIssue).join("; ").replaceAll("\0", "").toWellFormed();
    if (by === null) {
      throw new TaskError(
        "TW_APPROVAL_INVALID",
        `approval "${ctx.taskId}": the answer of onTimeout does not satisfy the form: ${problem}; change the answer`,
      );
    }
    ctx.log.warn("the form rejects the answer; the approval is open again", { by, problem });
    return this.#ask({ ...request, problem: (problem || "it is not valid").slice(0, LONGEST_MESSAGE) });
  }

  #ask(request: ApprovalRequest) {
    return this.defer({ ...this.#wait(request), method: "answered" });
  }

  #wait(request: ApprovalRequest) {
    const { fallback, onTimeout, timeoutMs } = this.args;
    const { message: _, ...args } = request;
    const call: TriggerCall = {
      kind: APPROVAL_KIND,
      args,
      source: "builtin",
      queue: "default",
      replicas: 1,
      wake: fallback && { afterMs: timeoutMs ?? 0 },
      timed: fallback && { payload: fallback as unknown as Json },
    };
    const trigger: Waitable<ApprovalEvent> = { [CALL]: () => call };
    const limit = timeoutMs !== null && fallback === null ? { timeout: timeoutMs } : {};
    // Another try would ask again: a person's silence is final.
    const silence = onTimeout === "skip" ? ("skip" as const) : ("fatal" as const);
    return { trigger, kwargs: { ...request }, ...limit, onTimeout: silence };
  }
}

/** The task of `d.approval`, and its remaining options. */
export function approvalTask(
  given: unknown,
  taskId: string,
  where: string,
): { readonly body: TaskBody; readonly options: unknown } {
  if (given !== undefined && (typeof given !== "object" || given === null)) {
    const form = { kind: "operator" as const, operator: new ApprovalOperator(ofDefaults(taskId)) };
    return { body: form, options: given };
  }
  const { assignees, form, message, onReject, onTimeout, timeout, title, ...options } = Object(
    given,
  ) as RawOptions;
  const timeoutMs = duration({ timeout }, "timeout", null, where);
  const schema = checkedForm(form, where);
  const settings: ApprovalSettings = {
    ...ofDefaults(taskId),
    ...(title !== undefined && { title: title as Part<string> }),
    ...(message !== undefined && { message: message as Part<string> }),
    ...(assignees !== undefined && { assignees: assignees as Part<readonly string[]> }),
    form: schema,
    timeoutMs,
    ...silenceOf(onTimeout, { schema, timeoutMs, where }),
  };
  checkRequest(settings, where);
  const approval: ApprovalManifest = {
    form: schema && { schema: jsonSchemaOf(schema) },
    onReject: choice({ onReject }, "onReject", ["skip", "fail"], where),
    onTimeout: settings.fallback === null ? settings.onTimeout : "answer",
    timeoutMs,
  };
  return { body: { kind: "operator", operator: new ApprovalOperator(settings), approval }, options };
}

function ofDefaults(taskId: string): ApprovalSettings {
  const wait = { timeoutMs: null, onTimeout: "fail" as const, fallback: null };
  return { title: taskId, message: null, assignees: [], form: null, ...wait };
}

function checkedForm(form: unknown, where: string): StandardSchemaV1 | null {
  if (form === undefined) return null;
  if (isStandardSchema(form)) return form;
  refuse(bad(where, `form must be a Standard Schema validator, e.g. z.object({...}), got ${show(form)}`));
  return null;
}

/** Constant parts are checked at once, those of functions when they are called. */
function checkRequest({ assignees, message, title }: ApprovalSettings, where: string): void {
  const constant = <T>(part: unknown, otherwise: T) => (typeof part === "function" ? otherwise : part);
  const problem = requestProblem({
    title: constant(title, "-"),
    message: constant(message, null),
    assignees: constant(assignees, []),
    problem: null,
  });
  if (problem !== null) refuse(bad(where, problem));
}

function silenceOf(
  given: unknown,
  of: { readonly schema: StandardSchemaV1 | null; readonly timeoutMs: number | null; readonly where: string },
): Pick<ApprovalSettings, "onTimeout" | "fallback"> {
  const { schema, timeoutMs, where } = of;
  const onTimeout = given === "skip" ? "skip" : "fail";
  if (given !== undefined && timeoutMs === null)
    refuse(bad(where, 'onTimeout has no effect without a timeout; add e.g. timeout: "2d"'));
  if (given === undefined || given === "fail" || given === "skip") return { onTimeout, fallback: null };
  const isAnswer = typeof given === "object" && given !== null && "answer" in given;
  if (schema === null && given === "approve") return { onTimeout, fallback: { by: null, comment: null } };
  if (schema !== null && isAnswer) {
    const refused = (message: string) => bad(where, message);
    const answer = jsonCopy(given.answer, {
      root: "onTimeout.answer",
      notJson: refused,
      tooLarge: refused,
    });
    checkAnswer(schema, answer, where);
    return { onTimeout, fallback: { answer, by: null, comment: null } };
  }
  const known = schema === null ? '"fail", "skip" or "approve"' : '"fail", "skip" or { answer: … }';
  refuse(bad(where, `onTimeout must be ${known}, got ${show(given)}`));
  return { onTimeout, fallback: null };
}

/** A validator that answers later checks the answer when it is used. */
function checkAnswer(schema: StandardSchemaV1, answer: Json, where: string): void {
  const result = schema["~standard"].validate(answer);
  if (result instanceof Promise) result.catch(() => {});
  else if (result.issues) {
    const problems = result.issues.map(describeIssue).join("; ");
    refuse(bad(where, `the answer of onTimeout does not satisfy the form: ${problems}`));
  }
}

function bad(where: string, message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_OPTION", `${where}: ${message}`);
}
