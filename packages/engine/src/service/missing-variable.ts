/**
 * Explains an error that names an environment variable which is set for the service and not for user code. Only names are
 * compared: no value leaves the service.
 */
import { withheldNames } from "./user-environment.ts";

/** Longer texts are logs, not messages: a name in them proves little. */
const MAX_LENGTH = 4_096;
const MAX_NAMES = 3;
/** In a line about the environment any name counts; elsewhere only a name that can hardly be a word of the sentence. */
const ABOUT_ENVIRONMENT = /\benv\b|environment|\b(?:not|un|must be) ?set\b/i;
/** In capitals and not a part of a path or of another name; or any name after `process.env.`. */
const NAMES = /(?<![\w/.-])[A-Z][A-Z0-9_]+(?![\w/-])|(?<=\benv\.)[A-Za-z_]\w*/g;

type SetWhere = "for the scheduler" | "for the triggerer" | "for the DAG processor" | "in this shell";

/**
 * @param withheld Variables of the service that are not passed to user code.
 * @param given Variables that the DAG has set itself.
 * @returns One line for each variable, or null.
 */
export function missingVariableHint(
  text: string,
  withheld: ReadonlySet<string>,
  { given = [], set = "for the scheduler" }: { given?: readonly string[]; set?: SetWhere } = {},
): string | null {
  const found = new Set<string>();
  for (const line of text.slice(0, MAX_LENGTH).split("\n")) {
    const isAbout = ABOUT_ENVIRONMENT.test(line);
    for (const [name] of line.matchAll(NAMES)) {
      const isTelling = isAbout || /[A-Z0-9]_[A-Z0-9]/.test(name);
      if (isTelling && withheld.has(name) && !given.includes(name)) found.add(name);
    }
  }
  if (found.size === 0) return null;
  const remedy = "but not passed to tasks: add it to TRADEWIND_TASK_ENV.";
  const names = [...found].slice(0, MAX_NAMES);
  return names.map((name) => `${name} is set ${set} ${remedy}`).join("\n");
}

/** For the variables of this process. */
export function hintOfService(text: string, set: SetWhere): string | null {
  return missingVariableHint(text, withheldNames(process.env), { set });
}

/** The message, with the hint in a separate line. */
export function withMissingVariables(message: string, set: SetWhere): string {
  const hint = hintOfService(message, set);
  return hint === null ? message : `${message}\n${hint}`;
}
