/**
 * Checks the keys of `triggers`: an ignored key would leave its wait without an event. The id of a custom trigger can
 * be any name, so only keys that cannot be one are rejected at once: a step of an unknown task, or an unknown built-in
 * trigger. Other typos are suggested when a wait has no entry.
 */
import { BUILTIN_KINDS } from "@tradewind/sdk/builtin-triggers";
import { nearest } from "@tradewind/sdk/wording";
import { DagTestError } from "../errors.ts";
import { programIn, type Triggers } from "./trigger-script.ts";

const KINDS: readonly string[] = BUILTIN_KINDS;

/** @throws DagTestError that names the first invalid key. */
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

/** The key that was probably meant for a wait without an entry. */
export function misspelt(triggers: Triggers, meant: readonly string[]): string {
  const keys = Object.keys(triggers);
  for (const name of meant) {
    const near = nearest(name, keys);
    if (near !== undefined) return ` (\`triggers\` has "${near}": did you mean "${name}"?)`;
  }
  return "";
}
