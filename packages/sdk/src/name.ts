/** Texts that become keys in the database: of steps, of queues. */
export function isName(value: unknown): value is string {
  if (typeof value !== "string" || value === "" || value.length > 250) return false;
  // PostgreSQL takes no NUL, and half a character would come back as another one.
  return !value.includes("\u0000") && value.isWellFormed();
}

/** What {@link isName} takes, for messages. */
export const NAME_FORM = "a text of 1 to 250 characters, without U+0000";
