/** Checks `--input` and `--input-state` of `tasks test` against the inputs of the task before it runs. */
import type { DagManifest, InputSource, Json, TaskManifest } from "@tradewind/sdk/manifest";
import type { SettledInput } from "@tradewind/sdk/program";
import { nearest } from "@tradewind/sdk/wording";
import { CliError, usageError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { parseJson, readSource } from "../input/values.ts";
import type { GivenInputs } from "./single-task.ts";

const STATES = ["failed", "skipped", "upstream_failed"] as const;

export interface InputOptions {
  /** Values as JSON, by input name, or by task id for `ctx.output`. */
  readonly values: Readonly<Record<string, string>>;
  /** State of the upstream task, by input name. */
  readonly states: Readonly<Record<string, string>>;
}

export function findTask({ dagId, tasks }: DagManifest, taskId: string): TaskManifest {
  const found = tasks.find((task) => task.taskId === taskId);
  if (found) return found;
  const ids = tasks.map((task) => task.taskId);
  const near = nearest(taskId, ids);
  throw new CliError("TW_CLI_NO_TASK", `the DAG ${dagId} has no task ${taskId}.`, {
    exit: EXIT.notFound,
    remedy: `${near === undefined ? "" : `did you mean "${near}"? `}It has: ${ids.join(", ")}`,
  });
}

/** @throws One error that names all missing inputs, or the first unknown input. */
export function givenInputs(
  { tasks }: DagManifest,
  task: TaskManifest,
  { states, values }: InputOptions,
): GivenInputs {
  const inputs: Record<string, SettledInput> = {};
  const outputs: Record<string, Json> = {};
  for (const [name, state] of Object.entries(states)) {
    if (!Object.hasOwn(task.inputs, name)) throw unknownInput(task, name, []);
    if (!isState(state))
      throw usageError(
        `--input-state ${name}: "${state}" is not a state of a task that did not succeed.`,
        `use ${STATES.join(", ")}`,
      );
    inputs[name] = { state, value: undefined };
  }
  for (const [name, text] of Object.entries(values)) {
    const source = readSource(text, `--input ${name}`);
    const value = parseJson(source.text, source.name) as Json;
    const from = Object.hasOwn(task.inputs, name) ? task.inputs[name]! : { taskId: name };
    if (Object.hasOwn(task.inputs, name)) inputs[name] = { state: "success", value };
    else if (!tasks.some(({ taskId }) => taskId === name)) throw unknownInput(task, name, tasks);
    if ("taskId" in from) outputs[from.taskId] = value;
  }
  const missing = Object.entries(task.inputs).filter(([name]) => !Object.hasOwn(inputs, name));
  if (missing.length > 0) throw missingInputs(task, missing);
  return { inputs, outputs };
}

function isState(text: string): text is (typeof STATES)[number] {
  return (STATES as readonly string[]).includes(text);
}

function missingInputs(
  { inputs, taskId }: TaskManifest,
  missing: readonly [string, InputSource][],
): CliError {
  const few =
    missing.length === 1 ? "an input is" : `${missing.length} of ${Object.keys(inputs).length} inputs are`;
  return new CliError("TW_CLI_INPUTS", `cannot test the task ${taskId}: ${few} missing.`, {
    exit: EXIT.usage,
    fields: missing.map(([field, source]) => ({ field, message: meaning(source) })),
    remedy: `give ${missing.length === 1 ? "it" : "each"} as JSON: ${missing.map(([name]) => `--input ${name}=…`).join(" ")}`,
  });
}

function meaning(source: InputSource): string {
  return "item" in source ? `an item of the list mapped by ${source.item}` : `the output of ${source.taskId}`;
}

function unknownInput({ inputs, taskId }: TaskManifest, name: string, tasks: DagManifest["tasks"]): CliError {
  const names = Object.keys(inputs);
  const near = nearest(name, [...names, ...tasks.map((task) => task.taskId)]);
  const hint = near === undefined ? "" : `did you mean "${near}"? `;
  const has = names.length === 0 ? "It has no inputs" : `Its inputs: ${names.join(", ")}`;
  return new CliError("TW_CLI_INPUTS", `the task ${taskId} has no input ${name}.`, {
    exit: EXIT.usage,
    remedy: `${hint}${has}`,
  });
}
