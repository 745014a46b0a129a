/**
 * `ctx.startSignals`: the signals that started a try, read from the log when an attempt begins. An invalid value does not
 * fail the task: the rule has fired, and the task may not need the value.
 */

import type { TaskPlan } from "../author/plan.ts";
import { signalsOf } from "../author/rule.ts";
import type { StandardSchemaV1 } from "../check/standard-schema.ts";
import type { StartSignal } from "../runtime/context.ts";
import { errorFacts } from "../runtime/error-facts.ts";
import type { ReceivedSignal, TaskCall } from "../runtime/program.ts";
import { CONDITION } from "../schedule/condition.ts";
import { signalsSetBy } from "./reaction.ts";
import { receivedValue } from "./signal.ts";
import { fitsPattern } from "./signal-names.ts";

/** Rejects if the engine cannot be queried; another attempt may succeed. */
export async function startingSignals(task: TaskPlan, call: TaskCall): Promise<readonly StartSignal[]> {
  const { host, startSignals: versions = [] } = call;
  if (versions.length === 0 || host.startSignals === undefined) return [];
  const found = await host.startSignals();
  if (found.length < versions.length) {
    const lost = versions.filter((version) => found.every((each) => each.version !== version));
    host.log("warn", `the log no longer has all signals that started this task: ${lost.join(", ")}`);
  }
  return Promise.all(found.map((each) => checked(each, task, call)));
}

async function checked(
  { key, namespace, value, version }: ReceivedSignal,
  task: TaskPlan,
  { host }: TaskCall,
): Promise<StartSignal> {
  const heard = { namespace, key, version };
  try {
    const schema = schemaFor(task, heard);
    return Object.freeze({ ...heard, value: await receivedValue(key, schema, value), invalid: null });
  } catch (error) {
    const invalid = errorFacts(error).message;
    host.log("warn", `this task was started by an invalid signal: ${invalid}`, { version });
    return Object.freeze({ ...heard, value, invalid });
  }
}

/** The schema of the task's first matching signal, as in `onSignal`. */
function schemaFor(
  task: TaskPlan,
  heard: { readonly namespace: string; readonly key: string },
): StandardSchemaV1 | null {
  const set = signalsSetBy(task).map((signal) => signal[CONDITION]);
  const own = [...signalsOf(task.drive.rules), ...set];
  for (const node of own) {
    if (node.kind !== "signal") continue;
    const { namespace, key } = node.leaf;
    if (fitsPattern(namespace, heard.namespace) && fitsPattern(key, heard.key)) return node.schema;
  }
  return null;
}
