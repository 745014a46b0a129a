/**
 * JavaScript values as PostgreSQL array literals, for the arrays that batches consist of. The driver's own way runs two
 * regular expressions over every element, numbers included, and was the scheduler's most expensive function.
 */

/** A value as the driver should get it: an array as its literal where that is known to be right, else untouched. */
export function encoded(value: unknown): unknown {
  return Array.isArray(value) ? (arrayLiteral(value) ?? value) : value;
}

/** null when an element is neither number, boolean, string nor null: those are the driver's business. */
function arrayLiteral(items: readonly unknown[]): string | null {
  let text = "{";
  for (let at = 0; at < items.length; at++) {
    if (at > 0) text += ",";
    const item = items[at];
    if (item === null || item === undefined) text += "NULL";
    else if (typeof item === "number" || typeof item === "boolean") text += item;
    else if (typeof item !== "string") return null;
    else if (BARE.test(item)) text += item;
    else text += `"${SPECIAL.test(item) ? item.replace(EACH_SPECIAL, "\\$&") : item}"`;
  }
  return `${text}}`;
}

/** Needs no quotes: not empty, nothing that separates or escapes, and not the word NULL. */
const BARE = /^(?!null$)[\w-]+$/i;
const SPECIAL = /["\\]/;
const EACH_SPECIAL = /["\\]/g;
