/**
 * Builds the SELECT of a list endpoint: optional conditions, a checked order, one page and the total. Column names and
 * SQL fragments come from store/ only; all caller input is sent as parameters. Statements are unnamed, because there
 * are too many different texts to prepare.
 */
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import { afterKeys, type Cursor, KEYS, keyColumn, readingOrder, writeCursor } from "./keyset.ts";
import { type Ordered, orderSql, orderTerms } from "./order.ts";

/** Bounds of a range filter, each optional. */
export interface Range<T> {
  readonly gte?: T | null;
  readonly gt?: T | null;
  readonly lte?: T | null;
  readonly lt?: T | null;
}

export interface Page {
  readonly limit: number;
  readonly offset: number;
  /** Keys of the resource's order table, with the prefix "-" for descending. */
  readonly orderBy?: readonly string[];
  /** Replaces `offset`. */
  readonly cursor?: Cursor;
}

export interface Listed<R> {
  readonly rows: R[];
  readonly total: number;
}

/** Pages by cursor have no total: counting would cost what the cursor saves. */
export interface ListedPage<R> {
  readonly rows: R[];
  readonly total: number | null;
  readonly next: string | null;
  readonly previous: string | null;
}

/** Totals of tables that grow with history are exact up to this number. */
export const COUNTED_EXACTLY = 10_000;

/** The WHERE of one query. A null or undefined value adds no condition. */
export class Conditions {
  readonly values: unknown[];
  readonly #parts: string[] = [];

