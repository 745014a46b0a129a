/**
 * Rows as parameters of a statement, one array per column. The text and the values are generated from the same list of
 * columns, so their order cannot differ.
 *
 * The arrays are unnested in a select list. PostgreSQL steps through them together there; as functions in FROM it would
 * build a table of each array first, which costs a small batch more than its rows.
 */

/**
 * `instant`: milliseconds since the epoch, a timestamptz in the statement. `message`: text of user code; its NUL
 * characters, which PostgreSQL rejects in a text, are removed, so that one bad message cannot void a batch.
 */
type ColumnType = "bigint" | "boolean" | "instant" | "integer" | "json" | "message" | "text" | "uuid";

/** Columns by name, each with its type and its value in a row; undefined is stored as NULL. */
export type Columns<Row> = Readonly<
  Record<string, readonly [type: ColumnType, value: (row: Row) => unknown]>
>;

export class RowArrays<Row> {
  /** The rows, as an item of FROM; takes the first parameters of the statement. */
  readonly source: string;
  /** The number of rows. */
  readonly count: string;
  readonly #columns: Columns<Row>;

  constructor(columns: Columns<Row>) {
    this.#columns = columns;
    const arrays = Object.entries(columns).map(
      ([name, [type]], at) => `${unnested(type, at + 1)} AS ${name}`,
    );
    this.source = `(SELECT ${arrays.join(", ")})`;
    this.count = `cardinality($1::${Object.values(columns)[0]?.[0]}[])`;
  }

  get names(): string[] {
    return Object.keys(this.#columns);
  }

  /** The n-th parameter after the arrays, from 1. */
  parameter(n: number): string {
    return `$${this.names.length + n}`;
  }

  values(rows: readonly Row[]): unknown[][] {
    return Object.values(this.#columns).map(([type, value]) => {
      if (type === "json") return rows.map((row) => JSON.stringify(value(row)));
      if (type === "message")
        return rows.map((row) => (value(row) as string | null)?.replaceAll("\u0000", ""));
      return rows.map(value);
    });
  }
}

function unnested(type: ColumnType, parameter: number): string {
  if (type === "instant") return `to_timestamp(unnest($${parameter}::float8[]) / 1000)`;
  return `unnest($${parameter}::${type === "message" ? "text" : type}[])`;
}
