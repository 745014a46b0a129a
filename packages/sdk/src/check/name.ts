import { DagDefinitionError, show } from "./errors.ts";

/** Texts that are keys in the database: names of steps and queues. */
export function isName(value: unknown): value is string {
  if (typeof value !== "string" || value === "" || value.length > 250) return false;
  // PostgreSQL cannot store NUL, and a lone surrogate would come back as another character.
  return !value.includes("\u0000") && value.isWellFormed();
}

/** Describes what {@link isName} accepts, for messages. */
export const NAME_FORM = "a text of 1 to 250 characters, without U+0000";

/**
 * Checks the id of a DAG, a task or a group. Ids become folders and parts of URLs, where "." and ".." have another
 * meaning.
 */
export function checkId(id: unknown, where: string): string {
  if (typeof id === "string" && /^(?!\.+$)[A-Za-z0-9_.-]{1,250}$/.test(id)) return id;
  throw new DagDefinitionError(
    "TW_BAD_ID",
    `${where}: an id has 1 to 250 of the characters A-Z a-z 0-9 _ . - and is not only dots, got ${show(id)}`,
  );
}
