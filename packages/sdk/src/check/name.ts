import { DagDefinitionError, show } from "./errors.ts";

/** Texts that become keys in the database: of steps, of queues. */
export function isName(value: unknown): value is string {
  if (typeof value !== "string" || value === "" || value.length > 250) return false;
  // PostgreSQL takes no NUL, and half a character would come back as another one.
  return !value.includes("\u0000") && value.isWellFormed();
}

/** What {@link isName} takes, for messages. */
export const NAME_FORM = "a text of 1 to 250 characters, without U+0000";

/** Of a DAG, a task or a group. Ids become folders and parts of URLs, where "." and ".." mean something else. */
export function checkId(id: unknown, where: string): string {
  if (typeof id === "string" && /^(?!\.+$)[A-Za-z0-9_.-]{1,250}$/.test(id)) return id;
  throw new DagDefinitionError(
    "TW_BAD_ID",
    `${where}: an id has 1 to 250 of the characters A-Z a-z 0-9 _ . - and is not only dots, got ${show(id)}`,
  );
}
