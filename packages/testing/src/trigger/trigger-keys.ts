/**
 * The keys of `triggers`: what stands for nothing in the DAG would be passed over in silence, and the test would wait
 * for what it believes to have given. An id of an author's own trigger may be any name, so only what cannot be one is
 * refused at once: a step of a task that does not exist, a built-in trigger that does not. Of any other the test hears
 * when a wait is left without an answer and a key is all but its name.
 */
import { BUILTIN_KINDS } from "@tradewind/sdk/builtin-triggers";
import { nearest } from "@tradewind/sdk/wording";
import { DagTestError } from "../errors.ts";
import { programIn, type Triggers } from "./trigger-script.ts";

const KINDS: readonly string[] = BUILTIN_KINDS;

/** @throws DagTestError that names the first key that stands for nothing. */
export function checkKeys(triggers: Triggers, taskIds: ReadonlySet<string>): void {
  for (const [key, entry] of Object.entries(triggers)) {
    const [name = ""] = key.split("/", 1);
    if (taskIds.has(name) || KINDS.includes(key) || programIn(entry) !== null) continue;
    const isStep = key.includes("/");
    if (!isStep && !key.startsWith("tradewind.")) continue;
    const near = nearest(name, isStep ? [...taskIds] : KINDS);
    const what = isStep ? `there is no task "${name}"` : `there is no trigger "${key}"`;
    const known = isStep ? `tasks: ${[...taskIds].join(", ")}` : `built-in triggers: ${KINDS.join(", ")}`;
    const remedy = near === undefined ? known : `did you mean "${near}${key.slice(name.length)}"?`;
    throw new DagTestError("TW_TEST_BAD_OPTION", `triggers: ${what}`, remedy);
  }
}

/** A key that was likely to be meant for a wait that nothing is said about. */
export function misspelt(triggers: Triggers, meant: readonly string[]): string {
  const keys = Object.keys(triggers);
  for (const name of meant) {
    const near = nearest(name, keys);
    if (near !== undefined) return ` (\`triggers\` has "${near}": did you mean "${name}"?)`;
  }
  return "";
}