  /** `around`: the enclosing query, whose parameters it shares. */
  constructor(around?: Conditions) {
    this.values = around?.values ?? [];
  }

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  /** Adds a parameter and returns its placeholder, for custom fragments. */
  bind(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  raw(sql: string): this {
    this.#parts.push(sql);
    return this;
  }

  equals(column: string, value: unknown): this {
    return value === null || value === undefined ? this : this.raw(`${column} = ${this.bind(value)}`);
  }

  oneOf(column: string, values: readonly unknown[] | null | undefined): this {
    return values === null || values === undefined || values.length === 0
      ? this
      : this.raw(`${column} = ANY(${this.bind(values)})`);
  }

  /** Times are compared in milliseconds, as they are shown; the database stores microseconds. */
  between(column: string, range: Range<unknown> | undefined): this {
    for (const [key, operator, ofInstants] of RANGE_OPERATORS) {
      const value = range?.[key];
      if (value === null || value === undefined) continue;
      if (!(value instanceof Date)) this.raw(`${column} ${operator} ${this.bind(value)}`);
      else
        this.raw(
          `${column} ${ofInstants.operator} ${this.bind(new Date(value.getTime() + ofInstants.addMs))}`,
        );
    }
    return this;
  }

  /** Airflow's `_pattern`: a substring in any case; `%` and `_` keep their SQL meaning; `|` separates alternatives. */
  matches(column: string, pattern: string | null | undefined): this {
    if (pattern === null || pattern === undefined || pattern === "" || pattern === "~") return this;
    const alternatives = pattern
      .split("|")
      .map((part) => part.trim())
      .filter((part) => part !== "")
      .map((part) => `%${danglingEscape(part)}%`);
    return alternatives.length === 0 ? this : this.raw(`${column} ILIKE ANY(${this.bind(alternatives)})`);
  }

  /** Airflow's `_prefix_pattern`: a case-sensitive prefix; `|` separates alternatives. */
  startsWith(column: string, prefix: string | null | undefined): this {
    if (prefix === null || prefix === undefined || prefix === "" || prefix === "~") return this;
    const ways = prefix
      .split("|")
      .filter((part) => part !== "")
      .map((part) => `starts_with(${column}, ${this.bind(part)})`);
    return ways.length === 0 ? this : this.raw(`(${ways.join(" OR ")})`);
  }

  /** For a filter that no row can match. */
  nothingIf(isAsked: boolean | undefined): this {
    return isAsked === true ? this.raw("false") : this;
  }

  toString(): string {
    return this.#parts.length === 0 ? "" : `WHERE ${this.#parts.join(" AND ")}`;
  }
}

export interface ListQuery extends Ordered {
  /** Select list and FROM, e.g. "r.* FROM dag_run r". */
  readonly columns: string;
  readonly from: string;
  readonly where: Conditions;
  readonly page: Page;
  /** Exact up to this count, estimated beyond it: for tables that grow with history. */
  readonly countUpTo?: number;
}

export async function list<R>(connection: Connection, query: ListQuery): Promise<Listed<R>> {
  const { columns, from, where, page } = query;
  const limit = Math.trunc(page.limit);
  const offset = Math.trunc(page.offset);
  const text = `SELECT ${columns} FROM ${from} ${where} ORDER BY ${orderSql(orderTerms(query))} LIMIT ${limit} OFFSET ${offset}`;
  const rows = limit === 0 ? [] : await connection.rows<R>(adhoc(text), where.values);
  return { rows, total: await totalOf(connection, query, rows.length) };
}

/** A page by cursor if one is given, else by offset. */
export async function listPage<R>(connection: Connection, query: ListQuery): Promise<ListedPage<R>> {
  const { columns, from, page, where } = query;
  const { cursor, orderBy = [] } = page;
  if (cursor === undefined) return { ...(await list<R>(connection, query)), next: null, previous: null };
  const terms = orderTerms(query);
  const reading = readingOrder(terms, cursor);
  if (cursor.keys !== null) where.raw(afterKeys(reading, cursor.keys, (value) => where.bind(value)));
  const limit = Math.trunc(page.limit);
  // One additional row shows whether there is another page.
  const text = `SELECT ${columns}, ${keyColumn(terms)} FROM ${from} ${where} ORDER BY ${orderSql(reading)} LIMIT ${limit + 1}`;
  const read = await connection.rows<R & { [KEYS]: (string | null)[] }>(adhoc(text), where.values);
  const isMore = read.length > limit;
  const rows = read.slice(0, limit);
  if (cursor.to === "previous") rows.reverse();
  const first = rows[0];
  const last = rows.at(-1);
  const isNext = cursor.to === "next" ? isMore : true;
  const isPrevious = cursor.to === "next" ? cursor.keys !== null : isMore;
  return {
    rows,
    total: null,
    next: isNext && last !== undefined ? writeCursor("next", orderBy, last[KEYS]) : null,
    previous: isPrevious && first !== undefined ? writeCursor("previous", orderBy, first[KEYS]) : null,
  };
}

/** One row with the columns of the list, so that both show the same resource. */
export async function first<R>(
  connection: Connection,
  query: Pick<ListQuery, "columns" | "from" | "where">,
): Promise<R | undefined> {
  return connection.one<R>(
    adhoc(`SELECT ${query.columns} FROM ${query.from} ${query.where} LIMIT 1`),
    query.where.values,
  );
}

/** Per bound: the operator for numbers and text, and for times, where a stored value counts as its whole millisecond. */
const RANGE_OPERATORS = [
  ["gte", ">=", { operator: ">=", addMs: 0 }],
  ["gt", ">", { operator: ">=", addMs: 1 }],
  ["lte", "<=", { operator: "<", addMs: 1 }],
  ["lt", "<", { operator: "<", addMs: 0 }],
] as const;

/**
 * Beyond `countUpTo`: the planner's estimate, corrected by the page. After a full page the total is greater than the rows
 * so far; after a partial page it equals them. So a client that continues until it has the total reads all rows.
 */
async function totalOf(connection: Connection, query: ListQuery, shown: number): Promise<number> {
  const { countUpTo, from, page, where } = query;
  const bounded = countUpTo === undefined ? "" : `LIMIT ${countUpTo + 1}`;
  const counted = await connection.one<{ total: number }>(
    adhoc(`SELECT count(*)::int8 AS total FROM (SELECT FROM ${from} ${where} ${bounded}) counted`),
    where.values,
  );
  const total = counted?.total ?? 0;
  if (countUpTo === undefined || total <= countUpTo) return total;
  if (shown > 0 && shown < page.limit) return page.offset + shown;
  const plan = await connection.one<{ "QUERY PLAN": readonly { Plan: { "Plan Rows": number } }[] }>(
    adhoc(`EXPLAIN (FORMAT JSON) SELECT FROM ${from} ${where}`),
    where.values,
  );
  const estimate = Math.max(total, plan?.["QUERY PLAN"][0]?.Plan["Plan Rows"] ?? 0);
  const isPastEnd = shown === 0 && page.limit > 0;
  return isPastEnd ? Math.min(estimate, page.offset) : Math.max(estimate, page.offset + shown + 1);
}

/** A single backslash at the end would escape our own `%`; PostgreSQL rejects such a pattern. */
function danglingEscape(pattern: string): string {
  const slashes = /\\*$/.exec(pattern)![0].length;
  return slashes % 2 === 1 ? `${pattern}\\` : pattern;
}
