import { createRequire } from "node:module";
import type pg from "pg";
import { encoded } from "./array-literal.ts";
import { breaksConnection, CommitUnknownError } from "./connection-error.ts";
import type { Call } from "./statement.ts";
import { type ParseText, textParser } from "./wire-types.ts";

/**
 * Several statements as one transaction in one network round trip.
 *
 * All statements are sent with a single Sync at the end. PostgreSQL runs the messages before a Sync as one implicit
 * transaction: at the first error it skips to the Sync and rolls everything back, otherwise the Sync commits. Compared
 * with BEGIN ... COMMIT sent ahead (the driver's own pipeline mode), no statement can run outside the transaction when
 * BEGIN itself fails, and two messages fewer are exchanged.
 *
 * The outcome is known in two cases only: ReadyForQuery without an error (stored), or an ERROR of the server (rolled back).
 * Any other end of the batch (lost socket, FATAL, timeout) is a CommitUnknownError, because the Sync has been sent.
 *
 * Statements are prepared by name, which a rollback does not undo. After an error it is unknown which of the names first
 * used in this batch the server has kept, so these are closed before they are prepared again.
 */
export function runBatch(client: pg.ClientBase, calls: readonly Call[]): Promise<unknown[][]> {
  return new Promise((resolve, reject) => {
    const batch = new Batch(calls, (error, results) => {
      if (results !== undefined) resolve(results);
      else reject(batch.sent && breaksConnection(error) ? new CommitUnknownError(error) : error);
    });
    client.query(batch);
  });
}

/** The driver's interface for a custom query: it writes in `submit` and receives every message until ReadyForQuery. */
class Batch {
  // The driver wraps this callback to end a query that times out.
  callback: (error: unknown, results?: unknown[][]) => void;
  readonly #calls: readonly Call[];
  readonly #values: readonly unknown[][];
  readonly #results: unknown[][] = [];
  #prepared: PreparedNames | undefined;
  #current: Column[] | undefined;
  #rows: unknown[] = [];
  #unreadable: unknown;

  constructor(calls: readonly Call[], callback: (error: unknown, results?: unknown[][]) => void) {
    this.#calls = calls;
    // Values that cannot be encoded (a cycle in a JSON value) must fail here, before anything is sent.
    this.#values = calls.map((each) => each.values.map((value) => prepareValue(encoded(value))));
    this.callback = callback;
  }

  get sent(): boolean {
    return this.#prepared !== undefined;
  }

  submit(connection: pg.Connection): null {
    const wire = connection as unknown as Wire;
    const prepared = preparedNames(wire);
    this.#prepared = prepared;
    wire.stream.cork();
    try {
      this.#calls.forEach(({ statement: { name, text } }, index) => {
        if (name === "" || !prepared.sent.has(name)) {
          if (prepared.doubtful.delete(name)) wire.close({ type: "S", name });
          wire.parse({ name, text, types: [] });
          if (name !== "") prepared.sent.add(name);
        }
        wire.bind({ portal: "", statement: name, values: this.#values[index] ?? [], binary: false });
        // The columns are requested once per prepared statement: the server does not allow them to change.
        if (!prepared.columns.has(name)) wire.describe({ type: "P", name: "" });
        wire.execute({ portal: "", rows: 0 });
      });
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
    return null;
  }

  handleRowDescription(message: { fields: { name: string; dataTypeID: number }[] }): void {
    this.#current = message.fields.map((field) => ({
      name: field.name,
      parse: textParser(field.dataTypeID),
    }));
  }

  handleDataRow(message: { fields: (string | null)[] }): void {
    const columns = this.#columns();
    const row: Record<string, unknown> = {};
    try {
      for (let index = 0; index < columns.length; index++) {
        const column = columns[index] as Column;
        const text = message.fields[index] ?? null;
        row[column.name] = text === null ? null : column.parse(text);
      }
    } catch (error) {
      this.#unreadable ??= error;
    }
    this.#rows.push(row);
  }

  handleCommandComplete(): void {
    const name = this.#calls[this.#results.length]?.statement.name ?? "";
    if (name !== "" && !this.#prepared?.columns.has(name))
      this.#prepared?.columns.set(name, this.#current ?? []);
    this.#results.push(this.#rows);
    this.#rows = [];
    this.#current = undefined;
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete();
  }

  handleReadyForQuery(): void {
    // Committed, but a value could not be decoded: a plain error would imply that nothing was stored.
    if (this.#unreadable !== undefined) this.callback(this.#unreadable);
    else this.callback(null, this.#results);
  }

  handleError(error: unknown): void {
    const prepared = this.#prepared;
    if (prepared !== undefined) {
      for (const { statement } of this.#calls.slice(this.#results.length)) {
        if (statement.name === "" || prepared.columns.has(statement.name)) continue;
        prepared.sent.delete(statement.name);
        prepared.doubtful.add(statement.name);
      }
    }
    this.callback(error);
  }

  #columns(): Column[] {
    if (this.#current === undefined) {
      const name = this.#calls[this.#results.length]?.statement.name ?? "";
      this.#current = this.#prepared?.columns.get(name) ?? [];
    }
    return this.#current;
  }
}

interface Column {
  readonly name: string;
  readonly parse: ParseText;
}

/** The statements prepared on one connection. `columns` has a name once its statement has completed. */
interface PreparedNames {
  readonly sent: Set<string>;
  readonly doubtful: Set<string>;
  readonly columns: Map<string, Column[]>;
}

/** The part of the driver's connection that its extensions (cursor, query stream) also use. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void };
  parse(message: { name: string; text: string; types: number[] }): void;
  bind(message: { portal: string; statement: string; values: unknown[]; binary: boolean }): void;
  describe(message: { type: "P" | "S"; name: string }): void;
  execute(message: { portal: string; rows: number }): void;
  close(message: { type: "P" | "S"; name: string }): void;
  sync(): void;
}

const preparedByConnection = new WeakMap<Wire, PreparedNames>();
const { prepareValue } = createRequire(import.meta.url)("pg/lib/utils") as {
  prepareValue(value: unknown): unknown;
};

function preparedNames(wire: Wire): PreparedNames {
  let names = preparedByConnection.get(wire);
  if (names === undefined) {
    names = { sent: new Set(), doubtful: new Set(), columns: new Map() };
    preparedByConnection.set(wire, names);
  }
  return names;
}
