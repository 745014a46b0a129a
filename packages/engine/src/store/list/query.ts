/**
 * Builds the SELECT behind a list endpoint: conditions that exist only when asked for, a checked order, one page and
 * the total. Column names and SQL fragments come from this folder alone; whatever a caller sends travels as a
 * parameter. Statements are unnamed, because their texts are too many to keep prepared.
 */
import type { Connection } from "../database.ts";
import { adhoc } from "../statement.ts";

/** Bounds of a range filter; each may be missing. */
export interface Range<T> {
  readonly gte?: T | null;
  readonly gt?: T | null;
  readonly lte?: T | null;
  readonly lt?: T | null;
}

export interface Page {
  readonly limit: number;
  readonly offset: number;
  /** Keys of the resource's order table, "-" in front for descending. */
  readonly orderBy?: readonly string[];
}

export interface Listed<R> {
  readonly rows: R[];
  readonly total: number;
}

/** The WHERE of one query. A condition whose value is null or undefined is not there. */
export class Conditions {
  readonly values: unknown[] = [];
  readonly #parts: string[] = [];

  /** The next parameter's place, for a fragment of one's own. */
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

  between(column: string, range: Range<unknown> | undefined): this {
    for (const [key, operator] of RANGE_OPERATORS) {
      const value = range?.[key];
      if (value !== null && value !== undefined) this.raw(`${column} ${operator} ${this.bind(value)}`);
    }
    return this;
  }

  /** Airflow's `_pattern`: a substring, any case; `%` and `_` keep their SQL meaning; `|` separates alternatives. */
  matches(column: string, pattern: string | null | undefined): this {
    if (pattern === null || pattern === undefined || pattern === "" || pattern === "~") return this;
    const alternatives = pattern
      .split("|")
      .map((part) => part.trim())
      .filter((part) => part !== "")
      .map((part) => `%${danglingEscape(part)}%`);
    return alternatives.length === 0 ? this : this.raw(`${column} ILIKE ANY(${this.bind(alternatives)})`);
  }

  startsWith(column: string, prefix: string | null | undefined): this {
    return prefix === null || prefix === undefined || prefix === ""
      ? this
      : this.raw(`starts_with(${column}, ${this.bind(prefix)})`);
  }

  toString(): string {
    return this.#parts.length === 0 ? "" : `WHERE ${this.#parts.join(" AND ")}`;
  }
}

export interface ListQuery {
  /** Select list and FROM, e.g. "r.* FROM dag_run r". */
  readonly columns: string;
  readonly from: string;
  readonly where: Conditions;
  /** What `orderBy` keys mean. */
  readonly order: Readonly<Record<string, string>>;
  /** Unique at the end of every order, so that pages neither repeat nor skip a row. */
  readonly tiebreak: string;
  readonly page: Page;
}

export async function list<R>(connection: Connection, query: ListQuery): Promise<Listed<R>> {
  const { columns, from, where, page } = query;
  const counted = await connection.one<{ total: number }>(
    adhoc(`SELECT count(*)::int8 AS total FROM ${from} ${where}`),
    where.values,
  );
  const text = `SELECT ${columns} FROM ${from} ${where} ORDER BY ${orderOf(query)} LIMIT ${Math.trunc(page.limit)} OFFSET ${Math.trunc(page.offset)}`;
  const rows = page.limit === 0 ? [] : await connection.rows<R>(adhoc(text), where.values);
  return { rows, total: counted?.total ?? 0 };
}

/** One row by the same columns as the list, so that both show the same resource. */
export async function first<R>(
  connection: Connection,
  query: Pick<ListQuery, "columns" | "from" | "where">,
): Promise<R | undefined> {
  return connection.one<R>(
    adhoc(`SELECT ${query.columns} FROM ${query.from} ${query.where} LIMIT 1`),
    query.where.values,
  );
}

const RANGE_OPERATORS = [
  ["gte", ">="],
  ["gt", ">"],
  ["lte", "<="],
  ["lt", "<"],
] as const;

function orderOf({ order, page, tiebreak }: ListQuery): string {
  const terms = (page.orderBy ?? []).flatMap((key) => {
    const expression = Object.hasOwn(order, key.replace(/^-/, "")) ? order[key.replace(/^-/, "")] : undefined;
    return expression === undefined
      ? []
      : [`${expression} ${key.startsWith("-") ? "DESC NULLS LAST" : "ASC NULLS FIRST"}`];
  });
  return [...terms, tiebreak].join(", ");
}

/** A lone backslash at the end would escape our own `%`; PostgreSQL refuses such a pattern. */
function danglingEscape(pattern: string): string {
  const slashes = /\\*$/.exec(pattern)![0].length;
  return slashes % 2 === 1 ? `${pattern}\\` : pattern;
}
