/**
 * Pages by cursor. A cursor holds the order's values of the first or last row of a page, so a page costs the same at any
 * position, and rows that are inserted or deleted meanwhile neither shift nor repeat others. The values are PostgreSQL's
 * text and are sent as parameters, whose types PostgreSQL infers from the comparison; a forged cursor is at worst a value
 * of the wrong type, which PostgreSQL rejects.
 */
import { type OrderTerm, reversed } from "./order.ts";

export interface Cursor {
  readonly to: "next" | "previous";
  /** null: the first page. */
  readonly keys: readonly (string | null)[] | null;
}

/** "" is the first page; null: not a valid cursor of this order. */
export function readCursor(text: string, orderBy: readonly string[]): Cursor | null {
  if (text === "") return { to: "next", keys: null };
  const value = decode(text);
  if (!Array.isArray(value) || value.length !== 3) return null;
  const [to, order, keys] = value as unknown[];
  if (to !== "next" && to !== "previous") return null;
  if (!Array.isArray(order) || order.join() !== orderBy.join()) return null;
  if (!Array.isArray(keys) || !keys.every((key) => key === null || typeof key === "string")) return null;
  return { to, keys };
}

export function writeCursor(
  to: Cursor["to"],
  orderBy: readonly string[],
  keys: readonly (string | null)[],
): string {
  return Buffer.from(JSON.stringify([to, orderBy, keys])).toString("base64url");
}

/** One more column with the values for a cursor. */
export function keyColumn(terms: readonly OrderTerm[]): string {
  return `json_build_array(${terms.map(({ expression }) => `(${expression})::text`).join(", ")}) AS ${KEYS}`;
}

export const KEYS = "cursor_keys";

/** Condition for the rows after these values, in this order. */
export function afterKeys(
  terms: readonly OrderTerm[],
  keys: readonly (string | null)[],
  bind: (value: unknown) => string,
): string {
  const ways: string[] = [];
  const equal: string[] = [];
  const bounds: string[] = [];
  for (const [index, { descending, expression, isKey }] of terms.entries()) {
    const key = keys[index] ?? null;
    if (key === null) {
      if (!descending) ways.push([...equal, `${expression} IS NOT NULL`].join(" AND "));
      equal.push(`${expression} IS NULL`);
      continue;
    }
    const value = bind(key);
    const beyond = `${expression} ${descending ? "<" : ">"} ${value}`;
    const orNull = descending && !isKey ? `(${beyond} OR ${expression} IS NULL)` : beyond;
    ways.push([...equal, orNull].join(" AND "));
    equal.push(`${expression} = ${value}`);
    // Redundant, but the only form in which an index scan can start at the value.
    if (index === 0 && isKey) bounds.push(`${expression} ${descending ? "<=" : ">="} ${value}`);
  }
  return [...bounds, `(${ways.length === 0 ? "false" : ways.join(" OR ")})`].join(" AND ");
}

/** The order in which a page is read: reversed for a previous page. */
export function readingOrder(terms: readonly OrderTerm[], cursor: Cursor): readonly OrderTerm[] {
  return cursor.to === "next" ? terms : reversed(terms);
}

function decode(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
  } catch {
    return null;
  }
}
